from loud_voice import shout


def test_shouts_a_single_word():
    assert shout("hello") == "HELLO!"
    assert shout("Fire") == "FIRE!"


def test_shouts_several_words():
    assert shout("Look out") == "LOOK OUT!"
    assert shout("it is 5 past 3") == "IT IS 5 PAST 3!"


def test_adds_one_mark_to_whatever_is_there():
    assert shout("") == "!"
    assert shout("stop!") == "STOP!!"
    assert shout("LOUD") == "LOUD!"
