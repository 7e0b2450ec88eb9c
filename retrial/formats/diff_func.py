"""Lines to replace, with their replacement, as the arguments of a function call."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher

from retrial.chat import Reply
from retrial.formats.parsing.hunks import EVERYTHING, meant, readable
from retrial.formats.parsing.matching import Miss, replaced, split
from retrial.formats.parsing.reply_text import Refused, shorten
from retrial.formats.parsing.tool_calls import call, items, tool
from retrial.protocols import Edit, Edits, Fault

PROMPT = """\
You are an expert programmer. Make your changes by calling the function replace_lines, once, with a list of edits. \
Each edit replaces whole lines of one file by others. Copy the lines to replace exactly from the file, with their \
indentation, and so many that they are in the file only once. Write each path exactly as it was given."""

REPLACE_LINES = tool(
    "replace_lines",
    "Replace lines of files, one edit after the other.",
    "edits",
    {
        "path": "The path of the file, exactly as it was given.",
        "original_lines": "Lines in a row, exactly as they are in the file now. Empty for a new file.",
        "updated_lines": "The lines that take their place; empty to leave them out.",
    },
)
CANNOT = "Nothing was changed: edit {number}, for {path}, does not fit. {why}"
NOT_THERE = "It is not one of the files to edit; a new file has no original_lines. Files to edit: {files}"


class DiffFunc:
    prompt = PROMPT
    tools: tuple[Mapping[str, object], ...] = (REPLACE_LINES,)

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        now = dict(files)
        touched: dict[str, None] = {}
        try:
            # What is said twice, word for word, counts once.
            for number, item in enumerate(
                {tuple(item.values()): item for item in items(REPLACE_LINES, reply)}.values()
            ):
                path = meant(item["path"], now) if item["original_lines"] else item["path"]
                now[path] = _replaced(number + 1, path, now.get(path), item, ", ".join(files))
                touched[path] = None
        except Refused as error:
            return error.edits
        return Edits(edits=tuple(Edit(path=path, content=now[path]) for path in touched))

    def render(self, edits: tuple[Edit, ...], files: Mapping[str, str]) -> Reply:
        """Raises: ValueError for what replaced lines cannot say: that a file is to go, or the end of its last line."""
        listed = [item for edit in edits for item in self._items(edit, files)]
        return _calling(listed)

    def _items(self, edit: Edit, files: Mapping[str, str]) -> list[dict[str, str]]:
        written = (_items(edit, files.get(edit.path, ""), around) for around in (3, EVERYTHING))
        return readable(edit, written, lambda listed: self.parse(_calling(listed), files))


def make() -> DiffFunc:
    return DiffFunc()


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


def _calling(listed: list[dict[str, str]]) -> Reply:
    return Reply(text="", calls=(call(REPLACE_LINES, listed),), finish="tool_calls")


def _items(edit: Edit, content: str, around: int) -> list[dict[str, str]]:
    before, after = split(content), split(edit.content or "")
    groups = list(SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(around))
    return [
        {
            "path": edit.path,
            "original_lines": "".join(line + "\n" for line in before[group[0][1] : group[-1][2]]),
            "updated_lines": "".join(line + "\n" for line in after[group[0][3] : group[-1][4]]),
        }
        for group in groups or [[("insert", 0, 0, 0, 0)]]
    ]
