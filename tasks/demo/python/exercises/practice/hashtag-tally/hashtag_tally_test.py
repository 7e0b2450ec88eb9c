from hashtag_tally import tally


def test_counts_tags_and_puts_the_most_frequent_first():
    assert tally("#snow #rain #rain") == [("rain", 2), ("snow", 1)]
    assert tally("one #b two #c three #c four #a #a #a") == [("a", 3), ("c", 2), ("b", 1)]


def test_equal_counts_are_in_ascending_order():
    assert tally("#pear #apple #fig") == [("apple", 1), ("fig", 1), ("pear", 1)]
    assert tally("#b2 #b10 #b_ #é #z") == [("b10", 1), ("b2", 1), ("b_", 1), ("z", 1), ("é", 1)]


def test_a_text_without_tags_gives_an_empty_list():
    assert tally("") == []
    assert tally("no tags here") == []
    assert tally("# alone, #! odd, ## twice") == []


def test_a_tag_starts_only_after_white_space_or_at_the_start():
    assert tally("C#sharp #flat") == [("flat", 1)]
    assert tally("#rain#snow") == [("rain", 1)]
    assert tally("##hail (#fog) #sun\n#moon\t#star") == [("moon", 1), ("star", 1), ("sun", 1)]


def test_a_tag_ends_at_the_first_other_character():
    assert tally("#wind-chill #wind. #wind") == [("wind", 3)]
    assert tally("#it's #snake_case_2,") == [("it", 1), ("snake_case_2", 1)]


def test_case_is_folded():
    assert tally("#Go #GO #gO") == [("go", 3)]
    assert tally("#Straße #STRASSE") == [("strasse", 2)]
    assert tally("#ΟΔΟΣ #οδος") == [("οδοσ", 2)]


def test_combining_accents_are_composed_first():
    assert tally("#cafe\u0301 #café") == [("café", 2)]
    assert tally("#man\u0303ana!") == [("mañana", 1)]


def test_any_script_may_be_tagged():
    assert tally("#東京 #Москва #東京") == [("東京", 2), ("москва", 1)]
    assert tally("#٣ #🙂 #3") == [("3", 1), ("٣", 1)]
