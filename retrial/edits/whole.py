"""Whole files in fenced code blocks: the plainest format, and the most reliable one for weaker models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from retrial.attempts import Reply
from retrial.protocols import Edit, Edits, Fault

PROMPT = """\
You are an expert programmer. Reply with the complete new content of every file that you change, each in this form:

path/of/file.py
```
the whole file, from its first line to its last
```

Write the path alone on the line before the block, exactly as it was given. Never leave code out."""

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([^`]*)$")
SHELL = {"bash", "sh", "shell", "console", "zsh", "cmd", "powershell", "text", "txt", "output", "diff"}

NO_BLOCK = """\
I could not find any file in your reply. Write the path of the file alone on a line, then its complete new content
in a fenced code block. Files to edit: {files}"""
NO_NAME = """\
I do not know which file the code block is for. Write the path alone on the line before the block.
Files to edit: {files}"""
CUT = (
    "Your reply was cut off before its end. Reply with the complete file, as short as it can be. Files to edit: {files}"
)
EMPTY = "The block for {path} is empty. Reply with the complete new content of the file."


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block: the line before it, what stands behind its fence, and its lines."""

    before: str
    info: str
    content: str
    closed: bool


class Whole:
    prompt = PROMPT
    tools: tuple[Mapping[str, object], ...] = ()

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        names = ", ".join(files)
        blocks = _blocks(reply.text)
        cut = [block for block in blocks if reply.finish == "length" and not block.closed]
        edits = _assign([block for block in blocks if block not in cut], files)
        # Half a file is none. But a model that repeats itself until it is cut has said it all before.
        if (cut or (reply.finish == "length" and not blocks)) and not _covered(cut, edits, files):
            return Edits(problem=CUT.format(files=names), fault=Fault.CUT_OFF)
        if not blocks:
            return Edits(problem=NO_BLOCK.format(files=names), fault=Fault.NO_EDIT)
        if not edits:
            return Edits(problem=NO_NAME.format(files=names), fault=Fault.NO_NAME)
        empty = [path for path, content in edits.items() if not content.strip()]
        if empty:
            return Edits(problem=EMPTY.format(path=empty[0]))
        return Edits(edits=tuple(Edit(path=path, content=content) for path, content in edits.items()))

    def render(self, edits: tuple[Edit, ...], files: Mapping[str, str]) -> Reply:
        return Reply(text="\n".join(f"{edit.path}\n```\n{edit.content}```\n" for edit in edits))


def make() -> Whole:
    return Whole()


def _blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    lines = text.replace("\r\n", "\n").split("\n")
    position = 0
    while position < len(lines):
        opening = FENCE.match(lines[position])
        if opening is None:
            position += 1
            continue
        end = _end(lines, position, opening.group(1))
        body = lines[position + 1 : end]
        content = "\n".join(body).rstrip("\n") + "\n" if body else ""
        before = _line_before(lines, position)
        blocks.append(Block(before=before, info=opening.group(2).strip(), content=content, closed=end < len(lines)))
        position = end + 1
    return blocks


def _end(lines: list[str], start: int, fence: str) -> int:
    """The line that closes the block; blocks inside it (a docstring's example) open with a word and close bare."""
    depth = 1
    for position in range(start + 1, len(lines)):
        found = FENCE.match(lines[position])
        if found is None or not found.group(1).startswith(fence):
            continue
        depth += 1 if found.group(2).strip() else -1
        if depth == 0:
            return position
    return len(lines)


def _line_before(lines: list[str], position: int) -> str:
    """The nearest line above that is not blank, two lines up at most."""
    for line in reversed(lines[max(0, position - 2) : position]):
        if line.strip():
            return line
    return ""


def _assign(blocks: list[Block], files: Mapping[str, str]) -> dict[str, str]:
    """Which block is for which file: by name, else the only file there is. Of two for one file the last counts."""
    edits: dict[str, str] = {}
    unnamed: list[str] = []
    for block in blocks:
        path = _name(block, files)
        if path:
            edits[path] = block.content
        elif block.info.split(" ")[0].lower() not in SHELL:
            unnamed.append(block.content)
    if not edits and unnamed and len(files) == 1:
        ((path, stub),) = files.items()
        edits[path] = _most_alike(unnamed, stub)
    return edits


def _most_alike(contents: list[str], stub: str) -> str:
    """The first of those that share most words with the file they are for: an example of its use shares fewer."""
    words = set(re.findall(r"\w+", stub))
    return max(contents, key=lambda content: len(words & set(re.findall(r"\w+", content))))


def _covered(cut: list[Block], edits: Mapping[str, str], files: Mapping[str, str]) -> bool:
    """Nothing is lost with the blocks that were cut off: what they were for has a whole block too."""
    return bool(edits) and all((_name(block, files) or next(iter(edits))) in edits for block in cut)


def _name(block: Block, files: Mapping[str, str]) -> str:
    first_line = block.content.partition("\n")[0]
    comment = first_line.lstrip("#/-* ") if first_line.startswith(("#", "//", "--", "/*")) else ""
    for text in (block.before, block.info.partition(" ")[2], block.info.partition(":")[2], block.info, comment):
        path = _path(text, files)
        if path:
            return path
    return ""


def _path(text: str, files: Mapping[str, str]) -> str:
    """A file of the chat that `text` names, or a new file's path if it is nothing but that."""
    words = [word.strip("*`'\"#:,()[]") for word in text.split()]
    words = [word.rstrip(".") for word in words if word]
    known = [path for path in (_known(word, files) for word in words) if path]
    if known:
        return known[-1]
    if len(words) == 1 and re.fullmatch(r"[\w./-]*\w\.\w+", words[0]):
        return words[0].removeprefix("./")
    return ""


def _known(word: str, files: Mapping[str, str]) -> str:
    word = word.removeprefix("./")
    if word in files:
        return word
    alike = [path for path in files if path.rpartition("/")[2] == word.rpartition("/")[2]]
    return alike[0] if len(alike) == 1 and "." in word else ""
