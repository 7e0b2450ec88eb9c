"""Whole files as the arguments of a function call."""

from __future__ import annotations

from collections.abc import Mapping

from retrial.chat import Reply
from retrial.formats import Contents, Format, Refused, resolve_path, shorten
from retrial.formats.parsing.tool_calls import ListFunction, items

PROMPT = """\
You are an expert programmer. Make your changes by calling the function write_files, once, with the complete new \
content of every file that you change. Write each path exactly as it was given. Never leave code out."""

WRITE_FILES = ListFunction(
    name="write_files",
    description="Write files: each becomes exactly what is given here.",
    key="files",
    fields={
        "path": "The path of the file, exactly as it was given.",
        "content": "The whole file, from its first line to its last.",
    },
)
TWICE = "Nothing was changed: {path} is written twice, with different content. Write each file once."


def make() -> Format:
    return Format(PROMPT, _contents, (WRITE_FILES.tool,))


def _contents(reply: Reply, files: Mapping[str, str]) -> Contents:
    contents: dict[str, str] = {}
    for item in items(WRITE_FILES, reply):
        path = resolve_path(item["path"], files) or item["path"]
        if contents.setdefault(path, item["content"]) != item["content"]:
            raise Refused(TWICE.format(path=shorten(path)))
    return contents
