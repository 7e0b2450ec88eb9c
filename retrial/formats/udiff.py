"""Unified diffs, as git writes them. Line numbers are not needed: models count badly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from retrial.chat import Fault, Reply
from retrial.errors import PatchError
from retrial.formats import Contents, Format, Refused, read_lone_path, resolve_path, shorten
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
from retrial.patches import git

PROMPT = """\
You are an expert programmer. Reply with your changes as a unified diff in a fenced block, in this form:

```diff
--- a/path/of/file.py
+++ b/path/of/file.py
@@ @@
-def area(width):
-    return width
+def area(width, height):
+    return width * height
```

Each hunk begins with a line of @@; line numbers are not needed. A line that goes begins with `-`, a line that comes \
with `+`, a line that stays with a blank. Copy the lines that go or stay exactly from the file, none left out between \
them, and so many of those that stay that the hunk fits in one place only. The diff of a new file begins with \
`--- /dev/null`; one that removes a file has `+++ /dev/null`."""

NO_DIFF = "I could not find a diff in your reply. Write one in a block that begins with ```diff. Files to edit: {files}"
NO_NAME = """\
I do not know which file the diff is for. Begin it with the lines `--- a/PATH` and `+++ b/PATH`.
Files to edit: {files}"""
TWO_NAMES = "Nothing was changed: the diff names two files, {old} and {new}. Write one path after both --- and +++."
NO_LINES = "Nothing was changed: the diff has {new} as a copy or as binary data. Write its lines instead."
CUT = "Your reply was cut off before the end of its diff. Write less around it. Files to edit: {files}"
BAD_LINE = """\
Nothing was changed: this line of the diff begins with none of `+`, `-` and a blank:
{line}"""

NULL = "/dev/null"
"""The name of no file."""

_NUMBERS = re.compile(r"@@ -\d+(?:,(\d{1,9}))? \+\d+(?:,(\d{1,9}))? @@")
_TIME = re.compile(r"\t.*|(?<!\s)\s++\d{4}-\d\d-\d\d\b.*", re.DOTALL)
_GIT_LINE = re.compile(
    r"(index|(?:old|new|new file|deleted file) mode|(?:dis)?similarity index|(?:rename|copy) (?:from|to)"
    r"|GIT binary patch|Binary files)\b ?(.*)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What a diff says of one file; names as they are written, empty where there is none."""

    old: str = ""
    new: str = ""
    marks: frozenset[str] = frozenset()
    """What git says besides: `new file mode`, `rename to`, …"""
    hunks: list[Hunk] = field(default_factory=list)


def make() -> Format:
    return Format(PROMPT, _contents)


def _contents(reply: Reply, files: Mapping[str, str]) -> Contents:
    listed = ", ".join(files)
    found = [(piece, list(_changes(piece, files))) for piece in split_segments(reply.text)]
    changes = [change for _, made in found for change in made]
    cut = not changes or any(_ends_inside(piece) for piece, made in found if piece.fenced or made)
    if reply.finish == "length" and cut:
        raise Refused(CUT.format(files=listed), Fault.CUT_OFF)
    if not changes:
        raise Refused(NO_DIFF.format(files=listed), Fault.NO_EDIT)
    return carried_out(changes, files)


def _changes(segment: Segment, files: Mapping[str, str]) -> Iterator[FileEdit]:
    """Raises: Refused."""
    for section in SegmentReader(segment, files).sections():
        if section.hunks or not _is_idle(section):
            yield _change(section, files)


def _is_idle(section: Section) -> bool:
    """It has nothing for us: not a line, or only a file's mode."""
    nameless = not section.old and not section.new
    return nameless or (bool(section.marks) and section.marks <= {"old mode", "new mode", "index"})


def _change(section: Section, files: Mapping[str, str]) -> FileEdit:
    """Raises: Refused."""
    hunks = tuple(section.hunks)
    old, new = (_plain(name, section, files) for name in (section.old, section.new))
    if not old and len(files) == 1:
        old = new = next(iter(files))
    if not old or old == new == NULL:
        raise Refused(NO_NAME.format(files=", ".join(files)), Fault.NO_NAME)
    if section.marks & {"copy to", "GIT binary patch", "Binary files"}:
        raise Refused(NO_LINES.format(new=shorten(new)))
    if NULL in (old, new):
        kind, path = (EditKind.ADD, new) if old == NULL else (EditKind.DELETE, old)
        return FileEdit(kind=kind, path=path, hunks=hunks)
    if "rename to" in section.marks:
        return FileEdit(kind=EditKind.UPDATE, path=old, hunks=hunks, target=new)
    if old not in files and resolve_path(old, files) == resolve_path(new, files) != "":
        # Folders that are not there, as in `old/add.py` and `new/add.py`.
        return FileEdit(kind=EditKind.UPDATE, path=new, hunks=hunks)
    if old != new and (new not in files or old in files):
        raise Refused(TWO_NAMES.format(old=shorten(old), new=shorten(new)))
    return FileEdit(kind=EditKind.UPDATE, path=new, hunks=hunks)


def _plain(name: str, section: Section, files: Mapping[str, str]) -> str:
    """A name without what diffs put before it; a folder that is called `a` is still found."""
    bare = re.sub(r"^(?:[ab]/|\./)", "", name)
    as_it_is = name in files and (bare not in files or section.old == section.new)
    return name if as_it_is or "rename to" in section.marks else bare


def _may_be_name(name: str, files: Mapping[str, str]) -> bool:
    return name == NULL or name.startswith(("a/", "b/")) or bool(read_lone_path(name, files))


def _ends_inside(segment: Segment) -> bool:
    """The text ends in this segment, and not with words."""
    written = [line for line in segment.lines if line.strip()]
    return segment.last and bool(written) and (segment.fenced or bool(signed(written[-1])))


class SegmentReader:
    """Goes through one segment of a reply."""

    def __init__(self, segment: Segment, files: Mapping[str, str]) -> None:
        self._segment, self._lines, self._files = segment, segment.lines, files
        self._at = 0

    def sections(self) -> Iterator[Section]:
        """All files' sections; a nameless one for hunks without a header.

        Raises: Refused.
        """
        section = None
        while self._at < len(self._lines):
            header = self._header()
            if header is not None or (section is None and self._begins_hunk(None)):
                if section is not None:
                    yield section
                section = header or Section()
            elif section is not None and self._begins_hunk(section):
                section.hunks.extend(self._hunk())
            else:
                self._at += 1
        if section is not None:
            yield section

    def _header(self) -> Section | None:
        """The header that begins here, read to its end; None if there is none."""
        line = self._lines[self._at]
        if line.startswith("diff --git "):
            return self._git_header()
        pair = self._pair(self._at)
        if pair is not None:
            self._at += 2
            return Section(old=pair[0], new=pair[1])
        following = self._lines[self._at + 1 : self._at + 2]
        if line.startswith(("--- ", "+++ ")) and following and following[0].startswith("@@"):
            self._at += 1
            return Section(old=_name(line), new=_name(line))
        return None

    def _git_header(self) -> Section:
        name = _same_name(self._lines[self._at].removeprefix("diff --git ").rstrip())
        self._at += 1
        said: dict[str, str] = {}
        while self._at < len(self._lines) and (found := _GIT_LINE.match(self._lines[self._at])):
            said[found[1]] = found[2]
            self._at += 1
        section = _section(name, said)
        pair = self._pair(self._at)
        if pair is None:
            return section
        self._at += 2
        return section if "rename to" in said else replace(section, old=pair[0], new=pair[1])

    def _pair(self, at: int) -> tuple[str, str] | None:
        """The names in two lines of `---` and `+++`."""
        old, new = (*self._lines[at : at + 2], "", "")[:2]
        return (_name(old), _name(new)) if old.startswith("--- ") and new.startswith("+++ ") else None

    def _begins_hunk(self, section: Section | None) -> bool:
        """With or without a line of `@@`: a block that is a diff has nothing else in it."""
        line = self._lines[self._at]
        if line.startswith("@@"):
            return True
        inside = self._segment.diff or (section is not None and (self._segment.fenced or not section.hunks))
        return inside and bool(line.strip()) and bool(signed(line))

    def _hunk(self) -> list[Hunk]:
        """The one that begins here, unless it has no lines."""
        numbers = _NUMBERS.match(self._lines[self._at])
        if self._lines[self._at].startswith("@@"):
            self._at += 1
        start = self._at
        self._at = (self._counted(start, numbers) if numbers else None) or self._scanned(start)
        hunk = _hunk(self._lines[start : self._at])
        return [hunk] if hunk.lines else []

    def _counted(self, start: int, numbers: re.Match[str]) -> int | None:
        """The hunk's end by its numbers; None unless they lead to where a hunk can end, for models count badly."""
        old, new = (int(count or 1) for count in numbers.groups())
        at = start
        while (old > 0 or new > 0) and at < len(self._lines):
            sign = "\\" if self._lines[at].startswith("\\ ") else signed(self._lines[at])[:1]
            if not sign:
                return None
            old, new = old - (sign in " -"), new - (sign in " +")
            at += 1
        while at < len(self._lines) and self._lines[at].startswith("\\ "):
            at += 1
        return at if (old, new) == (0, 0) and at > start and self._may_end(at) else None

    def _may_end(self, at: int) -> bool:
        while at < len(self._lines) and not self._lines[at]:
            at += 1
        if at == len(self._lines) or self._begins_another(at) or self._pair(at):
            return True
        return not self._segment.fenced and not signed(self._lines[at])

    def _begins_another(self, at: int) -> bool:
        return self._lines[at].startswith(("@@", "diff --git "))

    def _scanned(self, start: int) -> int:
        """The hunk's end by what its lines begin with. A removed `-- x` before an added `++ y` is no header."""
        for at in range(start, len(self._lines)):
            line, pair = self._lines[at], self._pair(at)
            if self._begins_another(at) or (pair and all(_may_be_name(name, self._files) for name in pair)):
                return at
            if not signed(line) and not line.startswith("\\ "):
                if self._segment.fenced or goes_on(self._lines, at):
                    raise Refused(BAD_LINE.format(line=shorten(line)))
                return at
        return len(self._lines)


def _same_name(both: str) -> str:
    """The name in `a/NAME b/NAME`, which may have blanks in it; none if they are two."""
    name = both[2 : (len(both) - 1) // 2]
    return name if both == f"a/{name} b/{name}" else ""


def _section(name: str, said: Mapping[str, str]) -> Section:
    """What git's own lines say, where no others follow: files without lines, and files with another name."""
    old = said.get("rename from") or said.get("copy from") or name
    new = said.get("rename to") or said.get("copy to") or name
    return Section(
        old=NULL if "new file mode" in said else _unquoted(old),
        new=NULL if "deleted file mode" in said else _unquoted(new),
        marks=frozenset(said),
    )


def _hunk(lines: Sequence[str]) -> Hunk:
    kept: list[str] = []
    ends_open: bool | None = None
    for line in without_blank_tail(lines):
        if not line.startswith("\\ "):
            kept.append(signed(line))
        elif kept:
            ends_open = bool(ends_open) or kept[-1][0] != "-"
    return Hunk(lines=tuple(kept), ends_open=ends_open)


def _name(line: str) -> str:
    """What `--- ` or `+++ ` names, without a time."""
    return _unquoted(_TIME.sub("", line[4:]).strip().strip("`"))


def _unquoted(name: str) -> str:
    if len(name) < 2 or not (name.startswith('"') and name.endswith('"')):
        return name
    try:
        return git.unquote(name)
    except PatchError:
        return name
