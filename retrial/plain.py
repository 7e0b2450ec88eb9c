"""Values of ours as JSON: the edge where dataclasses become plain."""

from __future__ import annotations

import dataclasses
import functools
import io
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from retrial.secrets import KNOWN


def to_json(value: object) -> bytes:
    text = io.StringIO()
    # Piece by piece: `json.dumps` holds all pieces at once, which take many times the room of the text.
    for piece in _INDENTED.iterencode(value):
        text.write(piece)
    return (text.getvalue() + "\n").encode()


def to_line(value: object) -> bytes:
    """In a journal; what is compared with a journal goes through this too. Without what nobody may see."""
    return KNOWN.masked_bytes((json.dumps(value, default=_plain) + "\n").encode())


def fields_of(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    """Of what JSON has, the fields of this dataclass: other versions of ours may have written more."""
    return {field.name: value[field.name] for field in dataclasses.fields(kind) if field.name in value}


@functools.cache
def _shown(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.repr)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # What is not to be shown is not to be written either.
        return {name: getattr(value, name) for name in _shown(type(value))}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} does not belong in a file")


_INDENTED = json.JSONEncoder(indent=2, default=_plain)
