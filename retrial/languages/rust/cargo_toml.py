"""Which part of an edited Cargo.toml counts: the crates that the solution uses, if they come from where all do."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

TABLE = "dependencies"
NAME = re.compile(r"[A-Za-z0-9_-]+")
"""Of crates, and of keys that need no quotes."""
PLAIN = {"version": str, "features": list, "default-features": bool, "optional": bool}
"""What may be said of a crate. All else (path, git, registry, package …) would say whose code is meant."""


def admitted(before: bytes, after: bytes) -> bytes:
    """The file as it was, with the dependencies of the file as it is; as it was, when those are the same or no TOML."""
    old, new = _parsed(before), _parsed(after)
    if old is None or new is None:
        return before
    known = _table(old)
    # What may not be said of a crate is as if nothing had been said.
    wanted = {
        name: crate if _plain(name, crate) else known[name]
        for name, crate in _table(new).items()
        if _plain(name, crate) or name in known
    }
    if wanted == known:
        return before
    merged = {**old, TABLE: wanted}
    # As it was written, if it says no more than that.
    return after if merged == {TABLE: {}, **new} else "".join(_rendered(merged)).lstrip().encode()


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return None


def _table(manifest: Mapping[str, Any]) -> dict[str, Any]:
    found = manifest.get(TABLE, {})
    return found if isinstance(found, dict) else {}


def _plain(name: str, crate: object) -> bool:
    if not NAME.fullmatch(name):
        return False
    if not isinstance(crate, dict):
        return isinstance(crate, str)
    return all(key in PLAIN and isinstance(value, PLAIN[key]) for key, value in crate.items())


def _rendered(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Plain values first: behind a table's head they would be that table's."""
    for key, value in manifest.items():
        if not isinstance(value, dict):
            yield f"{_key(key)} = {_value(value)}\n"
    for key, value in manifest.items():
        if isinstance(value, dict):
            yield f"\n[{_key(key)}]\n"
            yield from (f"{_key(name)} = {_value(each)}\n" for name, each in value.items())


def _key(key: str) -> str:
    return key if NAME.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        # A basic string of TOML is one of JSON but for a character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else str(value)
