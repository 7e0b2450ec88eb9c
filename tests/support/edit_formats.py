"""What a perfect model writes: edits in each format, and `read`, which reads them back as the built-in agent does.

A writer raises ValueError for an edit that its format cannot express.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher, unified_diff
from typing import TypeVar

from retrial import formats, registry
from retrial.chat import Edit, Edits, Reply, ToolCall
from retrial.formats.parsing.matching import replaced, split
from retrial.formats.parsing.search_replace import DIVIDER, END, HEAD, text
from retrial.formats.udiff import NULL
from retrial.patches import git
from retrial.protocols import EditFormat

T = TypeVar("T")
Files = Mapping[str, str]
Writer = Callable[[EditFormat, tuple[Edit, ...], Files], Reply]

CONTEXTS = (3, 10**9)
"""Lines around a change: three do not always tell the place."""
NO_NEWLINE = "\\ No newline at end of file\n"


def read(form: EditFormat, reply: Reply, files: Files, allowed: Callable[[str], bool]) -> Edits:
    """Return the edits of a reply if all of them are allowed."""
    found = formats.read(form, reply, files)
    refused = [edit.path for edit in found.edits if not allowed(edit.path)]
    return formats.not_allowed(refused, files) if refused else found


def write(name: str, edits: tuple[Edit, ...], files: Files) -> Reply:
    """Return the reply that asks for these edits of these files.

    Raises: ValueError when the format cannot express one of them.
    """
    assert name in WRITERS, f"add a writer for the format {name} to tests/support/edit_formats.py"
    return WRITERS[name](registry.module("formats", name).make(), edits, files)


def first_readable(edit: Edit, written: Iterable[T], reply: Callable[[T], Reply], form: EditFormat, files: Files) -> T:
    for attempt in written:
        if form.parse(reply(attempt), files).edits == (edit,):
            return attempt
    raise ValueError(f"The edit of {edit.path} cannot be written in this format.")


def readable(reply: Reply, form: EditFormat, edits: tuple[Edit, ...], files: Files) -> Reply:
    if form.parse(reply, files).edits != edits:
        raise ValueError("The format cannot express this edit.")
    return reply


def whole(form: EditFormat, edits: tuple[Edit, ...], files: Files) -> Reply:
    return readable(Reply(text="\n".join(map(whole_file, edits))), form, edits, files)


def whole_file(edit: Edit) -> str:
    content = edit.content or ""
    fence = fence_around(content)
    last = "" if content.endswith("\n") or not content else "\n"
    return f"{edit.path}\n{fence}\n{content}{last}{fence}\n"


def fence_around(content: str) -> str:
    """Return a fence that is longer than any in the content."""
    runs = re.findall(r"^[ \t]*(`+)", content, re.MULTILINE)
    return "`" * max(3, 1 + max((len(run) for run in runs), default=0))


def whole_func(form: EditFormat, edits: tuple[Edit, ...], files: Files) -> Reply:
    items = [{"path": edit.path, "content": edit.content} for edit in edits if edit.content is not None]
    if len(items) < len(edits):
        raise ValueError("Whole files cannot be removed.")
    return calling("write_files", "files", items)


def calling(function: str, key: str, items: list[dict[str, str]]) -> Reply:
    arguments = json.dumps({key: items}, ensure_ascii=False)
    return Reply(text="", calls=(ToolCall(name=function, arguments=arguments, id="call-1"),), finish="tool_calls")


def diff_func(form: EditFormat, edits: tuple[Edit, ...], files: Files) -> Reply:
    def reply(items: list[dict[str, str]]) -> Reply:
        return calling("replace_lines", "edits", items)

    def items(edit: Edit) -> list[dict[str, str]]:
        written = (replacements(edit, files.get(edit.path, ""), around) for around in CONTEXTS)
        return first_readable(edit, written, reply, form, files)

    return reply([item for edit in edits for item in items(edit)])


def replacements(edit: Edit, content: str, around: int) -> list[dict[str, str]]:
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


def patch(form: EditFormat, edits: tuple[Edit, ...], files: Files) -> Reply:
    def reply(sections: str) -> Reply:
        return Reply(text=f"*** Begin Patch\n{sections}*** End Patch\n")

    def section(edit: Edit) -> str:
        written = (patch_section(edit, files.get(edit.path), around) for around in CONTEXTS)
        return first_readable(edit, written, reply, form, files)

    return reply("".join(map(section, edits)))


def patch_section(edit: Edit, content: str | None, around: int) -> str:
    if edit.content is None:
        return f"*** Delete File: {edit.path}\n"
    if content is None:
        return f"*** Add File: {edit.path}\n" + "".join(f"+{line}\n" for line in split(edit.content))
    diff = list(unified_diff(split(content), split(edit.content), n=around, lineterm=""))[2:]
    hunks = "".join("@@\n" if line.startswith("@@") else f"{line}\n" for line in diff)
    return f"*** Update File: {edit.path}\n{hunks}"


def udiff(form: EditFormat, edits: tuple[Edit, ...], files: Files) -> Reply:
    def reply(diff: str) -> Reply:
        return Reply(text=f"```diff\n{diff}```\n")

    def one(edit: Edit) -> str:
        written = (diff_of(edit, files.get(edit.path), around) for around in CONTEXTS)
        return first_readable(edit, written, reply, form, files)

    return reply("".join(map(one, edits)))


def diff_of(edit: Edit, content: str | None, around: int) -> str:
    old = NULL if content is None else f"a/{edit.path}"
    new = NULL if edit.content is None else f"b/{edit.path}"
    before, after = (re.findall(r"[^\n]*\n|[^\n]+", part or "") for part in (content, edit.content))
    lines = list(unified_diff(before, after, n=around))[2:]
    complete = (line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}" for line in lines)
    return f"--- {git.quote(old)}\n+++ {git.quote(new)}\n" + "".join(complete)


def blocks(layout: str) -> Writer:
    """Return the writer of a format of SEARCH/REPLACE blocks; `layout` places `path`, `fence` and `block`."""

    def fenced(edit: Edit, files: Files) -> str:
        block = search_replace(edit, files.get(edit.path, ""))
        return layout.format(path=edit.path, fence=fence_around(block), block=block)

    def writer(form: EditFormat, edits: tuple[Edit, ...], files: Files) -> Reply:
        reply = Reply(text="\n".join(fenced(edit, files) for edit in edits))
        return readable(reply, form, edits, files)

    return writer


def search_replace(edit: Edit, before: str) -> str:
    """Return the block with what differs, and as many lines around it as it takes to find the place."""
    if edit.content is None:
        raise ValueError("A block cannot remove a file.")
    old, new = split(before), split(edit.content)
    pairs = list(zip(old, new, strict=False))
    head = next((at for at, (one, other) in enumerate(pairs) if one != other), len(pairs))
    ends = list(zip(reversed(old[head:]), reversed(new[head:]), strict=False))
    tail = next((at for at, (one, other) in enumerate(ends) if one != other), len(ends))
    around = CONTEXTS[0]
    while True:
        start, stop = max(0, head - around), max(0, tail - around)
        search, put = old[start : len(old) - stop], new[start : len(new) - stop]
        if not (start or stop) or replaced(before, text(search), text(put)) == edit.content:
            return marked(search, put)
        around *= 2


def marked(search: list[str], put: list[str]) -> str:
    """Mark with signs of a length that no line of the block has, so that none is taken for a marker."""
    taken = {len(line.strip()) for line in (*search, *put) if DIVIDER.match(line)}
    taken |= {len(match.group(2)) for line in (*search, *put) if (match := HEAD.match(line) or END.match(line))}
    size = next((size for size in (7, 8, 9, 6, 5) if size not in taken), 7)
    return "\n".join(["<" * size + " SEARCH", *search, "=" * size, *put, ">" * size + " REPLACE"])


WRITERS: Mapping[str, Writer] = {
    "diff": blocks("{path}\n{fence}\n{block}\n{fence}\n"),
    "diff-fenced": blocks("{fence}\n{path}\n{block}\n{fence}\n"),
    "diff-func": diff_func,
    "patch": patch,
    "udiff": udiff,
    "whole": whole,
    "whole-func": whole_func,
}
