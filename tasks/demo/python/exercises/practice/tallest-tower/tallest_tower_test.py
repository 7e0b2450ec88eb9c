from tallest_tower import tallest


def test_finds_the_tallest_in_the_middle():
    assert tallest([3, 9, 4]) == 9
    assert tallest([10, 250, 249]) == 250


def test_finds_the_tallest_at_either_end():
    assert tallest([8, 2, 1]) == 8
    assert tallest([1, 2, 8]) == 8


def test_a_single_tower_is_the_tallest():
    assert tallest([5]) == 5


def test_equal_towers_and_towers_below_ground():
    assert tallest([6, 6, 6]) == 6
    assert tallest([-7, -3, -9]) == -3
