"""The grammar of SEARCH/REPLACE blocks: where they begin and end, and which of their lines may divide them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrial.formats.parsing.reply_text import dedent

HEAD = re.compile(r"^(\s*)(<{5,9})(|\s.*)$")
DIVIDER = re.compile(r"^(\s*)(={5,9})\s*$")
END = re.compile(r"^(\s*)(>{5,9})(|\s.*)$")
SEARCH = re.compile(r"\s*SEARCH\b", re.IGNORECASE)
REPLACE = re.compile(r"\s*REPLACE\b", re.IGNORECASE)

CANDIDATES = 20
"""Lines of one block that are tried as its divider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Lines between two markers."""

    head: int
    """Index of the line of its first marker."""
    end: int
    label: str
    """What stands behind its first marker."""
    body: list[str]
    dividers: list[int]
    """Indices in the body of the lines that may be its divider, the likeliest first. A line of `=` is a heading's in
    many a document, so which it is can only be told by the file."""
    width: int
    """Signs in its first marker."""

    def parts(self, divider: int) -> tuple[str, str]:
        """SEARCH and REPLACE."""
        return text(self.body[:divider]), text(self.body[divider + 1 :])

    def has_another(self, divider: int) -> bool:
        """A line below the divider is like it, and underlines no title: models write a second one at times."""
        sign = "=" * self.width
        below = [at for at in self.dividers if at > divider and self.body[at].strip() == sign]
        return any(not _is_title(self.body[at - 1], self.width) for at in below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A marker without its partner."""

    line: int
    missing: str
    """The marker that it lacks."""
    last: bool = False
    """No other marker of its kind follows: the reply may have ended too early."""


def blocks(lines: list[str]) -> list[Block] | Broken:
    """All blocks of a reply, or the first that is broken."""
    found: list[Block] = []
    at = 0
    while at < len(lines):
        head, end = HEAD.match(lines[at]), END.match(lines[at])
        if end and REPLACE.match(end.group(3)):
            return Broken(line=at, missing="<<<<<<< SEARCH")
        if head is None:
            at += 1
            continue
        block = _block(lines, at, head)
        if isinstance(block, Broken):
            return block
        found.append(block)
        at = block.end + 1
    return found


def _block(lines: list[str], at: int, head: re.Match[str]) -> Block | Broken:
    width = len(head.group(2))
    stop = _next_head(lines, at + 1, head)
    end = _end(lines, at + 1, stop, width)
    if end is None:
        return Broken(line=at, missing=">>>>>>> REPLACE", last=stop == len(lines))
    body = dedent(lines[at + 1 : end], head.group(1))
    dividers = _dividers(body, width)
    if not dividers:
        return Broken(line=at, missing="=======")
    return Block(head=at, end=end, label=head.group(3).strip(), body=body, dividers=dividers, width=width)


def _next_head(lines: list[str], start: int, before: re.Match[str]) -> int:
    """Where the next block begins: with as many signs, and with the word SEARCH if this one has it."""
    searching = SEARCH.match(before.group(3))
    for at in range(start, len(lines)):
        head = HEAD.match(lines[at])
        if head and head.group(2) == before.group(2) and (SEARCH.match(head.group(3)) or not searching):
            return at
    return len(lines)


def _end(lines: list[str], start: int, stop: int, width: int) -> int | None:
    """The first marker that is as long as the block's first one; else any that says REPLACE; else any."""
    ends = [(at, match) for at in range(start, stop) if (match := END.match(lines[at]))]
    named = [(at, match) for at, match in ends if REPLACE.match(match.group(3))]
    equal = [(at, match) for at, match in named if len(match.group(2)) == width]
    return next((at for at, _ in equal or named or ends), None)


def _dividers(body: list[str], width: int) -> list[int]:
    """Those as long as the markers first, then those that are not indented. Of equals the last: a SEARCH that is in
    the file with a heading in it was meant to be that long."""
    matches = [(at, match) for at, line in enumerate(body) if (match := DIVIDER.match(line))][:CANDIDATES]
    ranked = sorted(matches, key=lambda item: (len(item[1].group(2)) != width, bool(item[1].group(1)), -item[0]))
    return [at for at, _ in ranked]


def _is_title(line: str, width: int) -> bool:
    return line[:1].strip() != "" and len(line) <= width and not DIVIDER.match(line)


def text(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)
