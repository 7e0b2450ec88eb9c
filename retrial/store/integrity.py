"""Files that are not what was written: named, set aside under another name, and made anew."""

from __future__ import annotations

import logging
import os
import re
import zlib
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from types import NoneType
from typing import Any

from retrial.errors import UsageError
from retrial.system.console import say

SHOWN = 20
"""Problems listed at most."""
PREDICTION_FIELDS = ("instance_id", "model_name_or_path", "model_patch", "try", "all_results")
_NUMBER = (int, float)
_ATTEMPT: Shape = {
    **dict.fromkeys(("model", "edit_format", "error"), str),
    **dict.fromkeys(("try", "num_malformed_responses", "prompt_tokens", "completion_tokens"), int),
    **dict.fromkeys(("calls?", "cached_tokens?", "reasoning_tokens?", "num_error_outputs?", "num_user_asks?"), int),
    **dict.fromkeys(("lazy_comments?", "syntax_errors?", "indentation_errors?", "test_timeouts?"), int),
    "num_exhausted_context_windows?": int,
    "plausible": bool,
    "unverified?": bool,
    "cost": (*_NUMBER, NoneType),
    "model_seconds": _NUMBER,
    "tests_outcomes": [bool],
    "served?": [str],
    "faults?": {"*": int},
}
_RECORD: Shape = {"model_patch": (str, NoneType), "try": int, "all_results": [_ATTEMPT]}
_END = b"\n}\n"
_SEAL = b',\n  "crc": "%08x"' + _END
_SEALED = re.compile(rb',\n  "crc": "([0-9a-f]{8})"\n\}\n')
_SEAL_BYTES = len(_SEAL % 0)
_LOG = logging.getLogger(__name__)
Shape = Any
"""Types, a list with the shape of its items, or names with theirs: `*` for any, a `?` after one that may be missing."""


def free_name(path: Path) -> Path:
    """For what was at this path; nothing has it."""
    names = (_aside(path, number) for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.damaged{f'-{number}' if number > 1 else ''}")


def was_mended(path: Path) -> bool:
    """Whether what is there was made of something that is set aside."""
    return path.exists() and os.path.lexists(_aside(path, 1))


def set_aside(path: Path, why: str) -> str:
    """Under a name that nothing had before; returns what to say of it."""
    aside = free_name(path)
    path.rename(aside)
    _LOG.warning("A damaged file was set aside.", extra={"file": str(path), "aside": str(aside), "why": why})
    return f"note: {why.rstrip('.')}; it is now {aside.name}, and is made anew"


def tell(notes: Sequence[str]) -> None:
    for note in _first(notes):
        say(note)


def refuse(problems: Sequence[str], *help: str) -> UsageError:
    """All problems in one message, the first twenty by name."""
    return UsageError("\n".join((*_first(problems), *help)))


def _first(texts: Sequence[str]) -> list[str]:
    more = len(texts) - SHOWN
    return [*texts[:SHOWN], *([f"… and {more} more."] if more > 0 else [])]


def sealed(content: bytes) -> bytes:
    """An indented JSON object, with a checksum of its own bytes for its last field."""
    body = content.removesuffix(_END)
    return body + _SEAL % zlib.crc32(body)


def no_prediction(path: Path, content: bytes, record: Any) -> str:
    """Why what this file holds cannot be the prediction of the task that it is named after; empty when it can.

    Where no checksum vouches for it (older runs have none, and whoever changes a file by hand may remove it), what it
    looks like must.
    """
    seal = _SEALED.fullmatch(content, max(0, len(content) - _SEAL_BYTES))
    if seal and zlib.crc32(memoryview(content)[:-_SEAL_BYTES]) != int(seal[1], 16):
        return f"{path} is not as it was written: its checksum says so."
    if not isinstance(record, dict) or record.get("instance_id") != path.stem:
        return f"{path} is not a prediction: its instance_id must be '{path.stem}'."
    missing = [name for name in PREDICTION_FIELDS if name not in record]
    if missing or not record["all_results"]:
        return f"{path} is not a whole prediction: {(missing or ['all_results'])[0]} is missing."
    if not seal and not matches_schema(record, _RECORD):
        return f"{path} is not a prediction: its model_patch, its try or one of its all_results is not what it must be."
    return ""


def matches_schema(value: object, shape: Shape) -> bool:
    if isinstance(shape, list):
        return isinstance(value, list) and all(matches_schema(each, shape[0]) for each in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape)
    if not isinstance(value, dict):
        return False
    if "*" in shape:
        return all(matches_schema(each, shape["*"]) for each in value.values())
    wanted = {name.removesuffix("?"): each for name, each in shape.items()}
    there = all(name in value for name in shape if not name.endswith("?"))
    return there and all(matches_schema(value[name], each) for name, each in wanted.items() if name in value)
