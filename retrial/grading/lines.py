"""What runners print, line by line."""

from __future__ import annotations


def without(text: str, test: str) -> str:
    """The lines that do not name the test."""
    return "".join(line for line in text.splitlines(keepends=True) if test not in line)
