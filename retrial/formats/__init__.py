"""Edit formats, one file each: prompt, tool schema, parser of replies. Here is what all of them share.

Imports `grading` and what is below; `agents` and the folders above may import it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TypeAlias

from retrial.chat import Edit, Edits, Fault, Reply, Tool
from retrial.patches.git import is_allowed
from retrial.protocols import EditFormat

Contents: TypeAlias = Mapping[str, str | None]
"""What a reply makes of each file that it edits; None: the file is to go."""

EMPTY = "Your reply is empty. Write the edits in the form that was asked for. Files to edit: {files}"
CUT_OFF = "Your reply was cut off before its end. Write less around the edits. Files to edit: {files}"
NOT_ALLOWED = "Nothing was changed: your reply edits {path}, and only these files may be edited: {files}"
SHARED = (EMPTY, CUT_OFF, NOT_ALLOWED)

MARK = "\ufeff"

# At the beginning; or what closes a beginning that the provider kept for itself, at a line's end, for code has such a
# tag in quotes.
_REASONING = re.compile(
    r"\A\s*<(think|thinking|reasoning|thought)>.*?(?:</\1>|\Z)"
    r"|\A(?:(?!<think).)*?</(?:think|thinking|reasoning)>[ \t]*$",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)

SHORTENED = 200
"""Characters of a line that a problem quotes."""

FENCE = re.compile(r"^(\s*+)(`{3,}+|~{3,}+)([^`]*+)$")
"""Indentation, fence, and what stands behind it."""
# Which file a line names: surely, where the name stands alone; perhaps, where it is in a sentence.
_PATH = re.compile(r"/?(?:[\w.@+-]+/)*(?:[\w@+-][\w.@+-]*)?\.[A-Za-z]\w*")
_BARE_PATH = re.compile(r"/?(?:[\w.@+-]+/)+[\w.@+-]*\w|Makefile|Dockerfile|Rakefile|Gemfile|LICENSE|README")
"""Without a suffix, as a path is seldom written."""
_NO_PATH = {"e.g", "i.e"}
_LABELS = {"file", "filename", "filepath", "path", "new", "create", "update", "updated", "edit", "modified", "changed"}
_NUMBER = re.compile(r"\(?\d+[.):]?|[-*+•]")
_DECORATION = "*`'\"#:,;()[]<>{}"


class Refused(Exception):
    """Nothing of a reply counts; holds what the model is told. Never leaves `Format.parse`."""

    def __init__(self, problem: str, fault: Fault = Fault.MALFORMED) -> None:
        super().__init__(problem)
        self.edits = Edits(problem=problem, fault=fault)


class Format:
    """An edit format: what its model is told, its function if it has one, and how a reply is read."""

    def __init__(
        self, prompt: str, contents: Callable[[Reply, Mapping[str, str]], Contents], tools: tuple[Tool, ...] = ()
    ) -> None:
        self.prompt, self.tools = prompt, tools
        self._contents = contents
        """Raises: Refused."""

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        try:
            contents = self._contents(reply, files)
        except Refused as error:
            return error.edits
        return Edits(edits=tuple(Edit(path=path, content=content) for path, content in contents.items()))


def read(form: EditFormat, reply: Reply, files: Mapping[str, str]) -> Edits:
    """All edits that a reply asks for, or one problem and no edit. Whether each file may be edited, the agent knows.

    Line ends and a byte order mark stay as each file has them.
    """
    names = ", ".join(files)
    said = replace(reply, text=_plain(without_reasoning(reply.text)))
    if not said.text.strip() and not said.calls:
        if reply.finish == "length":
            return Edits(problem=CUT_OFF.format(files=names), fault=Fault.CUT_OFF)
        return Edits(problem=EMPTY.format(files=names), fault=Fault.EMPTY)
    found = form.parse(said, {path: _plain(content.removeprefix(MARK)) for path, content in files.items()})
    if found.problem:
        return found
    if outside := [edit.path for edit in found.edits if not is_allowed(edit.path)]:
        return not_allowed(outside, files)
    return replace(found, edits=tuple(_as_it_was(edit, files.get(edit.path, "")) for edit in found.edits))


def not_allowed(paths: Iterable[str], files: Iterable[str]) -> Edits:
    """The problem of a reply that edits these paths, where only these files may be edited."""
    listed = shorten(", ".join(paths))
    return Edits(problem=NOT_ALLOWED.format(path=listed, files=", ".join(files)), fault=Fault.NOT_ALLOWED)


def without_reasoning(text: str) -> str:
    """What a model says when it has stopped thinking aloud."""
    return _REASONING.sub("", text, count=1)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def _as_it_was(edit: Edit, before: str) -> Edit:
    """With the byte order mark that the file has, which nobody sees, and with its line ends."""
    if not edit.content:
        return edit
    mark = MARK if before.startswith(MARK) else ""
    return replace(edit, content=mark + _ended_like(edit.content.removeprefix(mark), before.removeprefix(mark)))


def _ended_like(content: str, before: str) -> str:
    """New lines end as most of the file do; where its ends differ, those that stay keep theirs."""
    windows, all_ends = before.count("\r\n"), before.count("\n")
    now = [line.replace("\n", "\r\n") if 2 * windows > all_ends else line for line in _lines(content)]
    if 0 < windows < all_ends:
        was = _lines(before)
        same = SequenceMatcher(None, list(map(_plain, was)), _lines(content)).get_matching_blocks()
        for old, at, size in same:
            now[at : at + size] = was[old : old + size]
    return "".join(now)


def _lines(text: str) -> list[str]:
    """With their ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def shorten(text: str) -> str:
    """Return as much of a line of a reply as a problem quotes."""
    return text if len(text) <= SHORTENED else text[:SHORTENED] + "…"


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
