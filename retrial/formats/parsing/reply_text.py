"""Helpers that read a reply's text: the paths that its lines name, its fenced blocks, and the refusal of a reply."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrial.chat import Edits, Fault

SHORTENED = 200
"""Characters of a line that a problem quotes."""

FENCE = re.compile(r"^(\s*+)(`{3,}+|~{3,}+)([^`]*+)$")
"""Indentation, fence, and what stands behind it."""
_DIFFS = {"diff", "patch", "udiff"}

# Which file a line names: surely, where the name stands alone; perhaps, where it is in a sentence.
_PATH = re.compile(r"/?(?:[\w.@+-]+/)*(?:[\w@+-][\w.@+-]*)?\.[A-Za-z]\w*")
_BARE_PATH = re.compile(r"/?(?:[\w.@+-]+/)+[\w.@+-]*\w|Makefile|Dockerfile|Rakefile|Gemfile|LICENSE|README")
"""Without a suffix, as a path is seldom written."""
_NO_PATH = {"e.g", "i.e"}
_LABELS = {"file", "filename", "filepath", "path", "new", "create", "update", "updated", "edit", "modified", "changed"}
_NUMBER = re.compile(r"\(?\d+[.):]?|[-*+•]")
_DECORATION = "*`'\"#:,;()[]<>{}"


class Refused(Exception):
    """Nothing of a reply counts; holds what the model is told. Never leaves a format's `parse`."""

    def __init__(self, problem: str, fault: Fault = Fault.MALFORMED) -> None:
        super().__init__(problem)
        self.edits = Edits(problem=problem, fault=fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of a reply: what stands in a fenced block, or what stands around one."""

    lines: tuple[str, ...]
    fenced: bool = False
    diff: bool = False
    """Its fence says that there is a diff in it."""
    last: bool = False
    """It goes on to the end of the text; of a fenced one, its fence was never closed."""


def shorten(text: str) -> str:
    """Return as much of a line of a reply as a problem quotes."""
    return text if len(text) <= SHORTENED else text[:SHORTENED] + "…"


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


def fence_around(content: str) -> str:
    """Return a fence that is longer than any in the content."""
    runs = re.findall(r"^[ \t]*(`+)", content, re.MULTILINE)
    return "`" * max(3, 1 + max((len(run) for run in runs), default=0))


def dedent(lines: Sequence[str], indentation: str) -> list[str]:
    """Remove the indentation that the fence or marker above has, if every line has it."""
    if all(line.startswith(indentation) for line in lines if line.strip()):
        return [line.removeprefix(indentation) for line in lines]
    return list(lines)


def read_lone_path(text: str, files: Mapping[str, str]) -> str:
    """Return the path that a line is nothing but, however decorated: that of a file of the chat, or a new one's."""
    whole = text.strip().strip("`*").strip()
    if not whole:
        return ""
    words = [word for word in _words(text) if word.lower() not in _LABELS]
    if whole in files or len(words) != 1:
        return whole if whole in files else ""
    is_path = _is_path(words[0]) or (words[0] == whole and _BARE_PATH.fullmatch(whole))
    return resolve_path(words[0], files) or (words[0] if is_path else "")


def find_mentioned_file(text: str, files: Mapping[str, str]) -> str:
    """Return the last file of the chat that a sentence names."""
    paths = [resolve_path(word, files) for word in _words(text) if "." in word or "/" in word or f"`{word}`" in text]
    return next((path for path in reversed(paths) if path), "")


def find_quoted_path(text: str) -> str:
    """Return the last path that a sentence has in backticks."""
    paths = [path.removeprefix("./") for path in re.findall(r"`([^`\s]+)`", text) if _is_path(path)]
    return paths[-1] if paths else ""


def resolve_path(word: str, files: Mapping[str, str]) -> str:
    """Return the file of the chat that a path means: itself, or the only one where one of the two is the other's end.

    A path that goes up means none: it leads elsewhere.
    """
    if word in files or ".." in word.split("/"):
        return word if word in files else ""
    ends = [path for path in files if path.endswith("/" + word) or word.endswith("/" + path)]
    return ends[0] if len(ends) == 1 else ""


def read_fence_path(info: str, files: Mapping[str, str]) -> str:
    """Return the path behind an opening fence: `python a.py`, `python:a.py`, `python title="a.py"` or `a.py`."""
    info = info.strip()
    for part in (info.partition(" ")[2], info.partition(":")[2], info.partition("=")[2], info):
        path = read_lone_path(part, files)
        if path and (path in files or _is_path(path)):
            return path
    return ""


def read_comment_path(line: str, files: Mapping[str, str]) -> str:
    """Return the path that a comment is nothing but."""
    opening = re.match(r"\s*(?:#|//|--|/\*|<!--)+\s+", line)
    rest = line[opening.end() :].strip().removesuffix("*/").removesuffix("-->") if opening else ""
    return read_lone_path(rest, files)


def _match_opening(line: str) -> re.Match[str] | None:
    """A fence that opens a block; an indented one only if it says so, since a line of a diff may look like it."""
    found = FENCE.match(line)
    return found if found and (not found[1] or _is_diff(found)) else None


def _is_diff(opening: re.Match[str]) -> bool:
    return bool(_DIFFS.intersection(opening[3].lower().split()[:1]))


def _find_end(lines: Sequence[str], start: int, opening: re.Match[str]) -> int:
    closing = re.compile(re.escape(opening[1] + opening[2]) + re.escape(opening[2][0]) + r"*\s*")
    return next((at for at in range(start, len(lines)) if closing.fullmatch(lines[at])), len(lines))


def _is_path(word: str) -> bool:
    return bool(_PATH.fullmatch(word)) and word.lower() not in _NO_PATH


def _words(text: str) -> list[str]:
    raw = [word for word in text.split() if not _NUMBER.fullmatch(word)]
    words = (word.strip(_DECORATION).rstrip(".").removeprefix("./") for word in raw)
    return [word for word in words if word]


def joined(lines: Sequence[str], like: str) -> str:
    """Lines as a text that ends as another one does: with a newline, unless that has none at its end."""
    ended = not like or like.endswith("\n")
    return "\n".join(lines) + ("\n" if lines and ended else "")
