from even_steven import is_even


def test_even_numbers_are_even():
    assert is_even(4) is True
    assert is_even(100) is True


def test_odd_numbers_are_not_even():
    assert is_even(1) is False
    assert is_even(7) is False
    assert is_even(999) is False


def test_zero_is_even():
    assert is_even(0) is True


def test_negative_numbers_follow_the_same_rule():
    assert is_even(-2) is True
    assert is_even(-3) is False
