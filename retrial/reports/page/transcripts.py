"""A transcript (`<instance_id>.md`), read back: attempts, and what was said in each.

It is our own writing (retrial/store/transcript.py): whatever others said stands in fences that nothing in them can end,
so lines outside of fences can be trusted to be what they look like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_FENCE = re.compile(r"(`{3,})(\w*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A fence's content, or a line beside."""

    text: str
    fenced: bool
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    heading: str
    """`user`, `assistant`, `check: tests_failed`, `patch`; empty before the first."""
    pieces: list[Piece] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return re.split("[:, ]", self.heading, maxsplit=1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptAttempt:
    heading: str
    """Empty for what is said before the first one."""
    entries: list[Section]


def read(markdown: str) -> list[TranscriptAttempt]:
    found = [TranscriptAttempt(heading="", entries=[Section(heading="")])]
    lines = iter(markdown.split("\n"))
    for line in lines:
        if line.startswith("## "):
            found.append(TranscriptAttempt(heading=line[3:], entries=[Section(heading="")]))
        elif line.startswith("### "):
            found[-1].entries.append(Section(heading=line[4:]))
        elif fence := _FENCE.fullmatch(line):
            found[-1].entries[-1].pieces.append(_fenced(fence[1], fence[2], lines))
        elif line and not line.startswith("# "):
            found[-1].entries[-1].pieces.append(Piece(text=line, fenced=False))
    return found


def _fenced(fence: str, language: str, lines: Iterator[str]) -> Piece:
    held = []
    for line in lines:
        if line == fence:
            break
        held.append(line)
    return Piece(text="\n".join(held), fenced=True, language=language)
