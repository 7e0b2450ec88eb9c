"""What a line of a journal holds, event by event: where no checksum vouches for it, this must."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import NoneType
from typing import Any

from retrial.chat import Usage
from retrial.store.integrity import Shape, matches_schema

STARTED, RESUMED, KEPT, ENDED = "attempt_started", "attempt_resumed", "attempt_kept", "attempt_ended"
"""An attempt from scratch; one that is gone on with; one that ended in an earlier go; and its end."""
DISCARDED = "attempts_discarded"
"""All attempts before it: the agent did not work, and the task is done again."""

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
    "chosen?": [str],
    "fallbacks?": [str],
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
    DISCARDED: {"reason": str},
}


def is_sound(line: Mapping[str, Any]) -> bool:
    """Whether it holds what its readers look for; an event that nobody reads may hold anything."""
    return matches_schema(line, _SHAPES.get(line["event"], {})) and matches_schema(
        line, {"attempt?": int, "call?": int}
    )
