"""The grammar of unified diffs as models write them: sections of files, hunks, and no trust in numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from retrial.errors import PatchError
from retrial.formats.parsing.hunks import Hunk, goes_on, signed, without_blank_tail
from retrial.formats.parsing.reply_text import Refused, Segment, shorten
from retrial.patches import git

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


class SegmentReader:
    """Goes through one segment of a reply."""

    def __init__(self, segment: Segment, is_path: Callable[[str], bool]) -> None:
        self._segment, self._lines, self._is_path = segment, segment.lines, is_path
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
            if self._begins_another(at) or (pair and all(map(self._is_path, pair))):
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
