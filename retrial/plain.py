"""Values of ours as JSON: the edge where dataclasses become plain."""

from __future__ import annotations

import dataclasses
import json
from enum import Enum
from pathlib import Path

from retrial.secrets import KNOWN


def to_json(value: object) -> bytes:
    return (json.dumps(value, indent=2, default=_plain) + "\n").encode()


def to_line(value: object) -> bytes:
    """In a journal; what is compared with a journal goes through this too. Without what nobody may see."""
    return KNOWN.masked_bytes((json.dumps(value, default=_plain) + "\n").encode())


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # What is not to be shown is not to be written either.
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} does not belong in a file")
