"""Catch's own JUnit XML; and what the script of C++ makes of it for people, `--- name` before all that is of a test."""

from __future__ import annotations

from collections.abc import Iterator

from retrial.languages.junit import JUnit

HEAD = "--- "


class Catch(JUnit):
    def without(self, text: str, test: str) -> str:
        return "".join(_without(text.splitlines(keepends=True), test))


def parser() -> Catch:
    return Catch()


def _without(lines: list[str], test: str) -> Iterator[str]:
    about = False
    for line in lines:
        if line.startswith(HEAD):
            about = test in line
        if not about and test not in line:
            yield line
