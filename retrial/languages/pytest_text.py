"""What pytest prints, without what it says of one test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

# Each is asked of one line's beginning, so that it takes no longer than the line is.
RULE = re.compile(r"[=-]{3,} ")
SECTION = re.compile(r"_+ (?!_ )")
EMPTY = re.compile(r"=+ (FAILURES|short test summary info) =+$")
TOTAL = re.compile(r"=+ (?=.{0,200} in \d+\.\d+s)(.{0,200}?)(\d{1,9}) failed(, )?")
WIDTH = 80


def without(text: str, test: str) -> str:
    """Its own section, lines that name it and its part of the count go; what it says of other tests stays."""
    if test not in text:
        return text
    lines = text.splitlines(keepends=True)
    kept = list(_others(lines, test))
    failures = sum(line.startswith(("FAILED ", "SUBFAILED")) for line in lines if test in line)
    return "".join(_counted(list(_filled(kept)), failures))


def _others(lines: list[str], test: str) -> Iterator[str]:
    inside = False
    for line in lines:
        if SECTION.match(line):
            inside = test in line
        elif RULE.match(line) and not line.lstrip("-").startswith(" Captured "):
            inside = False
        if not inside and test not in line:
            yield line


def _filled(lines: list[str]) -> Iterator[str]:
    """Without headings that nothing stands under."""
    for line, following in pairwise([*lines, "=== "]):
        if not (EMPTY.match(line) and RULE.match(following)):
            yield line


def _counted(lines: list[str], fewer: int) -> list[str]:
    """With the last line that counts saying so many failures fewer."""
    for place in reversed(range(len(lines))):
        if total := TOTAL.match(lines[place]):
            left = int(total[2]) - fewer
            counted = f"{left} failed{total[3] or ''}" if left > 0 else ""
            rest = (total[1] + counted + lines[place][total.end() :]).rstrip("=\n ")
            lines[place] = f" {rest} ".center(WIDTH, "=") + "\n"
            break
    return lines
