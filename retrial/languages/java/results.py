"""JUnit XML as Maven's surefire leaves it, and what Maven prints without its talk about itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retrial.languages.junit import asserted, read
from retrial.languages.shared import drop_parts

__all__ = ["asserted", "read", "text", "without"]

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
FAILED = "[ERROR] "
"""How the first line of what is said of a test begins; ` <<< FAILURE!` or ` <<< ERROR!` comes after its name."""
COUNTS = re.compile(r"Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9})(?=, Skipped: )")
GIVES_UP = "[ERROR] Failed to execute goal "
TIME = re.compile(r"(?: --|,) Time elapsed: [\d.,]+ s\b")


def text(stdout: str) -> str:
    return "".join(f"{line}\n" for line in _told(COLOUR.sub("", stdout).splitlines()))


def without(text: str, test: str) -> str:
    lines = text.splitlines(keepends=True)
    failures = [failure for line in lines if (failure := _failure(line))]
    gone = [failure for failure in failures if test in failure.test]

    def begins(line: str) -> bool | None:
        """A part continues until Maven begins another one."""
        failure = _failure(line)
        return bool(failure and test in failure.test) if LEVEL.match(line) or COUNTS.match(line) else None

    left = (_recounted(line, gone) for line in drop_parts(lines, begins) if test not in line)
    alone = len(gone) == len(failures)
    return "".join(line for line in left if not (alone and gone and line.startswith(GIVES_UP)))


@dataclass(frozen=True, slots=True)
class FailedTest:
    """As its first line names it."""

    test: str
    """With its class before it."""
    error: bool
    """An exception, not an assertion."""


def _failure(line: str) -> FailedTest | None:
    """Not by a pattern: a line may be as long as the job liked."""
    name, _, kind = line.partition(" <<< ")
    # The line of a whole class has its counts there.
    if not line.startswith(FAILED) or not kind.startswith(("FAILURE!", "ERROR!")) or COUNTS.search(name):
        return None
    return FailedTest(name.removeprefix(FAILED), kind.startswith("ERROR!"))


def _recounted(line: str, gone: list[FailedTest]) -> str:
    """The counts as if those had not been there; nothing for a class in which nothing else failed."""
    counts = COUNTS.search(line)
    if not counts or not gone:
        return line
    owner = line.partition(" -- in ")[2].strip()
    own = [failure for failure in gone if failure.test.startswith(f"{owner}." if owner else "")]
    errors = sum(failure.error for failure in own)
    ran, failed, erred = (
        max(0, int(count) - fewer)
        for count, fewer in zip(counts.groups(), (len(own), len(own) - errors, errors), strict=True)
    )
    if own and owner and not failed + erred:
        return ""
    said = f"Tests run: {ran}, Failures: {failed}, Errors: {erred}"
    return line[: counts.start()] + said + line[counts.end() :]


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
