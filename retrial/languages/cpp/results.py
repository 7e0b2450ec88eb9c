"""Catch's own JUnit XML; and what the script of C++ makes of it for people, `--- name` before all that is of a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from retrial.languages import junit
from retrial.types import Execution, Status

HEAD = "--- "


class Catch:
    def read(self, execution: Execution) -> Mapping[str, Status] | str:
        return junit.parser().read(execution)

    def asserted(self, execution: Execution) -> frozenset[str]:
        return junit.parser().asserted(execution)

    def text(self, stdout: str) -> str:
        return stdout

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
