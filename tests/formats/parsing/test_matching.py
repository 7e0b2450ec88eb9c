"""Finding the lines that a model wants replaced: forgiving about whitespace, never about the place."""

from __future__ import annotations

import pytest

from retrial.chat import Fault
from retrial.formats.parsing.matching import Miss, found, replaced

SHOP = """\
class Shop:
    def price(self, item):
        return self.prices[item]

    def total(self, items):
        total = 0
        for item in items:
            total += self.price(item)
        return total
"""


def missed(content: str, before: str, after: str) -> Miss:
    result = replaced(content, before, after)
    assert isinstance(result, Miss)
    return result


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        pytest.param("        total = 0\n", "        total = 1\n", "= 0", "= 1", id="exact lines"),
        pytest.param("        total = 0", "        total = 1", "= 0", "= 1", id="no newline at the end"),
        pytest.param("        total = 0  \n", "        total = 1\n", "= 0", "= 1", id="blanks at the end of a line"),
        pytest.param(
            "def price(self, item):\n    return self.prices[item]\n",
            "def price(self, item):\n    return 1\n",
            "self.prices[item]",
            "1",
            id="all indentation left out",
        ),
        pytest.param(
            "            def price(self, item):\n                return self.prices[item]\n",
            "            def price(self, item):\n                return 1\n",
            "self.prices[item]",
            "1",
            id="too much indentation",
        ),
        pytest.param(
            "\tfor item in items:\n\t    total += self.price(item)\n",
            "\tfor item in items:\n\t    total += 1\n",
            "+= self.price(item)",
            "+= 1",
            id="a tab in place of the outer indentation",
        ),
        pytest.param("\n        total = 0\n\n\n", "\n        total = 1\n\n\n", "= 0", "= 1", id="blank lines around"),
        pytest.param(
            "    def price(self, item):\n...\n        total = 0\n",
            "    def price(self, thing):\n...\n        total = 1\n",
            "price(self, item):\n        return self.prices[item]\n\n    def total(self, items):\n        total = 0",
            "price(self, thing):\n        return self.prices[item]\n\n    def total(self, items):\n        total = 1",
            id="a gap in both parts",
        ),
        pytest.param("        return total\n", "", "        return total\n", "", id="nothing in their place"),
    ],
)
def test_lines_are_replaced_in_spite_of(before: str, after: str, old: str, new: str) -> None:
    assert SHOP.count(old) == 1
    assert replaced(SHOP, before, after) == SHOP.replace(old, new)


def test_new_lines_get_the_indentation_that_the_file_has() -> None:
    after = "if not items:\n    return 0\n\ntotal = 0\n"
    new = replaced(SHOP, "total = 0\n", after)
    assert new == SHOP.replace(
        "        total = 0\n", "        if not items:\n            return 0\n\n        total = 0\n"
    )


def test_new_lines_that_are_indented_less_keep_that_difference() -> None:
    content = "if a:\n    if b:\n        if c:\n            run()\n"
    assert replaced(content, "        run()\n", "    stop()\n") == content.replace(
        "            run()", "        stop()"
    )


def test_new_lines_that_cannot_lose_so_much_indentation_are_refused() -> None:
    assert missed("run()\n", "    run()\n", "if a:\n    run()\n").fault is Fault.NO_MATCH


def test_lines_that_stay_keep_the_blanks_at_their_ends() -> None:
    content = 'text = """\nfirst  \nsecond\n"""\n'
    new = replaced(content, 'text = """\nfirst\nsecond\n', 'text = """\nfirst\nthird\n')
    assert new == content.replace("second", "third")


def test_indentation_that_differs_from_line_to_line_is_not_forgiven() -> None:
    assert missed("if a:\n  b()\nc()\n", "if a:\n    b()\n", "x()\n").fault is Fault.NO_MATCH


@pytest.mark.parametrize(
    ("content", "before"),
    [
        pytest.param("a\nb\na\n", "a\n", id="exact"),
        pytest.param("a \nb\na \n", "a\n", id="but for blanks at the ends"),
        pytest.param("  a\nb\n    a\n", "a\n", id="but for indentation"),
        pytest.param("a\nb\na\n", "\na\n\n", id="but for blank lines around"),
        pytest.param("one\na\ntwo\na\n", "one\n...\na\n", id="in one piece of several"),
        pytest.param("a\na\na\n", "a\na\n", id="overlapping"),
        pytest.param("a\n\nb\n\n", "\n", id="blank lines alone"),
    ],
)
def test_lines_that_are_there_twice_are_ambiguous(content: str, before: str) -> None:
    assert missed(content, before, "new\n...\nnew\n").fault is Fault.AMBIGUOUS


def test_an_exact_match_counts_before_one_that_is_only_alike() -> None:
    assert replaced("  a\nb\na\n", "a\n", "new\n") == "  a\nb\nnew\n"


def test_an_ambiguous_miss_names_the_lines() -> None:
    assert "lines 1, 3" in missed("a\nb\na\n", "a\n", "new\n").text


def test_a_part_of_a_line_is_not_a_line() -> None:
    assert missed("total = 0\n", "total\n", "sum\n").fault is Fault.NO_MATCH


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("total = 0\n...\nclass Shop:\n", "x\n...\ny\n", id="pieces in another order"),
        pytest.param("class Shop:\n...\n        total = 0\n", "class Store:\n", id="a gap in one part only"),
        pytest.param("...\n        nothing()\n", "...\nx\n", id="a piece that is not there"),
        pytest.param(
            "...\n        total = 0\n", "new\n...\n        total = 1\n", id="new lines before the first piece"
        ),
    ],
)
def test_gaps_are_refused_with(before: str, after: str) -> None:
    assert missed(SHOP, before, after).fault is Fault.NO_MATCH


def test_a_bracket_is_not_found_by_leaving_out_the_blank_lines_around_it() -> None:
    assert missed("f(\n    1,\n)\n", "\n)\n", ")\n").fault is Fault.NO_MATCH


def test_a_real_line_of_dots_is_found_as_it_is() -> None:
    assert replaced("def f():\n    ...\n", "def f():\n    ...\n", "def f():\n    pass\n") == "def f():\n    pass\n"


def test_all_lines_can_go() -> None:
    assert replaced("a\nb\n", "a\nb\n", "") == ""


@pytest.mark.parametrize("before", ["", "\n", "  \n"])
def test_an_empty_file_is_filled_by_an_edit_without_old_lines(before: str) -> None:
    assert replaced("", before, "a\nb\n") == "a\nb\n"


def test_an_edit_without_old_lines_never_appends() -> None:
    miss = missed("a\n", "", "b\n")
    assert miss.fault is Fault.MALFORMED
    assert "not empty" in miss.text


def test_a_file_without_a_last_newline_stays_so() -> None:
    assert replaced("a\nb", "b\n", "c\nd\n") == "a\nc\nd"


def test_lines_replaced_by_themselves_are_refused() -> None:
    assert missed("a\nb\n", "a\n", "a\n").fault is Fault.MALFORMED


def test_lines_replaced_by_themselves_that_are_not_there_are_missing() -> None:
    assert missed("a\nb\n", "c\n", "c\n").fault is Fault.NO_MATCH


def test_a_miss_quotes_what_is_nearest() -> None:
    text = missed(SHOP, "        for item in self.items:\n            total += self.price(item)\n", "").text
    assert "for item in items:" in text
    assert "are lines 5 to 9" in text
    assert "% alike" in text


def test_a_miss_says_when_nothing_is_alike_by_saying_nothing() -> None:
    assert "alike" not in missed(SHOP, "import os\n", "import sys\n").text


def test_a_miss_says_that_the_new_lines_are_there_already() -> None:
    assert "already, at line 6" in missed(SHOP, "        total = None\n", "        total = 0\n").text


def test_a_miss_in_very_long_lines_stays_short() -> None:
    line = "word " * 20_000
    assert len(missed(line + "\n", line + "more\n", "x\n").text) < 2_000


def test_a_search_that_fails_in_a_long_file_quotes_its_nearest_lines() -> None:
    content = "".join(f"value_{number} = compute(number, {number % 7})\n" for number in range(10_000))
    assert "value_5000 = compute" in missed(content, "value_5000 = computed(number, 3)\n", "x\n").text


def test_places_say_how_the_indentation_differs() -> None:
    (place,) = found(["if a:", "    run()"], ["run()"])
    assert (place.start, place.written, place.indented) == (1, "", "    ")
