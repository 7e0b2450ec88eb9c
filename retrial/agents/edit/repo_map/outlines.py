"""What one file defines, what it refers to, and which words it has: read once for each content, then kept.

One database is for all repositories, as commits share most of their files.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from retrial.agents.edit.repo_map import grammars

if TYPE_CHECKING:
    from tree_sitter import Node

T = TypeVar("T")

VERSION = 2
"""Goes up when the same content gives another outline, or an outline is kept in another way."""

LONGEST = 120
"""Characters of a definition's head."""
SHORTEST = 4
"""Characters of a name that refers to something: shorter ones are mostly of local variables."""

NAME = "outlines.sqlite"
_PATIENCE = 30.0
"""Seconds to wait for another process that writes."""

# Tasks that are begun together are often of one repository: who waits finds read what the first has read.
_turn = threading.Lock()

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


def read_all(files: Mapping[str, bytes], folder: Path) -> dict[str, Outline]:
    """Of all files; what the folder's database does not have is read and put there."""
    keys = {path: _key(path, content) for path, content in files.items()}
    one_of = {key: path for path, key in keys.items()}
    with _turn:
        known = _get(folder / NAME, list(one_of))
        fresh = {key: read(path, files[path]) for key, path in one_of.items() if key not in known}
        if fresh:
            _put(folder / NAME, fresh)
    return {path: known.get(key) or fresh[key] for path, key in keys.items()}


def read(path: str, content: bytes) -> Outline:
    names = Counter(_IDENTIFIER.findall(content.decode("utf-8", "replace")))
    telling = " ".join(sorted(name for name in names if len(name) >= SHORTEST))
    return Outline(definitions=tuple(_definitions(path, content)), names=telling, words=_words(names))


def _definitions(path: str, content: bytes) -> Iterable[Definition]:
    loaded = grammars.load(path)
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


def _key(path: str, content: bytes) -> str:
    loaded = grammars.load(path)
    how = f"{VERSION} {loaded.version if loaded else ''}\n"
    return hashlib.sha256(how.encode() + content).hexdigest()


def _get(place: Path, keys: list[str]) -> dict[str, Outline]:
    import msgspec

    def read(database: sqlite3.Connection) -> dict[str, Outline]:
        # As one text, for a question can have only so many parameters.
        wanted = "SELECT key, outline FROM outlines WHERE key IN (SELECT value FROM json_each(?))"
        found = database.execute(wanted, [json.dumps(keys)])
        return {key: msgspec.msgpack.decode(zlib.decompress(packed), type=Outline) for key, packed in found}

    return _using(place, read) or {}


def _put(place: Path, fresh: Mapping[str, Outline]) -> None:
    import msgspec

    rows = [(key, zlib.compress(msgspec.msgpack.encode(outline), level=1)) for key, outline in fresh.items()]

    def write(database: sqlite3.Connection) -> None:
        with database:
            database.executemany("INSERT OR IGNORE INTO outlines VALUES (?, ?)", rows)

    _using(place, write)


def _using(place: Path, work: Callable[[sqlite3.Connection], T]) -> T | None:
    """None, at the cost of time, where there can be no database; one that is broken is begun anew."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(place, timeout=_PATIENCE)) as database:
            database.execute("CREATE TABLE IF NOT EXISTS outlines (key TEXT PRIMARY KEY, outline BLOB) WITHOUT ROWID")
            return work(database)
    except (OSError, sqlite3.OperationalError):
        return None
    except (sqlite3.DatabaseError, zlib.error, ValueError, TypeError):
        with suppress(OSError):
            place.unlink()
            # It would be played back into the next one.
            place.with_name(f"{place.name}-journal").unlink(missing_ok=True)
        return None
