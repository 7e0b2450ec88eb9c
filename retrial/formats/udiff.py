"""Unified diffs, as git writes them. Line numbers are not needed: models count badly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from retrial.chat import Edits, Fault, Reply, Tool
from retrial.formats.parsing.hunks import EditKind, FileEdit, carried_out, signed
from retrial.formats.parsing.reply_text import Refused, Segment, read_lone_path, resolve_path, shorten, split_segments
from retrial.formats.parsing.unified_diff import NULL, Section, SegmentReader

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


class Udiff:
    prompt = PROMPT
    tools: tuple[Tool, ...] = ()

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        listed = ", ".join(files)
        try:
            found = [(piece, list(_changes(piece, files))) for piece in split_segments(reply.text)]
            changes = [change for _, made in found for change in made]
            cut = not changes or any(_ends_inside(piece) for piece, made in found if piece.fenced or made)
            if reply.finish == "length" and cut:
                raise Refused(CUT.format(files=listed), Fault.CUT_OFF)
            if not changes:
                raise Refused(NO_DIFF.format(files=listed), Fault.NO_EDIT)
            return carried_out(changes, files)
        except Refused as error:
            return error.edits


def make() -> Udiff:
    return Udiff()


def _changes(segment: Segment, files: Mapping[str, str]) -> Iterator[FileEdit]:
    """Raises: Refused."""
    for section in SegmentReader(segment, lambda name: _may_be_name(name, files)).sections():
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
