"""A reply's text in pieces: what stands in fenced blocks, and what stands around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrial.formats.parsing.fences import FENCE, dedented

_DIFFS = {"diff", "patch", "udiff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    lines: tuple[str, ...]
    fenced: bool = False
    diff: bool = False
    """Its fence says that there is a diff in it."""
    last: bool = False
    """It goes on to the end of the text; of a fenced one, its fence was never closed."""


def segments(text: str) -> Iterator[Segment]:
    """All of a text, in order, without the fences. A block in an indented fence loses that indentation.

    A line of a diff never begins with a fence, so nothing nests here.
    """
    lines = text.split("\n")
    start = at = 0
    while at < len(lines):
        opening = _opening(lines[at])
        if opening is None:
            at += 1
            continue
        yield Segment(lines=tuple(lines[start:at]))
        end = _end(lines, at + 1, opening)
        body = dedented(lines[at + 1 : end], opening[1])
        yield Segment(lines=tuple(body), fenced=True, diff=_is_diff(opening), last=end == len(lines))
        start = at = end + 1
    yield Segment(lines=tuple(lines[start:]), last=start <= len(lines))


def _opening(line: str) -> re.Match[str] | None:
    """A fence that opens a block; an indented one only if it says so, since a line of a diff may look like it."""
    found = FENCE.match(line)
    return found if found and (not found[1] or _is_diff(found)) else None


def _is_diff(opening: re.Match[str]) -> bool:
    return bool(_DIFFS.intersection(opening[3].lower().split()[:1]))


def _end(lines: Sequence[str], start: int, opening: re.Match[str]) -> int:
    closing = re.compile(re.escape(opening[1] + opening[2]) + re.escape(opening[2][0]) + r"*\s*")
    return next((at for at in range(start, len(lines)) if closing.fullmatch(lines[at])), len(lines))
