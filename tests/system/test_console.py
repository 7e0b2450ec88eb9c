"""Words for people: what a hostile test calls itself cannot reach their terminal."""

from __future__ import annotations

import pytest

from retrial.system.console import printable


@pytest.mark.parametrize("letter", ["\x1b[2K", "\r", "\x07", "\ud800", "\x9b", "\u202e", "\0"])
def test_nothing_that_a_terminal_obeys_or_cannot_write_is_left(letter: str) -> None:
    shown = printable(f"one{letter}two")
    assert shown.isprintable()
    assert shown.encode()


def test_plain_text_stays_as_it_is_in_one_line() -> None:
    assert printable("Größe › 1 of 2\n tests …") == "Größe › 1 of 2 tests …"
