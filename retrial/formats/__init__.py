"""Edit formats, one file each: prompt, tool schema, parser of replies. `read` is what all of them share.

Imports `grading` and what is below; `agents` and the folders above may import it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from difflib import SequenceMatcher

from retrial.chat import Edit, Edits, Fault, Reply
from retrial.errors import PatchError
from retrial.formats.parsing.reply_text import shorten
from retrial.patches.git import check_name, encode
from retrial.protocols import EditFormat

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
    if outside := [edit.path for edit in found.edits if not _inside(edit.path)]:
        return not_allowed(outside, files)
    return replace(found, edits=tuple(_as_it_was(edit, files.get(edit.path, "")) for edit in found.edits))


def not_allowed(paths: Iterable[str], files: Iterable[str]) -> Edits:
    """The problem of a reply that edits these paths, where only these files may be edited."""
    listed = shorten(", ".join(paths))
    return Edits(problem=NOT_ALLOWED.format(path=listed, files=", ".join(files)), fault=Fault.NOT_ALLOWED)


def without_reasoning(text: str) -> str:
    """What a model says when it has stopped thinking aloud."""
    return _REASONING.sub("", text, count=1)


def _inside(path: str) -> bool:
    """A plain path below the workspace, and not in a git folder."""
    try:
        encode(check_name(path))
    except PatchError:
        return False
    return True


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
