"""Words for people."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 3


def some(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def printable(text: str) -> str:
    """In one line, with nothing in it that a terminal would obey or that cannot be written: tests name themselves."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))


def one_line(text: str) -> str:
    """As it is, but for what a terminal would obey or that begins another line: names come from anywhere."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def counted(number: int, what: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
