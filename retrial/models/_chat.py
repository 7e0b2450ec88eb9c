"""The chat-completions protocol, both ways, as pure functions: a request's body, and what a reply's body says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from retrial.attempts import Message, Reply, Request, ToolCall, Usage
from retrial.models._failures import Failure
from retrial.prices import Price

REFUSABLE: tuple[tuple[str, str], ...] = (
    ("max_tokens", "max_completion_tokens"),
    ("temperature", ""),
    ("seed", ""),
    ("tool_choice", ""),
)
"""Parameters that some models refuse → the name to use instead; empty: leave it out."""


def body(request: Request, model: str, extra: Mapping[str, object], refused: frozenset[str]) -> dict[str, object]:
    """What is sent."""
    options: dict[str, object] = {
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
    }
    for name, instead in REFUSABLE:
        if name in refused and name in options:
            value = options.pop(name)
            if instead:
                options[instead] = value
    messages = [_message(message) for message in request.messages]
    return {"model": model, "messages": messages, **options, **_tools(request, refused), **extra}


def _message(message: Message) -> dict[str, object]:
    sent: dict[str, object] = {"role": message.role, "content": message.content}
    if message.calls:
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    if message.call_id:
        sent["tool_call_id"] = message.call_id
    return sent


def _tools(request: Request, refused: frozenset[str]) -> dict[str, object]:
    """The functions; where there is but one, it must be called."""
    if not request.tools:
        return {}
    sent: dict[str, object] = {"tools": [dict(tool) for tool in request.tools]}
    if len(request.tools) == 1 and "tool_choice" not in refused:
        sent["tool_choice"] = {"type": "function", "function": {"name": function_name(request.tools[0])}}
    return sent


def function_name(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])


def refused_parameter(failure: Failure, sent: Mapping[str, object]) -> str:
    """Which of the parameters that were sent the provider will not have; empty if that is not what it says."""
    if failure.kind != "request":
        return ""
    named = (name for name, _ in REFUSABLE if name in sent and re.search(rf"\b{name}\b", failure.detail))
    return next(named, "")


def read(content: bytes, price: Price | None) -> Reply | Failure:
    """The reply in a body that came with status 200, which does not yet make it one."""
    try:
        data: Any = json.loads(content)
    except ValueError:
        return Failure(kind="torn", detail=f"{len(content)} bytes")
    if not isinstance(data, dict):
        return Failure(kind="torn", detail="not a JSON object")
    if data.get("error"):
        return Failure(kind="server", detail=explain(data))
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Failure(kind="server", detail="a reply without choices")
    if choice.get("finish_reason") == "error":
        return Failure(kind="server", detail=explain(choice) or "it broke off while writing")
    return Reply(
        text=_text(message.get("content")),
        calls=_calls(message),
        finish=_finish(choice.get("finish_reason")),
        usage=_usage(data.get("usage"), price),
    )


def explain(data: object) -> str:
    """What an error's body says, for people and for the rules above."""
    error = data.get("error") if isinstance(data, dict) and data.get("error") else data
    message = error.get("message") if isinstance(error, dict) else None
    if isinstance(error, dict) and isinstance(message, str):
        marks = [str(error[mark]) for mark in ("code", "type", "param") if isinstance(error.get(mark), str | int)]
        return message + (f" [{', '.join(marks)}]" if marks else "")
    return error if isinstance(error, str) else json.dumps(error, default=str) if error else ""


def _finish(reason: object) -> str:
    if reason in ("length", "max_tokens"):
        return "length"
    return reason if isinstance(reason, str) and reason else "stop"


def _text(content: object) -> str:
    """Most send a string; some send parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    listed = message.get("tool_calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    return tuple(
        _call(function, str(call.get("id") or f"call-{number}"))
        for number, call in enumerate(calls, start=1)
        if isinstance(function := call.get("function"), dict)
    )


def _call(function: Mapping[str, Any], call_id: str) -> ToolCall:
    return ToolCall(name=str(function.get("name", "")), arguments=_arguments(function.get("arguments")), id=call_id)


def _arguments(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value if value is not None else {})


def _usage(data: object, price: Price | None) -> Usage:
    usage = data if isinstance(data, dict) else {}
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    return Usage(
        calls=1,
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cost=_cost(usage.get("cost"), prompt, completion, price),
    )


def _cost(said: object, prompt: int | None, completion: int | None, price: Price | None) -> float | None:
    """What the provider says it took, else tokens times price; unknown if either is."""
    if isinstance(said, int | float) and not isinstance(said, bool) and said >= 0:
        return float(said)
    if price is None or (not price.free and (prompt is None or completion is None)):
        return None
    return price.cost(prompt or 0, completion or 0)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
