"""Changes of files as diffs write them, hunk by hunk: where a reply may have them, and how they are carried out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from retrial.chat import Fault
from retrial.formats import FENCE, Contents, Refused, dedent, resolve_path, shorten
from retrial.formats.parsing.matching import Miss, found, replaced, split

CANNOT = "Nothing was changed: hunk {number} of {count} for {path} does not fit. {why}"
NO_SIGN = "It has no line that begins with + or -, so it changes nothing."
NO_CONTEXT = (
    "It only adds lines and does not say where. Begin it with lines of the file that stand before or after them."
)
NO_HUNK = "Nothing was changed: there is no hunk for {path}. Write the lines that change."
NOT_THERE = "Nothing was changed: {path} is not one of the files to edit. Files to edit: {files}"
IS_THERE = (
    "Nothing was changed: {path} is to be added, but it is there already. Change its lines instead of adding the file."
)


_BEGINS = ("@@", "--- ", "diff --git ", "***")
"""What begins another hunk or file, in whatever format."""
_DIFFS = {"diff", "patch", "udiff"}
"""What a fence with a diff in it says."""
_REMOVED = re.compile(r"-(?! \S)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of a reply: what stands in a fenced block, or what stands around one."""

    lines: tuple[str, ...]
    fenced: bool = False
    diff: bool = False
    """Its fence says that there is a diff in it."""
    last: bool = False
    """It goes on to the end of the text; of a fenced one, its fence was never closed."""


class EditKind(Enum):
    ADD = auto()
    UPDATE = auto()
    DELETE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Lines of a file in a row: some stay, some go, some come."""

    lines: tuple[str, ...]
    """Each with its sign, which is a blank, `-` or `+`."""
    scopes: tuple[str, ...] = ()
    """Lines in whose blocks it is, the outer one first; asked only where it would fit in several places."""
    at_end: bool = False
    """It is the end of the file; asked as scopes are."""
    ends_open: bool | None = None
    """Whether the file's last line is without a newline afterwards; None: as it was."""

    @property
    def before(self) -> str:
        return "".join(line[1:] + "\n" for line in self.lines if line[0] != "+")

    @property
    def after(self) -> str:
        return "".join(line[1:] + "\n" for line in self.lines if line[0] != "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """What is to become of one file."""

    kind: EditKind
    path: str
    hunks: tuple[Hunk, ...] = ()
    target: str = ""
    """Its new name, if it gets one."""


def split_segments(text: str) -> Iterator[Segment]:
    """Yield all of a text, in order, without the fences. A block in an indented fence loses that indentation.

    A line of a diff never begins with a fence, so nothing nests here.
    """
    lines = text.split("\n")
    start = at = 0
    while at < len(lines):
        opening = _match_opening(lines[at])
        if opening is None:
            at += 1
            continue
        yield Segment(lines=tuple(lines[start:at]))
        end = _find_end(lines, at + 1, opening)
        body = dedent(lines[at + 1 : end], opening[1])
        yield Segment(lines=tuple(body), fenced=True, diff=_is_diff(opening), last=end == len(lines))
        start = at = end + 1
    yield Segment(lines=tuple(lines[start:]), last=start <= len(lines))


def _match_opening(line: str) -> re.Match[str] | None:
    """A fence that opens a block; an indented one only if it says so, since a line of a diff may look like it."""
    found = FENCE.match(line)
    return found if found and (not found[1] or _is_diff(found)) else None


def _is_diff(opening: re.Match[str]) -> bool:
    return bool(_DIFFS.intersection(opening[3].lower().split()[:1]))


def _find_end(lines: Sequence[str], start: int, opening: re.Match[str]) -> int:
    closing = re.compile(re.escape(opening[1] + opening[2]) + re.escape(opening[2][0]) + r"*\s*")
    return next((at for at in range(start, len(lines)) if closing.fullmatch(lines[at])), len(lines))


def signed(line: str) -> str:
    """A hunk's line with its sign, which blank lines, a lone `...` and lines that begin with a tab may lack; empty if
    it is none."""
    if line[:1] in ("", "\t") or line.rstrip() == "...":
        return " " + line
    return line if line[0] in " +-" else ""


def without_blank_tail(lines: Sequence[str]) -> list[str]:
    """A hunk's lines without those at its end that have not even a sign: they belong to the text around it."""
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    return list(lines[:end])


def goes_on(lines: Sequence[str], at: int) -> bool:
    """A line without a sign is followed, in its paragraph, by lines of a hunk: it is not the text around it, which may
    well have a list with dashes."""
    for line in (lines[index] for index in range(at, len(lines))):
        if not line.strip() or line.startswith(_BEGINS):
            return False
        if line.startswith("+") or _REMOVED.match(line):
            return True
    return False


def meant(path: str, files: Mapping[str, str | None]) -> str:
    """The file that is there and that a path means, else the path as it is written."""
    if files.get(path) is not None:
        return path
    return resolve_path(path, {name: content for name, content in files.items() if content is not None}) or path


def carried_out(changes: Iterable[FileEdit], files: Mapping[str, str]) -> Contents:
    """What the files are afterwards, each change made to what those before it left.

    What is said twice, word for word, counts once.

    Raises: Refused.
    """
    now: dict[str, str | None] = dict(files)
    touched: dict[str, None] = {}
    names = ", ".join(files)
    for change in dict.fromkeys(changes):
        made = _added(change, now) if change.kind is EditKind.ADD else _changed(change, now, names)
        now |= made
        touched |= dict.fromkeys(made)
    return {path: now[path] for path in touched}


def _added(change: FileEdit, files: Mapping[str, str | None]) -> dict[str, str | None]:
    if (files.get(change.path) or "").strip():
        raise Refused(IS_THERE.format(path=shorten(change.path)))
    content = "".join(hunk.after for hunk in change.hunks)
    ends_open = bool(change.hunks) and change.hunks[-1].ends_open
    return {change.path: content.removesuffix("\n") if ends_open else content}


def _changed(change: FileEdit, files: Mapping[str, str | None], names: str) -> dict[str, str | None]:
    path = change.path if change.kind is EditKind.DELETE else meant(change.path, files)
    content = files.get(path)
    if content is None:
        raise Refused(NOT_THERE.format(path=shorten(change.path), files=names), Fault.NOT_ALLOWED)
    if change.kind is EditKind.DELETE:
        return {path: None}
    if not change.hunks and not change.target:
        raise Refused(NO_HUNK.format(path=path))
    content = _updated(path, content, tuple(dict.fromkeys(change.hunks)))
    if change.target in ("", path):
        return {path: content}
    if files.get(change.target):
        raise Refused(IS_THERE.format(path=shorten(change.target)))
    return {path: None, change.target: content}


def _updated(path: str, content: str, hunks: Sequence[Hunk]) -> str:
    for number, hunk in enumerate(hunks, start=1):
        result = _applied(content, hunk)
        if isinstance(result, Miss):
            raise Refused(CANNOT.format(number=number, count=len(hunks), path=path, why=result.text), result.fault)
        content = result
    return content


def _applied(content: str, hunk: Hunk) -> str | Miss:
    result = _replaced(content, hunk)
    if isinstance(result, Miss) or hunk.ends_open is None:
        return result
    ended = result.removesuffix("\n")
    if not ended.endswith(hunk.after.removesuffix("\n")):
        # Models write that there is no newline at the end of the file where its end is not in sight.
        return result
    return ended if hunk.ends_open or not result else ended + "\n"


def _replaced(content: str, hunk: Hunk) -> str | Miss:
    before, after = hunk.before, hunk.after
    if not before and not content.strip():
        return after
    if not before and hunk.at_end:
        return content + ("" if content.endswith("\n") else "\n") + after
    if not before:
        return Miss(fault=Fault.MALFORMED, text=NO_CONTEXT)
    if all(line[0] == " " for line in hunk.lines):
        return Miss(fault=Fault.MALFORMED, text=NO_SIGN)
    if before == after and hunk.ends_open is not None and found(split(content), split(before)):
        return content
    result = replaced(content, before, after)
    if isinstance(result, Miss) and result.fault is Fault.AMBIGUOUS:
        narrowed = _narrowed(content, hunk)
        return result if narrowed is None else narrowed
    return result


def _narrowed(content: str, hunk: Hunk) -> str | None:
    """The hunk carried out in the one of its blocks in which it fits, if there is exactly one."""
    lines = split(content)
    blocks = _blocks(lines, hunk.scopes) if hunk.scopes else []
    if hunk.at_end:
        blocks = [(max(0, len(lines) - len(split(hunk.before))), len(lines))]
    results = []
    for start, end in blocks:
        result = replaced("".join(line + "\n" for line in lines[start:end]), hunk.before, hunk.after)
        if isinstance(result, Miss) and result.fault is Fault.AMBIGUOUS:
            return None
        if not isinstance(result, Miss):
            results.append([*lines[:start], *split(result), *lines[end:]])
    if len(results) != 1:
        return None
    return "\n".join(results[0]) + ("\n" if results[0] and content.endswith("\n") else "")


def _blocks(lines: Sequence[str], scopes: Iterable[str]) -> list[tuple[int, int]]:
    """From each line that a scope names to the end of its block, inside the blocks of the scope before it."""
    blocks = [(0, len(lines))]
    for scope in scopes:
        inside = [at for start, end in blocks for at in range(start, end)]
        blocks = [(at, _end_of_block(lines, at)) for at in _named(lines, inside, scope.strip())]
    return blocks


def _named(lines: Sequence[str], inside: Sequence[int], scope: str) -> list[int]:
    """The lines that are what a scope says; else those that begin with it, as `def add` does for `def add(a, b):`."""
    exactly = [at for at in inside if lines[at].strip() == scope]
    word = re.compile(re.escape(scope) + r"(?!\w)")
    return exactly or [at for at in inside if word.match(lines[at].strip())]


def _end_of_block(lines: Sequence[str], start: int) -> int:
    """Behind the last line that is indented further than the first; brackets that stand alone end nothing."""
    depth = _depth(lines[start])
    for at in range(start + 1, len(lines)):
        if any(char.isalnum() for char in lines[at]) and _depth(lines[at]) <= depth:
            return at
    return len(lines)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
