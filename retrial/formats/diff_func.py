"""Lines to replace, with their replacement, as the arguments of a function call."""

from __future__ import annotations

from collections.abc import Mapping

from retrial.chat import Fault, Reply
from retrial.formats import Contents, Format, Refused, shorten
from retrial.formats.parsing.hunks import meant
from retrial.formats.parsing.matching import Miss, replaced
from retrial.formats.parsing.tool_calls import ListFunction, items

PROMPT = """\
You are an expert programmer. Make your changes by calling the function replace_lines, once, with a list of edits. \
Each edit replaces whole lines of one file by others. Copy the lines to replace exactly from the file, with their \
indentation, and so many that they are in the file only once. Write each path exactly as it was given."""

REPLACE_LINES = ListFunction(
    name="replace_lines",
    description="Replace lines of files, one edit after the other.",
    key="edits",
    fields={
        "path": "The path of the file, exactly as it was given.",
        "original_lines": "Lines in a row, exactly as they are in the file now. Empty for a new file.",
        "updated_lines": "The lines that take their place; empty to leave them out.",
    },
)
CANNOT = "Nothing was changed: edit {number}, for {path}, does not fit. {why}"
NOT_THERE = "It is not one of the files to edit; a new file has no original_lines. Files to edit: {files}"


def make() -> Format:
    return Format(PROMPT, _contents, (REPLACE_LINES.tool,))


def _contents(reply: Reply, files: Mapping[str, str]) -> Contents:
    now = dict(files)
    touched: dict[str, None] = {}
    # What is said twice, word for word, counts once.
    distinct = {tuple(item.values()): item for item in items(REPLACE_LINES, reply)}
    for number, item in enumerate(distinct.values(), start=1):
        path = meant(item["path"], now) if item["original_lines"] else item["path"]
        now[path] = _replaced(number, path, now.get(path), item, ", ".join(files))
        touched[path] = None
    return {path: now[path] for path in touched}


def _replaced(number: int, path: str, content: str | None, item: Mapping[str, str], names: str) -> str:
    before, after = item["original_lines"], item["updated_lines"]
    if content is None and before:
        why = NOT_THERE.format(files=names)
        raise Refused(CANNOT.format(number=number, path=shorten(path), why=why), Fault.NOT_ALLOWED)
    blank = not before and not (content or "").strip()
    result = replaced("" if blank else content or "", before, after)
    if isinstance(result, Miss):
        raise Refused(CANNOT.format(number=number, path=path, why=result.text), result.fault)
    return result
