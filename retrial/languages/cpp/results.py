"""Catch's own JUnit XML; and what the script of C++ makes of it for people, `--- name` before all that is of a test."""

from __future__ import annotations

from retrial.languages.junit import asserted, read, text
from retrial.languages.shared import drop_parts

__all__ = ["asserted", "read", "text", "without"]

HEAD = "--- "


def without(text: str, test: str) -> str:
    def begins(line: str) -> bool | None:
        return test in line if line.startswith(HEAD) else None

    return "".join(line for line in drop_parts(text.splitlines(keepends=True), begins) if test not in line)
