from sum_two import add


def test_adds_two_positive_numbers():
    assert add(2, 3) == 5
    assert add(40, 60) == 100


def test_adding_zero_changes_nothing():
    assert add(0, 0) == 0
    assert add(7, 0) == 7
    assert add(0, 12) == 12


def test_adds_negative_numbers():
    assert add(-4, 1) == -3
    assert add(-5, -6) == -11
    assert add(8, -8) == 0
