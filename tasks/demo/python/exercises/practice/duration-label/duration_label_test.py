from duration_label import label


def refusal(seconds):
    try:
        return f"not refused: {label(seconds)}"
    except ValueError as error:
        return str(error)


def test_several_units_are_joined_with_commas_and_a_last_and():
    assert label(7325) == "2 hours, 2 minutes and 5 seconds"
    assert label(180122) == "2 days, 2 hours, 2 minutes and 2 seconds"
    assert label(125) == "2 minutes and 5 seconds"


def test_a_single_unit_stands_alone():
    assert label(45) == "45 seconds"
    assert label(120) == "2 minutes"
    assert label(864000) == "10 days"


def test_a_count_of_one_is_singular():
    assert label(1) == "1 second"
    assert label(60) == "1 minute"
    assert label(3600) == "1 hour"
    assert label(90061) == "1 day, 1 hour, 1 minute and 1 second"


def test_units_with_a_zero_count_are_left_out():
    assert label(86405) == "1 day and 5 seconds"
    assert label(7203) == "2 hours and 3 seconds"


def test_only_the_largest_parts_are_kept():
    assert label(90061, most=2) == "1 day and 1 hour"
    assert label(90061, most=3) == "1 day, 1 hour and 1 minute"
    assert label(86405, most=2) == "1 day and 5 seconds"
    assert label(7199, most=1) == "1 hour"


def test_zero_is_no_time():
    assert label(0) == "no time"
    assert label(0, most=1) == "no time"


def test_negative_durations_are_refused():
    assert refusal(-1) == "seconds must not be negative"
    assert refusal(-86400) == "seconds must not be negative"
