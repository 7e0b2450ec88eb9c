"""JUnit XML as Maven's surefire leaves it, and what Maven prints without its talk about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from retrial.readers import _lines, junit
from retrial.types import Execution, Status

COLOUR = re.compile(r"\x1b\[[\d;]*m")
LEVEL = re.compile(r"^\[(?:INFO|WARNING|ERROR)\] ?")
BEGIN = re.compile(r"^\[INFO\] +T E S T S$")
SUMMARY = re.compile(r"^\[INFO\] Results:$")
TOTAL = re.compile(r"^\[\w+\] Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+$")
END = re.compile(r"^\[INFO\] BUILD FAILURE$")
TALK = re.compile(
    r"^\[INFO\]|^\[ERROR\]\s*$|^\[ERROR\] (?:-> \[|\[Help|See |To see |Re-run |For more |Command was )"
    r"|^\[ERROR\] (?:\tat |org\.apache\.maven\.)"
)
FRAME = re.compile(r"^\tat (?:java\.base/)?(?:jdk\.internal|java\.lang)\.(?:reflect|invoke)\.")
TIME = re.compile(r"(?: --|,) Time elapsed: [\d.,]+ s\b")


class Surefire:
    def read(self, execution: Execution) -> Mapping[str, Status] | str:
        return junit.make().read(execution)

    def asserted(self, execution: Execution) -> frozenset[str]:
        return junit.make().asserted(execution)

    def text(self, stdout: str) -> str:
        return "".join(f"{line}\n" for line in _told(COLOUR.sub("", stdout).splitlines()))

    def without(self, text: str, test: str) -> str:
        return _lines.without(text, test)


def make() -> Surefire:
    return Surefire()


def _told(lines: list[str]) -> Iterator[str]:
    """Everything once: Maven repeats the failures in a summary, and errors when it gives up."""
    said = set[str]()
    summary = ended = False
    for line in lines:
        total = TOTAL.match(line)
        summary = (summary or bool(SUMMARY.match(line))) and not total
        ended = ended or bool(END.match(line))
        bare = LEVEL.sub("", line).strip()
        if BEGIN.match(line):
            yield "== test"
        elif total:
            yield bare
        elif not (summary or TALK.match(line) or FRAME.match(line) or (ended and bare in said)):
            yield TIME.sub("", line)
        said.add(bare)
