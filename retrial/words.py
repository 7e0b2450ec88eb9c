"""Words for people."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 3


def some(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, what: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
