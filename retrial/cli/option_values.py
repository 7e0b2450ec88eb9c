"""Values of options as people write them, on the command line or in YAML, and what is wrong with them in a sentence."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from retrial.errors import UsageError

LARGEST = 1_000_000
"""Of any number: eleven days in seconds; clocks and counters overflow beyond."""

OURS: Mapping[str, str] = {
    "model": "-m",
    "messages": "--agent",
    "temperature": "--temperature",
    "seed": "--seed",
    "max_tokens": "--max-tokens",
    "max_completion_tokens": "--max-tokens",
    "reasoning_effort": "--reasoning-effort",
    "tools": "--edit-format",
    "tool_choice": "--edit-format",
    "n": "--tries",
    "stream": "",
}
"""Fields of a request that an extra body may not have → the option for it. What they do is counted, and paid for."""


def value(item: dataclasses.Field[Any], given: Any) -> Any:
    """Raises: UsageError when it is not of the field's kind."""
    name, kind = option_name(item.name), type_name(item)
    if item.metadata["filled"] and given in (None, ""):
        raise UsageError(f"{name} is empty: say what, or leave it out.")
    if item.metadata["json"]:
        return _json_object(name, given)
    if kind.startswith("tuple"):
        values = given if isinstance(given, list) else [given]
        return tuple(text(name, each) for each in values if each is not None)
    if kind == "bool":
        if not isinstance(given, bool):
            raise UsageError(f"{name} must be true or false, not '{given}'.")
        return given
    if kind == "str":
        return "" if given is None else text(name, given)
    return _number(item, name, kind, given)


def text(name: str, given: Any) -> str:
    """Raises: UsageError for what YAML takes for something else, as it does `off` and `no`."""
    if isinstance(given, bool | list | dict):
        raise UsageError(f"{name} must be text (in quotes if need be), not '{str(given)[:60]}'.")
    return str(given)


def option_name(name: str) -> str:
    return "--" + name.replace("_", "-")


def type_name(item: dataclasses.Field[Any]) -> str:
    return str(item.type).partition(" |")[0]


def nearest(text: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(text, known, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else "."


def _number(item: dataclasses.Field[Any], name: str, kind: str, given: Any) -> Any:
    if given is None and item.default is None:
        return None
    try:
        if isinstance(given, bool):
            raise ValueError
        number = int(str(given)) if kind == "int" else float(str(given))
    except ValueError:
        raise UsageError(f"{name} must be a {'whole ' if kind == 'int' else ''}number, not '{given}'.") from None
    minimum = item.metadata["minimum"]
    if minimum is not None and not number >= minimum:
        raise UsageError(f"{name} must be at least {minimum:g}, not {number:g}.")
    if not number <= LARGEST:
        raise UsageError(f"{name} must be at most {LARGEST:g}, not {number:g}.")
    return number


def _json_object(name: str, given: Any) -> str:
    """The object as text, the same for the same object; empty for none."""
    if given in (None, ""):
        return ""
    try:
        found = json.loads(given) if isinstance(given, str) else given
        text = json.dumps(found, sort_keys=True, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} must be a JSON object, such as '{{\"top_p\": 0.9}}': {error}.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{name} must be a JSON object, such as '{{\"top_p\": 0.9}}', not {text[:60]}.")
    ours = next((key for key in found if key in OURS), None)
    if ours is not None:
        instead = f": use {OURS[ours]}" if OURS[ours] else ""
        raise UsageError(f"{name} may not have '{ours}'{instead}.")
    return text if found else ""
