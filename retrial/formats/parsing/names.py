"""Which file a line of a reply names: surely, where the name stands alone; perhaps, where it is in a sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PATH = re.compile(r"/?(?:[\w.@+-]+/)*(?:[\w@+-][\w.@+-]*)?\.[A-Za-z]\w*")
_BARE_PATH = re.compile(r"/?(?:[\w.@+-]+/)+[\w.@+-]*\w|Makefile|Dockerfile|Rakefile|Gemfile|LICENSE|README")
"""Without a suffix, as a path is seldom written."""
_NO_PATH = {"e.g", "i.e"}
_LABELS = {"file", "filename", "filepath", "path", "new", "create", "update", "updated", "edit", "modified", "changed"}
_NUMBER = re.compile(r"\(?\d+[.):]?|[-*+•]")
_DECORATION = "*`'\"#:,;()[]<>{}"


def alone(text: str, files: Mapping[str, str]) -> str:
    """The path that a line is nothing but, however decorated: that of a file of the chat, or a new one's."""
    whole = text.strip().strip("`*").strip()
    if not whole:
        return ""
    words = [word for word in _words(text) if word.lower() not in _LABELS]
    if whole in files or len(words) != 1:
        return whole if whole in files else ""
    is_path = _is_path(words[0]) or (words[0] == whole and _BARE_PATH.fullmatch(whole))
    return known(words[0], files) or (words[0] if is_path else "")


def mentioned(text: str, files: Mapping[str, str]) -> str:
    """The last file of the chat that a sentence names."""
    paths = [known(word, files) for word in _words(text) if "." in word or "/" in word or f"`{word}`" in text]
    return next((path for path in reversed(paths) if path), "")


def quoted(text: str) -> str:
    """The last path that a sentence has in backticks."""
    paths = [path.removeprefix("./") for path in re.findall(r"`([^`\s]+)`", text) if _is_path(path)]
    return paths[-1] if paths else ""


def known(word: str, files: Mapping[str, str]) -> str:
    """The file of the chat that a path means: itself, or the only one where one of the two is the other's end.

    A path that goes up means none: it leads elsewhere.
    """
    if word in files or ".." in word.split("/"):
        return word if word in files else ""
    ends = [path for path in files if path.endswith("/" + word) or word.endswith("/" + path)]
    return ends[0] if len(ends) == 1 else ""


def in_fence(info: str, files: Mapping[str, str]) -> str:
    """The path behind an opening fence: `python a.py`, `python:a.py`, `python title="a.py"` or `a.py`."""
    info = info.strip()
    for part in (info.partition(" ")[2], info.partition(":")[2], info.partition("=")[2], info):
        path = alone(part, files)
        if path and (path in files or _is_path(path)):
            return path
    return ""


def in_comment(line: str, files: Mapping[str, str]) -> str:
    """The path that a comment is nothing but."""
    opening = re.match(r"\s*(?:#|//|--|/\*|<!--)+\s+", line)
    rest = line[opening.end() :].strip().removesuffix("*/").removesuffix("-->") if opening else ""
    return alone(rest, files)


def _is_path(word: str) -> bool:
    return bool(_PATH.fullmatch(word)) and word.lower() not in _NO_PATH


def _words(text: str) -> list[str]:
    raw = [word for word in text.split() if not _NUMBER.fullmatch(word)]
    words = (word.strip(_DECORATION).rstrip(".").removeprefix("./") for word in raw)
    return [word for word in words if word]
