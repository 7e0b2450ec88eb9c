"""What one file defines, what it refers to, and which words it has: read once for each content, then kept."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from retrial.agents.edit.repo_map import grammars

if TYPE_CHECKING:
    from tree_sitter import Node

VERSION = 1
"""Goes up when the same content gives another outline."""

LONGEST = 120
"""Characters of a definition's head."""
SHORTEST = 4
"""Characters of a name that refers to something: shorter ones are mostly of local variables."""

_ANNOTATIONS = re.compile(r"^(?:@[\w.]+(?:\([^)]*\))? |#\[[^\]]*\] )+")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True, slots=True)
class Definition:
    name: str
    depth: int
    """In how many others it lies."""
    head: str
    """Its signature, on one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    definitions: tuple[Definition, ...] = ()
    """In the file's order."""
    names: str
    """Of whatever it may refer to, in code or in comments, with blanks between; its own among them. Not taken apart:
    few files are asked for theirs."""
    words: Mapping[str, int]
    """Of all its text, with how often each stands there."""


def read(path: str, content: bytes) -> Outline:
    names = Counter(_IDENTIFIER.findall(content.decode("utf-8", "replace")))
    telling = " ".join(sorted(name for name in names if len(name) >= SHORTEST))
    return Outline(definitions=tuple(_definitions(path, content)), names=telling, words=_words(names))


def _definitions(path: str, content: bytes) -> Iterable[Definition]:
    grammar = grammars.of(path)
    loaded = grammars.load(grammar) if grammar else None
    if loaded is None:
        return
    from tree_sitter import Parser, QueryCursor

    root = Parser(loaded.language).parse(content).root_node
    found = {
        captured["definition"][0].start_byte: (captured["definition"][0], captured["name"][0])
        for _, captured in QueryCursor(loaded.definitions).matches(root)
    }
    around: list[int] = []
    for start in sorted(found):
        definition, name = found[start]
        while around and around[-1] <= start:
            around.pop()
        yield Definition(_text(content, name.start_byte, name.end_byte), len(around), _head(definition, content))
        around.append(definition.end_byte)


def _head(definition: Node, content: bytes) -> str:
    """All before its body or value; without either, its first line."""
    value = definition.child_by_field_name("right") or definition.child_by_field_name("value")
    end = (value or definition).child_by_field_name("body") or value
    while end is not None and end.prev_sibling is not None and end.prev_sibling.type.endswith("comment"):
        end = end.prev_sibling
    text = _text(content, definition.start_byte, end.start_byte if end else _line_end(content, definition.start_byte))
    head = _ANNOTATIONS.sub("", text).rstrip(" {:=")
    return head if len(head) <= LONGEST else head[: LONGEST - 3] + "..."


def _text(content: bytes, start: int, end: int) -> str:
    """On one line."""
    return " ".join(content[start:end].decode("utf-8", "replace").split())


def _line_end(content: bytes, start: int) -> int:
    found = content.find(b"\n", start)
    return len(content) if found < 0 else found


def terms(text: str) -> Mapping[str, int]:
    """Words to compare texts by: names, and the words that these are made of."""
    return _words(Counter(_IDENTIFIER.findall(text)))


def _words(names: Mapping[str, int]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for name, number in names.items():
        for term in _terms(name):
            counts[term] = counts.get(term, 0) + number
    return counts


@functools.lru_cache(maxsize=100_000)
def _terms(name: str) -> tuple[str, ...]:
    pieces = [_singular(piece.lower()) for piece in _PIECE.findall(name) if len(piece) > 2]
    whole = name.strip("_").lower()
    return tuple(pieces) if not whole or pieces == [_singular(whole)] else (*pieces, whole)


def _singular(word: str) -> str:
    """Roughly."""
    if len(word) < 4 or word.endswith("ss"):
        return word
    return f"{word[:-3]}y" if word.endswith("ies") else word.removesuffix("s")
