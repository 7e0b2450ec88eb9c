"""Whole files in fenced code blocks: the plainest format, and the most reliable one for weaker models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from retrial.chat import Fault, Reply
from retrial.formats import (
    FENCE,
    Contents,
    Format,
    Refused,
    dedent,
    find_mentioned_file,
    joined,
    read_comment_path,
    read_fence_path,
    read_lone_path,
)

PROMPT = """\
You are an expert programmer. Reply with the complete new content of every file that you change, each in this form:

path/of/file.py
```
the whole file, from its first line to its last
```

Write the path alone on the line before the block, exactly as it was given. Never leave code out."""

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
NOT_WHOLE = """\
The block for {path} is no file, but says what to change in one. Reply with the complete new content of the file."""

NOT_CODE = {"bash", "sh", "shell", "console", "zsh", "cmd", "powershell", "text", "txt", "output", "diff"}
"""What blocks that belong to no file open with."""
DOCUMENT = {"markdown", "md"}
MARKDOWN = (".md", ".markdown", ".mdx")
CHANGES = re.compile(r"^<{5,9} SEARCH$|\A--- .*\n\+\+\+ .*\n@@", re.MULTILINE)
"""How other formats begin; a file that was without it is not meant to have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedBlock:
    """One fenced block."""

    sure: str
    """The path that stands alone above it, behind its fence, or in a comment that is its first line."""
    guess: str
    """A file of the chat that the sentence above it names."""
    language: str
    """What its fence says."""
    lines: list[str]
    closed: bool

    @property
    def code(self) -> bool:
        return self.language not in NOT_CODE


def make() -> Format:
    return Format(PROMPT, _contents)


def _contents(reply: Reply, files: Mapping[str, str]) -> Contents:
    names = ", ".join(files)
    blocks = _unwrapped(_blocks(reply.text.split("\n"), files), files)
    cut = [block for block in blocks if reply.finish == "length" and not block.closed]
    edits = _assigned([block for block in blocks if block not in cut], files)
    # Half a file is none. But a model that repeats itself until it is cut has said it all before.
    if (cut or (reply.finish == "length" and not blocks)) and not _covered(cut, edits):
        raise Refused(CUT.format(files=names), Fault.CUT_OFF)
    if not blocks:
        raise Refused(NO_BLOCK.format(files=names), Fault.NO_EDIT)
    if not edits:
        raise Refused(NO_NAME.format(files=names), Fault.NO_NAME)
    for path, block in edits.items():
        if problem := _unlike_a_file(block, files.get(path, "")):
            raise Refused(problem.format(path=path))
    return {path: joined(block.lines, like=files.get(path, "")) for path, block in edits.items()}


def _blocks(lines: list[str], files: Mapping[str, str]) -> list[FencedBlock]:
    blocks: list[FencedBlock] = []
    at = 0
    while at < len(lines):
        opening = FENCE.match(lines[at])
        if opening is None:
            at += 1
            continue
        info, above = opening.group(3), _line_above(lines, at)
        sure = read_lone_path(above, files) or read_fence_path(info, files)
        end = _end(lines, at, opening, files, document=sure.endswith(MARKDOWN))
        body = dedent(_without_tail(lines, at + 1, end), opening.group(1))
        language = info.strip().partition(" ")[0].lower()
        code = language not in NOT_CODE
        sure = sure or (read_comment_path(body[0], files) if body and code else "")
        guess = find_mentioned_file(above, files) if code else ""
        blocks.append(FencedBlock(sure=sure, guess=guess, language=language, lines=body, closed=end < len(lines)))
        at = end + 1
    return blocks


def _unwrapped(blocks: list[FencedBlock], files: Mapping[str, str]) -> list[FencedBlock]:
    """Some models put all that they say in a block of Markdown: then the files are the blocks in it."""
    inner = [each for block in blocks if block.language in DOCUMENT for each in _blocks(block.lines, files)]
    wrapped = any(block.sure for block in inner) and not any(block.sure for block in blocks)
    return inner if wrapped else blocks


def _line_above(lines: list[str], at: int) -> str:
    """The nearest line above that is not blank, two lines up at most."""
    return next((line for line in reversed(lines[max(0, at - 2) : at]) if line.strip()), "")


def _end(lines: list[str], at: int, opening: re.Match[str], files: Mapping[str, str], *, document: bool) -> int:
    """The line that closes a block: its fence, or the name of the next file if nobody closed it.

    Blocks inside it are indented, or open with a word and close bare. In a document they may open bare too, so there
    the last bare fence is the one that closes.
    """
    indentation, fence, _ = opening.groups()
    depth, last = 1, len(lines)
    for inner in range(at + 1, len(lines)):
        found = FENCE.match(lines[inner])
        if found is None or len(found.group(1)) > len(indentation) or not found.group(2).startswith(fence):
            continue
        bare = not found.group(3).strip()
        if (document or not bare) and read_lone_path(_line_above(lines, inner), files) in files:
            return min(last, inner - 1)
        depth += -1 if bare else 1
        if depth == 0 and not document:
            return inner
        if depth == 0:
            depth, last = 1, inner
    return last


def _without_tail(lines: list[str], start: int, end: int) -> list[str]:
    """A block's lines; the blank ones at its end do not count where no fence says that they are part of it."""
    if end < len(lines) and FENCE.match(lines[end]):
        return lines[start:end]
    return "\n".join(lines[start:end]).rstrip("\n").split("\n") if start < end else []


def _assigned(blocks: list[FencedBlock], files: Mapping[str, str]) -> dict[str, FencedBlock]:
    """Which block is for which file: by a sure name, else by a sentence that names it, else the only file there is.

    Of several with a sure name the last counts, code before what is none: a model that writes a file again has thought
    again.
    """
    edits = {block.sure: block for block in sorted(blocks, key=lambda block: block.code) if block.sure}
    guessed: dict[str, list[FencedBlock]] = {}
    for block in blocks:
        if block.code and not block.sure and block.guess not in edits:
            guessed.setdefault(block.guess, []).append(block)
    unnamed = guessed.pop("", [])
    edits |= {path: _most_alike(several, files[path]) for path, several in guessed.items()}
    if not edits and unnamed and len(files) == 1:
        ((path, stub),) = files.items()
        edits[path] = _most_alike(unnamed, stub)
    return edits


def _most_alike(blocks: list[FencedBlock], stub: str) -> FencedBlock:
    """The first of those that share most words with the file they are for: an example of its use shares fewer, and
    what a weak model goes on to say without a name is not a second thought."""
    words = set(re.findall(r"\w+", stub))
    return max(blocks, key=lambda block: len(words & set(re.findall(r"\w+", "\n".join(block.lines)))))


def _unlike_a_file(block: FencedBlock, before: str) -> str:
    """What is wrong with a block that is to take the place of a file."""
    content = "\n".join(block.lines)
    if not before.strip():
        return ""
    # Nobody asks for an empty file in place of code: the model had nothing to say of it.
    if not content.strip():
        return EMPTY
    return NOT_WHOLE if block.language == "diff" or (CHANGES.search(content) and not CHANGES.search(before)) else ""


def _covered(cut: list[FencedBlock], edits: Mapping[str, FencedBlock]) -> bool:
    """Nothing is lost with the blocks that were cut off: what they were for has a whole block too."""
    return bool(edits) and all((block.sure or block.guess or next(iter(edits))) in edits for block in cut)
