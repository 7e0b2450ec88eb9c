"""What Jest and Node's own runner print for people, without one of the tests that failed."""

from __future__ import annotations

import re
from collections.abc import Iterator

FAILED = re.compile(r"( *)[●✕✖] ")
"""Begins what is said of a test that failed; what is further in belongs to it."""
COUNTS = re.compile(r"(Test Suites|Tests): |ℹ (tests|pass|fail) \d")
HEADERS = re.compile(r"FAIL |✖ failing tests:")
CLOSED = re.compile(r" *✖ (.*) \([\d.]+ms\)")
"""Also the end of a suite, which failed for what is in it."""
OPENED = re.compile(r" *▶ (.*)")
WHERE = "test at "


def without(text: str, test: str) -> str:
    """Nothing that counts the test is left either; that something failed, only where something else did."""
    if test not in text:
        return text
    lines = [line for line in _cut(text.splitlines(keepends=True), test) if not COUNTS.match(line)]
    suites = {found[1] for line in lines if (found := OPENED.match(line))}
    rest = [line for line in lines if not (HEADERS.match(line) or _closes(line, suites))]
    return "".join(lines if any(FAILED.match(line) for line in rest) else rest)


def _cut(lines: list[str], test: str) -> Iterator[str]:
    """The lines but those that name the test, and what is further in than one that says that it failed."""
    indent: int | None = None
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        header = FAILED.match(line)
        if indent is not None and line.strip() and (header or len(line) - len(line.lstrip(" ")) <= indent):
            indent = None
        if test in line and header:
            indent = len(header[1])
        if indent is None and test not in line and not (line.startswith(WHERE) and test in after):
            yield line


def _closes(line: str, suites: set[str]) -> bool:
    found = CLOSED.match(line)
    return found is not None and found[1] in suites
