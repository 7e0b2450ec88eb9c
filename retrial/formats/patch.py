"""The patches that some models are trained to write: `*** Begin Patch`, and places named by what stands there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from retrial.chat import Fault, Reply
from retrial.formats import Contents, Format, Refused, shorten
from retrial.formats.parsing.hunks import (
    EditKind,
    FileEdit,
    Hunk,
    Segment,
    carried_out,
    goes_on,
    signed,
    split_segments,
    without_blank_tail,
)

PROMPT = """\
You are an expert programmer. Reply with your changes as one patch, in this form:

*** Begin Patch
*** Update File: path/of/file.py
@@
-def area(width):
-    return width
+def area(width, height):
+    return width * height
*** End Patch

Besides `*** Update File: PATH` there are `*** Add File: PATH`, below which all lines of the new file begin with `+`, \
and `*** Delete File: PATH`. In an update, a line that goes begins with `-`, a line that comes with `+`, a line that \
stays with a blank. Copy the lines that go or stay exactly from the file, with three that stay before and after each \
change. Begin each hunk with a line of @@. If its lines are in the file more than once, write the line of the function \
or class that they are in behind the @@."""

NO_PATCH = """\
I could not find a patch in your reply. Write one that begins with `*** Begin Patch` and a line such as
`*** Update File: PATH`. Files to edit: {files}"""
BAD_LINE = """\
Nothing was changed: I cannot read this line of the patch. In an update lines begin with `+`, `-` or a blank, in a new \
file all of them with `+`:
{line}"""
CUT = "Your reply was cut off before the end of its patch. Write less around it. Files to edit: {files}"

BEGIN, END, LAST = "*** Begin Patch", "*** End Patch", "*** End of File"

_ACTION = re.compile(r"\*\*\* (Update|Add|Delete) File:\s*(.+)")
_MOVE = re.compile(r"\*\*\* Move to:\s*(.+)")
_NUMBERS = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")


def make() -> Format:
    return Format(PROMPT, _contents)


def _contents(reply: Reply, files: Mapping[str, str]) -> Contents:
    listed = ", ".join(files)
    pieces = list(split_segments(reply.text))
    marks = [mark for piece in pieces for line in piece.lines if _is_mark(mark := line.rstrip())]
    changes = [change for piece in pieces for change in _changes(piece, strict=END in marks)]
    if reply.finish == "length" and marks[-1:] != [END]:
        raise Refused(CUT.format(files=listed), Fault.CUT_OFF)
    if not changes:
        raise Refused(NO_PATCH.format(files=listed), Fault.NO_EDIT)
    return carried_out(changes, files)


def _changes(segment: Segment, *, strict: bool) -> Iterator[FileEdit]:
    """Strict: a line that is not the patch's is a mistake in it, not the text that follows.

    Raises: Refused.
    """
    lines = [line.rstrip() if line.startswith("***") else line for line in segment.lines]
    starts = [at for at, line in enumerate(lines) if line != END and _is_mark(line)]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=False):
        end = next((at for at in range(start, stop) if lines[at] == END), stop)
        body, action = lines[start + 1 : end], _ACTION.fullmatch(lines[start])
        if action:
            yield _change(action[1], _path(action[2]), body, strict or segment.fenced)
        else:
            _own(body, lambda line: not line.startswith("***"), strict)


def _is_mark(line: str) -> bool:
    return line in (BEGIN, END) or bool(_ACTION.fullmatch(line))


def _change(verb: str, path: str, body: list[str], strict: bool) -> FileEdit:
    if verb == "Delete":
        _own(body, lambda line: not line.strip(), strict)
        return FileEdit(kind=EditKind.DELETE, path=path)
    if verb == "Add":
        lines = without_blank_tail(_own(body, lambda line: line[:1] in ("", "+"), strict))
        hunk = Hunk(lines=tuple(line or "+" for line in lines))
        return FileEdit(kind=EditKind.ADD, path=path, hunks=(hunk,))
    moved = _MOVE.fullmatch(body[0]) if body else None
    hunks = _hunks(_own(body[1:] if moved else body, _is_of_update, strict))
    return FileEdit(kind=EditKind.UPDATE, path=path, hunks=tuple(hunks), target=_path(moved[1]) if moved else "")


def _own(body: list[str], is_own: Callable[[str], bool], strict: bool) -> list[str]:
    """A section's lines up to the first that is none of its own.

    Raises: Refused if that is a mistake.
    """
    end = next((at for at, line in enumerate(body) if not is_own(line)), len(body))
    if end < len(body) and (strict or goes_on(body, end)):
        raise Refused(BAD_LINE.format(line=shorten(body[end])))
    return body[:end]


def _is_of_update(line: str) -> bool:
    return bool(signed(line)) or line.startswith(("@@", "\\ ")) or line == LAST


def _hunks(body: list[str]) -> Iterator[Hunk]:
    """Lines between those of `@@`; several of these in a row are scopes, one inside the other."""
    lines: list[str] = []
    scopes: list[str] = []
    for line in [*body, "@@"]:
        if line.startswith("@@") or line == LAST:
            kept = tuple(map(signed, without_blank_tail(lines)))
            if kept:
                yield Hunk(lines=kept, scopes=tuple(filter(None, scopes)), at_end=line == LAST)
                scopes = []
            scopes.append(_scope(line))
            lines = []
        elif not line.startswith("\\ "):
            lines.append(line)


def _scope(line: str) -> str:
    """What stands behind `@@`, without the numbers that some write there; nothing for the end of the file."""
    return "" if line == LAST else _NUMBERS.sub("@@", line)[2:].strip().removesuffix("@@").strip()


def _path(text: str) -> str:
    return text.strip().strip("`").removeprefix("./")
