"""Outlines that were read once, by content: one database for all repositories, as commits share most of their files."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

from retrial.agents.edit.repo_map import grammars
from retrial.agents.edit.repo_map import outlines as source_outlines
from retrial.agents.edit.repo_map.outlines import Definition, Outline

T = TypeVar("T")

NAME = "outlines.sqlite"
_AT_ONCE = 500
"""Keys in one question; old versions of sqlite take 999."""
_PATIENCE = 30.0
"""Seconds to wait for another process that writes."""

# Tasks that are begun together are often of one repository: who waits finds read what the first has read.
_turn = threading.Lock()


def outlines(files: Mapping[str, bytes], folder: Path) -> dict[str, Outline]:
    """Of all files; what the folder's database does not have is read and put there."""
    keys = {path: _key(path, content) for path, content in files.items()}
    one_of = {key: path for path, key in keys.items()}
    with _turn:
        known = _get(folder / NAME, list(one_of))
        fresh = {key: source_outlines.read(path, files[path]) for key, path in one_of.items() if key not in known}
        if fresh:
            _put(folder / NAME, fresh)
    return {path: known.get(key) or fresh[key] for path, key in keys.items()}


def _key(path: str, content: bytes) -> str:
    how = f"{source_outlines.VERSION} {grammars.version(path)}\n"
    return hashlib.sha256(how.encode() + content).hexdigest()


def _get(place: Path, keys: list[str]) -> dict[str, Outline]:
    def read(database: sqlite3.Connection) -> dict[str, Outline]:
        known: dict[str, Outline] = {}
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            marks = ", ".join("?" * len(some))
            found = database.execute(f"SELECT key, outline FROM outlines WHERE key IN ({marks})", some)
            known.update((key, _unpacked(outline)) for key, outline in found)
        return known

    return _using(place, read) or {}


def _put(place: Path, fresh: Mapping[str, Outline]) -> None:
    rows = [(key, _packed(outline)) for key, outline in fresh.items()]

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


def _packed(outline: Outline) -> bytes:
    """Few long strings: they are read several times as fast as many short ones."""
    definitions = outline.definitions
    parts = (
        [one.depth for one in definitions],
        "\n".join(one.name for one in definitions),
        "\n".join(one.head for one in definitions),
        outline.names,
        list(outline.words.values()),
        " ".join(outline.words),
    )
    return zlib.compress(json.dumps(parts).encode(), level=1)


def _unpacked(packed: bytes) -> Outline:
    depths, defined, heads, names, counts, words = json.loads(zlib.decompress(packed).decode("ascii"))
    return Outline(
        definitions=tuple(map(Definition, defined.split("\n"), depths, heads.split("\n"))),
        names=names,
        words=dict(zip(words.split(), counts, strict=True)),
    )
