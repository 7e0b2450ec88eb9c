"""SEARCH/REPLACE blocks, as the formats `diff` and `diff-fenced` have them: which files they are for, what they make of
them, and how they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from retrial.chat import Fault, Reply
from retrial.formats import (
    FENCE,
    Contents,
    Refused,
    dedent,
    find_mentioned_file,
    find_quoted_path,
    read_fence_path,
    read_lone_path,
    shorten,
)
from retrial.formats.parsing.matching import UNCHANGED, Miss, fits, replaced

RULES = """\
Copy the lines under SEARCH from the file exactly, whole lines with their indentation, none left out. They must be in
the file only once: take as many lines as that needs, and no more. The lines under REPLACE take their place.
For a new file write no lines under SEARCH. Blocks are applied in order, all of them or none."""
EXAMPLE = """\
<<<<<<< SEARCH
def area(width):
    return width
=======
def area(width, height):
    return width * height
>>>>>>> REPLACE"""
FORM = """\
<<<<<<< SEARCH
lines as they are in the file
=======
new lines
>>>>>>> REPLACE"""
NO_BLOCK = f"""\
I could not find any edit in your reply. Write the path of a file, then a block of this form:
{FORM}
Files to edit: {{files}}"""
BROKEN = f"""\
Nothing was changed: line {{line}} of your reply (`{{sign}}`) belongs to a block without a line `{{missing}}`. \
Every block needs all three lines of signs:
{FORM}"""
CUT = "Your reply was cut off before its last block ended. Write less around the blocks. Files to edit: {files}"
FAILED = "Nothing was changed: {failed} of {count} blocks cannot be applied. Mend them and write all blocks again."
NO_NAME = "I do not know which file it is for. Write the path above the block. Files to edit: {files}"
UNKNOWN = """\
This file is not one that you can edit. For a new file, leave out all lines between `<<<<<<< SEARCH` and `=======`. \
Files to edit: {files}"""
ANOTHER = """\
It has a second line `{sign}`. Write only one between the old lines and the new. If the new ones have such a line \
themselves, write the three lines of signs with more signs than it has."""
ELSEWHERE = "\n\nThe lines to replace are in {path}: is the block for that file?"

HEAD = re.compile(r"^(\s*)(<{5,9})(|\s.*)$")
DIVIDER = re.compile(r"^(\s*)(={5,9})\s*$")
END = re.compile(r"^(\s*)(>{5,9})(|\s.*)$")
SEARCH = re.compile(r"\s*SEARCH\b", re.IGNORECASE)
REPLACE = re.compile(r"\s*REPLACE\b", re.IGNORECASE)

CANDIDATES = 20
"""Lines of one block that are tried as its divider."""

TAG = re.compile(r"^\s*</?(?:source|code|pre|codeblock|sourcecode)>\w*\s*$")
LABEL = re.compile(r"^(?:SEARCH|ORIGINAL|HEAD)\b[>:]?\s*", re.IGNORECASE)
TOLD = 5
"""Failed blocks that a model is told of at once."""
ABOVE = 3
"""Lines of text above a block that may name its file."""


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


def contents(reply: Reply, files: Mapping[str, str]) -> Contents:
    """Raises: Refused."""
    names = ", ".join(files)
    lines = reply.text.split("\n")
    found = blocks(lines)
    if reply.finish == "length" and _cut(lines, found):
        raise Refused(CUT.format(files=names), Fault.CUT_OFF)
    if isinstance(found, Broken):
        sign = shorten(lines[found.line].strip())
        raise Refused(BROKEN.format(line=found.line + 1, sign=sign, missing=found.missing))
    if not found:
        raise Refused(NO_BLOCK.format(files=names), Fault.NO_EDIT)
    return _applied(found, lines, files)


def _cut(lines: list[str], found: list[Block] | Broken) -> bool:
    """Whether a reply that ended at its limit ended inside a block, or inside a fence that may have held one."""
    if isinstance(found, Broken):
        return found.last
    if not found:
        return True
    fences = [match.group(3) for line in lines[found[-1].end + 1 :] if (match := FENCE.match(line))]
    closing = bool(fences) and not fences[0].strip()
    return (len(fences) - closing) % 2 == 1


def _applied(found: list[Block], lines: list[str], files: Mapping[str, str]) -> Contents:
    now, touched = dict(files), dict[str, None]()
    idle: list[tuple[str, Miss]] = []
    failed: list[tuple[str, Miss]] = []
    last, above = "", 0
    done: set[tuple[str, str]] = set()
    for number, block in enumerate(found, 1):
        path, divider = _target(block, *_owner(block, lines[above : block.head], now, last), now)
        last, above = path or last, block.end + 1
        if (path, text(block.body)) in done:
            continue
        result = _replaced(block, divider, path, now)
        if isinstance(result, str):
            now[path] = result
            touched[path] = None
            done.add((path, text(block.body)))
        else:
            name = f"Block {number}{path and ', for ' + shorten(path)}:\n"
            (idle if result.text == UNCHANGED else failed).append((name, result))
        if len(failed) == TOLD:
            break
    # Models show lines that they leave alone: no harm where they do change others.
    failed = failed or ([] if touched else idle)
    if failed:
        told = [FAILED.format(failed=len(failed), count=len(found)), *(name + miss.text for name, miss in failed)]
        raise Refused("\n\n".join(told), failed[0][1].fault)
    return {path: now[path] for path in touched}


def _owner(block: Block, above: list[str], files: Mapping[str, str], last: str) -> tuple[str, list[str]]:
    """Which file a block is for, if that is sure, and guesses: by the name nearest above it; else by the block before
    it; else there may be only one file.

    A block without SEARCH lines makes a new file, so its path is taken as it is written.
    """
    new = _makes_a_file(block)
    among: Mapping[str, str] = {} if new else files
    sure = read_lone_path(LABEL.sub("", block.label), among)
    guesses: list[str] = []
    texts = 0
    for line in reversed(above):
        fence = FENCE.match(line)
        if sure or texts == ABOVE:
            break
        if fence:
            sure = read_fence_path(fence.group(3), among) if not texts else ""
        elif line.strip() and not TAG.match(line):
            path = read_lone_path(line, among)
            sure = path if not texts else ""
            guesses.append(path or find_mentioned_file(line, among))
            if new and not texts:
                guesses.append(find_quoted_path(line))
            texts += 1
    guesses += [last, *(files if len(files) == 1 else ())]
    return sure, [guess for guess in guesses if guess]


def _makes_a_file(block: Block) -> bool:
    return not any(line.strip() for line in block.body[: min(block.dividers)])


def _target(block: Block, sure: str, guesses: list[str], files: Mapping[str, str]) -> tuple[str, int]:
    """The file that a block is for, and the line that divides it: by its name, else where its SEARCH lines are."""
    paths = [sure] if sure else guesses
    for path in paths:
        divider = _fitting(block, files.get(path, ""))
        if divider is not None:
            return path, divider
    elsewhere = None if sure else _elsewhere(block, files)
    return elsewhere or (paths[0] if paths else "", min(block.dividers))


def _fitting(block: Block, content: str) -> int | None:
    return next((divider for divider in block.dividers if fits(content, *block.parts(divider))), None)


def _elsewhere(block: Block, files: Mapping[str, str]) -> tuple[str, int] | None:
    """The only file of the chat that has the SEARCH lines, once; and what divides them from the others."""
    if _makes_a_file(block):
        return None
    places = [(path, at) for path, content in files.items() if (at := _fitting(block, content)) is not None]
    return places[0] if len(places) == 1 else None


def _replaced(block: Block, divider: int, path: str, files: Mapping[str, str]) -> str | Miss:
    names = ", ".join(files)
    if not path:
        return Miss(fault=Fault.NO_NAME, text=NO_NAME.format(files=names))
    if block.has_another(divider):
        return Miss(fault=Fault.MALFORMED, text=ANOTHER.format(sign="=" * block.width))
    if path in files or _makes_a_file(block):
        result = replaced(files.get(path, ""), *block.parts(divider))
    else:
        result = Miss(fault=Fault.NO_MATCH, text=UNKNOWN.format(files=names))
    if isinstance(result, str) or result.fault is not Fault.NO_MATCH:
        return result
    other = _elsewhere(block, files)
    return Miss(fault=result.fault, text=result.text + ELSEWHERE.format(path=other[0])) if other else result


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
