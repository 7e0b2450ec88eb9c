"""What a line of a journal holds, event by event: where no checksum vouches for it, this must."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any

from retrial.attempts import Usage

STARTED, RESUMED, KEPT, ENDED = "attempt_started", "attempt_resumed", "attempt_kept", "attempt_ended"
"""An attempt from scratch; one that is gone on with; one that ended in an earlier go; and its end."""

Shape = Any
"""Types, a list with the shape of its items, or names with theirs: `*` for any, a `?` after one that may be missing."""

_NUMBER = (int, float)
_COST = (int, float, NoneType)
_CALLS = [{"name": str, "arguments": str, "id?": str}]
_MESSAGES = [{"role": str, "content": str, "calls?": _CALLS, "call_id?": str}]
_USAGE = {**{f"{field.name}?": _NUMBER for field in fields(Usage) if field.name != "cost"}, "cost": _COST}
_BEGINNING = {"attempt": int, "model": str, "sampling": {"seed": int, "temperature": _NUMBER}}
_VERDICT = {
    "outcome": str,
    "reason": str,
    "tests": {"*": str},
    "lint": [str],
    "stdout": str,
    "stderr": str,
    "telling": str,
}  # fmt: skip
_RESULT = {
    "error": str,
    "model": str,
    "seed": int,
    "temperature": _NUMBER,
    "round": int,
    "edit_format": str,
    "model_patch": str,
    "faults": {"*": int},
    "notes": [str],
    "visible": {"reason": str},
    **dict.fromkeys(("plausible", "unverified", "edit_outcome", "lint_outcome"), bool),
    "test_outcome": (bool, NoneType),
}
_SHAPES: Mapping[str, Shape] = {
    **dict.fromkeys((STARTED, RESUMED, KEPT), _BEGINNING),
    "request": {
        "model": str,
        "reserved?": _COST,
        "request": {
            "messages": _MESSAGES,
            "tools": list,
            **dict.fromkeys(("temperature", "seed", "max_tokens"), _NUMBER),
        },
    },
    "reply": {
        "reply": {"text": str, "calls": _CALLS, "finish": str, "usage": _USAGE, "model?": str, "left_out?": [str]}
    },
    "failed": {"reason": str},
    "lost": {"cost": _COST},
    "spent": {"usage": _USAGE},
    "over": {"kind": str, "reason": str},
    "check": {"key": str, "verdict?": _VERDICT},
    "agent_chat": {"messages": _MESSAGES},
    ENDED: {"attempt": int, "result": _RESULT, "model?": str},
    "not_measured": {"reason": str},
}


def is_sound(line: Mapping[str, Any]) -> bool:
    """Whether it holds what its readers look for; an event that nobody reads may hold anything."""
    return _fits(line, _SHAPES.get(line["event"], {})) and _fits(line, {"attempt?": int, "call?": int})


def _fits(value: object, shape: Shape) -> bool:
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(each, shape[0]) for each in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape)
    if not isinstance(value, dict):
        return False
    if "*" in shape:
        return all(_fits(each, shape["*"]) for each in value.values())
    wanted = {name.removesuffix("?"): each for name, each in shape.items()}
    there = all(name in value for name in shape if not name.endswith("?"))
    return there and all(_fits(value[name], each) for name, each in wanted.items() if name in value)
