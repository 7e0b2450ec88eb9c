"""Values of ours as JSON: the edge where dataclasses become plain."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import zlib
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from retrial.errors import UsageError
from retrial.system.files import read_file
from retrial.system.secrets import MASKER

T = TypeVar("T")


def to_json(value: object) -> bytes:
    # Loading it takes longer than most commands that write no file.
    import msgspec

    content = json.dumps(value, default=_to_builtins, allow_nan=False).encode()
    try:
        # The standard library indents in Python, which takes several times as long.
        return msgspec.json.format(content, indent=2) + b"\n"
    except msgspec.DecodeError:
        # A lone surrogate, as patches may hold.
        return json.dumps(value, indent=2, default=_to_builtins, allow_nan=False).encode() + b"\n"


def to_jsonl(value: object) -> bytes:
    """In a journal; what is compared with a journal goes through this too. Without the keys that are used."""
    return MASKER.redact_data(to_exact_jsonl(value))


def to_exact_jsonl(value: object) -> bytes:
    """Nothing is masked: for the cache."""
    return (json.dumps(value, default=_to_builtins, allow_nan=False) + "\n").encode()


def masked(value: T) -> T:
    """The same without the keys that are used: a later escape would hide them from the masker."""
    content = to_exact_jsonl(value)
    found: T = value if MASKER.redact_data(content) == content else _masked(value)
    return found


def _masked(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Enum):
        return MASKER.redact_data(value.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
    if isinstance(value, Mapping):
        return {_masked(key): _masked(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_masked, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = {field.name: _masked(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **own)
    return value


class Seal:
    """The last field of a JSON object: a checksum of all bytes before it."""

    def __init__(self, separator: bytes, end: bytes) -> None:
        self._form = separator + b'"crc": "%08x"' + end
        self._pattern = re.compile(re.escape(separator) + rb'"crc": "([0-9a-f]{8})"' + re.escape(end))
        self._size = len(self._form % 0)

    def sealed(self, body: bytes) -> bytes:
        """`body` is an object without its end."""
        return body + self._form % zlib.crc32(body)

    def holds(self, content: bytes) -> bool | None:
        """Whether the content is as it was written; None where it has no checksum."""
        seal = self._pattern.fullmatch(content, max(0, len(content) - self._size))
        return zlib.crc32(memoryview(content)[: -self._size]) == int(seal[1], 16) if seal else None


def from_json(content: bytes) -> Any:
    """Parse what we wrote; older versions wrote costs that are not finite as `Infinity`: they are unknown.

    Raises: ValueError, RecursionError.
    """
    return json.loads(content, parse_constant=lambda name: None)


def read_json(path: Path) -> Any:
    """Raises: UsageError naming the file when it is not JSON."""
    return read_json_file(path)[1]


def read_json_file(path: Path) -> tuple[bytes, Any]:
    """What is there, and what that says."""
    try:
        content = read_file(path)
        return content, from_json(content)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid JSON: {error}.") from error


def read_object(path: Path) -> object:
    value = read_json(path)
    if not isinstance(value, dict):
        raise UsageError(f"{path} must hold a JSON object.")
    return value


def decode(value: object, kind: type[T]) -> T:
    """Make a dataclass of what JSON has of it, or another dataclass; fields that it does not have are ignored.

    Raises: ValueError with the path of the first field that is wrong or missing.
    """
    # Loading it takes longer than most commands that read no file.
    import msgspec

    return msgspec.convert(value, kind, from_attributes=True)


IF_GIVEN = {"if_given": True}
"""Metadata of a field that is written only where it differs from its default."""
NAMED_TRY = {"name": "try"}
"""Metadata of a field whose name in files is a keyword of Python."""
FIRST = {"first": True}
"""Metadata of a field that is written before all others: its class has it beside those of another."""

FLAT = {"flat": True}
"""Metadata of a field whose own fields, or entries, are written among those beside it; of None, nothing is."""
EMPTY = {"empty": True}
"""Metadata of a field whose None is written as an object without fields."""


@functools.cache
def _written(kind: type) -> tuple[tuple[str, str, object, frozenset[str]], ...]:
    """For each field: its name, its name in files, the value that is left out, and the names in its metadata."""
    # What is not to be shown is not to be written either.
    shown = [(field, field.metadata) for field in dataclasses.fields(kind) if field.repr]
    shown.sort(key=lambda each: "first" not in each[1])
    return tuple(
        (field.name, how.get("name", field.name), field.default if "if_given" in how else _ALWAYS, frozenset(how))
        for field, how in shown
    )


_ALWAYS = object()


def to_fields(value: object) -> dict[str, object]:
    """What is written of a dataclass, by name."""
    kind: type = type(value)
    found = dict[str, object]()
    for field, name, without, how in _written(kind):
        member = getattr(value, field)
        if "flat" in how and member is not None:
            found |= member if isinstance(member, Mapping) else to_fields(member)
        elif "flat" not in how and member != without:
            found[name] = {} if "empty" in how and member is None else member
    return found


def _to_builtins(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_fields(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} does not belong in a file")
