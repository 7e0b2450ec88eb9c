"""Whole files as the arguments of a function call."""

from __future__ import annotations

from collections.abc import Mapping

from retrial.chat import Edit, Edits, Reply, Tool
from retrial.formats.parsing.reply_text import Refused, resolve_path, shorten
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


class WholeFunc:
    prompt = PROMPT
    tools: tuple[Tool, ...] = (WRITE_FILES.tool,)

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        contents: dict[str, str] = {}
        try:
            for item in items(WRITE_FILES, reply):
                path = resolve_path(item["path"], files) or item["path"]
                if contents.setdefault(path, item["content"]) != item["content"]:
                    raise Refused(TWICE.format(path=shorten(path)))
        except Refused as error:
            return error.edits
        return Edits(edits=tuple(Edit(path=path, content=content) for path, content in contents.items()))


def make() -> WholeFunc:
    return WholeFunc()
