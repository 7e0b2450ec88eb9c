"""The chat-completions protocol, both ways, as pure functions: a request's body, and what a reply's body says."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from retrial.chat import Message, Reply, Request, ToolCall
from retrial.models import bodies, usage
from retrial.models.failures import Failure
from retrial.models.prices import Price
from retrial.system.console import printable

REFUSABLE: tuple[tuple[str, str], ...] = (
    ("max_tokens", "max_completion_tokens"),
    ("temperature", ""),
    ("seed", ""),
    ("tool_choice", ""),
)
"""Parameters that some models refuse → the name to use instead; empty: leave it out. They are asked for by default;
what only the user asks for (effort, an extra body) is never left out in silence."""

CUT_OFF = ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded")
FILTERED = ("content_filter", "content-filter", "safety", "recitation", "blocklist", "prohibited_content", "refusal")
"""What providers call an end that was not the model's own, in any case."""
REPLY_CHARACTERS = 1 << 20
REPLY_CALLS = 100
"""What is used of a reply; a longer one counts as cut off."""
LABEL_CHARACTERS = 100
NOTHING = "(nothing)"
"""What stands for a message that says nothing."""


def body(request: Request, model: str, extra: Mapping[str, object], refused: Collection[str]) -> dict[str, object]:
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
    """As every endpoint takes it: many refuse a chat for what its model once wrote, be it nothing or broken JSON."""
    sent: dict[str, object] = {"role": message.role, "content": _written(message.content)}
    if message.calls:
        sent["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": _name(call), "arguments": _object(call.arguments)}}
            for call in message.calls
        ]
    elif not message.content.strip():
        sent["content"] = NOTHING
    if message.call_id:
        sent["tool_call_id"] = message.call_id
    return sent


def _written(text: str) -> str:
    """Half a character, or a byte that is none, cannot be sent."""
    return re.sub(r"[\ud800-\udfff]", "\ufffd", text)


def _name(call: ToolCall) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "-", call.name) or "nameless"


def _object(arguments: str) -> str:
    """The arguments of a call if they are a JSON object, else one that holds them."""
    try:
        broken = not isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        broken = True
    return json.dumps({"arguments": arguments}) if broken else _written(arguments)


def left_out(request: Request, refused: Collection[str]) -> tuple[str, ...]:
    """What a question goes without, for the model refuses it by every name."""
    names = [name for name, instead in REFUSABLE if name in refused and not instead]
    return tuple(name for name in names if name != "tool_choice" or len(request.tools) == 1)


def _tools(request: Request, refused: Collection[str]) -> dict[str, object]:
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
        data = bodies.loads(content)
    except bodies.OverLimit as error:
        return Failure(kind="limits", detail=str(error))
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
        return Failure(kind="empty", detail="no choices")
    if choice.get("finish_reason") == "error":
        return Failure(kind="empty", detail=explain(choice) or "it broke off while writing")
    reply = Reply(
        text=_text(message.get("content")) or _text(message.get("refusal")),
        calls=_calls(message),
        finish=_finish(choice.get("finish_reason")),
        usage=usage.read(data.get("usage"), price),
        model=_label(data.get("model")),
        fingerprint=_label(data.get("system_fingerprint")),
    )
    return _cut(reply) if _is_long(reply) else reply


def _is_long(reply: Reply) -> bool:
    written = len(reply.text) + sum(len(call.name) + len(call.arguments) + len(call.id) for call in reply.calls)
    return written > REPLY_CHARACTERS or len(reply.calls) > REPLY_CALLS


def _cut(reply: Reply) -> Reply:
    """As if it had been cut off: what a call says is of no use without its end."""
    return replace(reply, text=reply.text[:REPLY_CHARACTERS], calls=(), finish="length")


def _label(name: object) -> str:
    """How a provider names something: shown to people."""
    return printable(_text(name)[:LABEL_CHARACTERS])


def explain(data: object) -> str:
    """What an error's body says, for people and for the rules above."""
    error = data.get("error") if isinstance(data, dict) and data.get("error") else data
    message = error.get("message") if isinstance(error, dict) else None
    if isinstance(error, dict) and isinstance(message, str):
        marks = [str(error[mark]) for mark in ("code", "type", "param") if isinstance(error.get(mark), str | int)]
        return message + (f" [{', '.join(marks)}]" if marks else "")
    return error if isinstance(error, str) else json.dumps(error, default=str) if error else ""


def _finish(reason: object) -> str:
    word = _label(reason).lower()
    if word in CUT_OFF:
        return "length"
    return "content_filter" if word in FILTERED else word or "stop"


def _text(content: object) -> str:
    """Most send a string; some send parts, with what the model thought among them."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    parts = [part for part in content if isinstance(part, dict) and part.get("type", "text") in ("text", "output_text")]
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))


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
