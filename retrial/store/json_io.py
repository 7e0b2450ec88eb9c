"""Values of ours as JSON: the edge where dataclasses become plain."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping
from enum import Enum
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

from retrial.system.secrets import MASKER
from retrial.types import Canary, Naming, Outcome, Status, Verdict


def to_json(value: object) -> bytes:
    return (_indented(value, "\n") + "\n").encode()


def to_jsonl(value: object) -> bytes:
    """In a journal; what is compared with a journal goes through this too. Without the keys that are used."""
    return MASKER.redact_data(to_exact_jsonl(value))


def to_exact_jsonl(value: object) -> bytes:
    """Nothing is masked: for the cache."""
    return (json.dumps(value, default=_to_builtins, allow_nan=False) + "\n").encode()


def from_json(content: bytes) -> Any:
    """Parse what we wrote; older versions wrote costs that are not finite as `Infinity`: they are unknown.

    Raises: ValueError, RecursionError.
    """
    return json.loads(content, parse_constant=lambda name: None)


def fields_of(kind: type, value: Mapping[str, Any]) -> dict[str, Any]:
    """Of what JSON has, the fields of this dataclass: other versions of ours may have written more."""
    return {field.name: value[field.name] for field in dataclasses.fields(kind) if field.name in value}


_WORDS = {None: "null", True: "true", False: "false"}


def _indented(value: object, line: str) -> str:
    """As `json.dumps` has it with `indent=2`, which takes several times as long, and of large values much memory."""
    inner = line + "  "
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, dict) and value:
        entries = (f"{encode_basestring_ascii(_key(key))}: {_indented(each, inner)}" for key, each in value.items())
        return "{" + inner + f",{inner}".join(entries) + line + "}"
    if isinstance(value, list | tuple) and value:
        return "[" + inner + f",{inner}".join(_indented(each, inner) for each in value) + line + "]"
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value)
    if isinstance(value, int | float | dict | list | tuple):
        return json.dumps(value, allow_nan=False)
    return _indented(_to_builtins(value), line)


def _key(key: object) -> str:
    """JSON has texts for keys alone."""
    return key if isinstance(key, str) else next(iter(json.loads(json.dumps({key: None}))))


@functools.cache
def _shown(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.repr)


def _to_builtins(value: object) -> object:
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


def decode_canary(value: Mapping[str, Any]) -> Canary:
    """As `verdict`."""
    lists = {field: tuple(value[field]) for field in ("places", "words")}
    return Canary(**{**value, **lists, "naming": Naming(value["naming"])})


def decode_verdict(value: Mapping[str, Any]) -> Verdict:
    """As it was before it was written.

    Raises: KeyError, TypeError or ValueError when it was something else.
    """
    return Verdict(
        outcome=Outcome(value["outcome"]),
        reason=value["reason"],
        tests={test: Status(status) for test, status in value["tests"].items()},
        lint=tuple(value["lint"]),
        exit_code=value["exit_code"],
        seconds=value["seconds"],
        proof=value["proof"],
        stdout=value["stdout"],
        stderr=value["stderr"],
        dropped=tuple(value["dropped"]),
        telling=value["telling"],
        applied=value["applied"],
        official=value["official"],
        busy=value.get("busy", False),
        rule=value["rule"],
        canary=value["canary"],
        proved=tuple(value["proved"]),
        erred=tuple(value["erred"]),
        proved_ids=tuple(value["proved_ids"]),
        changed=tuple(value["changed"]),
        # Journals of earlier versions do not have these.
        cpu_seconds=value.get("cpu_seconds"),
        chosen=tuple(value.get("chosen", ())),
        fallbacks=tuple(value.get("fallbacks", ())),
    )
