"""The chat-completions protocol, both ways, as pure functions: a request's body, a reply's, and the usage in it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from typing import Any

from retrial.chat import Json, Message, Reply, Request, ToolCall, Usage
from retrial.models import bodies
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

# What a reply took: every provider counts a little differently.
COMPLETION = (("completion_tokens",), ("output_tokens",))
CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("cache_read_input_tokens",),
    ("prompt_cache_hit_tokens",),
    ("cached_tokens",),
)
CACHE_WRITES = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("prompt_tokens_details", "cache_creation_tokens"),
    ("cache_creation_input_tokens",),
)
REASONING = (
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
    ("reasoning_tokens",),
)
"""Where each may be said, the first that is there counts."""
PROMPT_AND_TOTAL = (("prompt_tokens",), ("input_tokens",), ("total_tokens",))
COUNTS = (*PROMPT_AND_TOTAL, *COMPLETION, *CACHED, *CACHE_WRITES, *REASONING)

MOST_TOKENS = 100_000_000
MOST_COST = 100_000.0
"""What one reply can take, in tokens and in USD: a larger number is an error of the provider's."""


def body(request: Request, model: str, extra: Mapping[str, Json], refused: Collection[str]) -> dict[str, Json]:
    """What is sent."""
    options: dict[str, Json] = {
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


def _message(message: Message) -> dict[str, Json]:
    """As every endpoint takes it: many refuse a chat for what its model once wrote, be it nothing or broken JSON."""
    sent: dict[str, Json] = {"role": message.role, "content": _written(message.content)}
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


def _tools(request: Request, refused: Collection[str]) -> dict[str, Json]:
    """The functions; where there is but one, it must be called."""
    if not request.tools:
        return {}
    sent: dict[str, Json] = {"tools": [asdict(tool) for tool in request.tools]}
    if len(request.tools) == 1 and "tool_choice" not in refused:
        sent["tool_choice"] = {"type": "function", "function": {"name": request.tools[0].function.name}}
    return sent


def refused_parameter(failure: Failure, sent: Mapping[str, Json]) -> str:
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
        usage=read_usage(data.get("usage"), price),
        model=_label(data.get("model")),
        fingerprint=_label(data.get("system_fingerprint")),
    )
    written = len(reply.text) + sum(len(call.name) + len(call.arguments) + len(call.id) for call in reply.calls)
    if written > REPLY_CHARACTERS or len(reply.calls) > REPLY_CALLS:
        # As if it had been cut off: what a call says is of no use without its end.
        return replace(reply, text=reply.text[:REPLY_CHARACTERS], calls=(), finish="length")
    return reply


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


def _calls(message: Mapping[str, Json]) -> tuple[ToolCall, ...]:
    listed = message.get("tool_calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    return tuple(
        ToolCall(
            name=str(function.get("name", "")),
            arguments=_arguments(function.get("arguments")),
            id=str(call.get("id") or f"call-{number}"),
        )
        for number, call in enumerate(calls, start=1)
        if isinstance(function := call.get("function"), dict)
    )


def _arguments(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value if value is not None else {})


def read_usage(data: object, price: Price | None) -> Usage:
    """Return one call's usage; its cost is what the provider says it was, else tokens times price, else unknown.

    Where one number is impossible the cost is unknown, so that all that was put by for the call stays counted.
    """
    said: Mapping[str, Json] = data if isinstance(data, dict) else {}
    cached, written, reasoning = (_first_count(said, places) or 0 for places in (CACHED, CACHE_WRITES, REASONING))
    prompt, seen = _prompt(said, cached + written), _first_count(said, COMPLETION)
    completion = _completion(said, seen)
    possible = cached + written <= (prompt or 0) and reasoning <= (completion or 0)
    usage = Usage(
        calls=1,
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cached_tokens=cached if possible else 0,
        cache_write_tokens=written if possible else 0,
        reasoning_tokens=(reasoning or (completion or 0) - (seen or 0)) if possible else 0,
        cost=None,
    )
    counted = possible and prompt is not None and completion is not None
    return replace(usage, cost=_cost(said, counted, usage, price))


def read_amount(value: Any) -> float | None:
    """Return USD; None for what cannot be the cost of a call."""
    return float(value) if type(value) in (int, float) and 0 <= value <= MOST_COST else None


def read_count(value: Any) -> int | None:
    """Return tokens; None for what cannot be a call's."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _prompt(said: Mapping[str, Json], in_cache: int) -> int | None:
    """Add what the cache held where a provider leaves it out of its `input_tokens`."""
    prompt, others = read_count(said.get("prompt_tokens")), read_count(said.get("input_tokens"))
    if prompt is not None or others is None:
        return prompt
    return others + (in_cache if "cache_read_input_tokens" in said or "cache_creation_input_tokens" in said else 0)


def _completion(said: Mapping[str, Json], seen: int | None) -> int | None:
    """With the reasoning, which some count only in the total; it is billed like the rest."""
    prompt, total = read_count(said.get("prompt_tokens")), read_count(said.get("total_tokens"))
    return seen if seen is None or prompt is None or total is None else max(seen, total - prompt)


def _cost(said: Mapping[str, Json], counted: bool, usage: Usage, price: Price | None) -> float | None:
    cost = read_amount(said.get("cost"))
    if cost is not None:
        return cost
    if price is None or price.free:
        return None if price is None else 0.0
    return price.of(usage) if counted and not _has_impossible(said) else None


def _has_impossible(said: Mapping[str, Json]) -> bool:
    """Whether it has a number that cannot be a cost, or a count of tokens."""
    counts = (found for place in COUNTS if _is_number(found := _look_up(said, place)))
    return _is_number(said.get("cost")) or any(read_count(found) is None for found in counts)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _first_count(said: Mapping[str, Json], places: tuple[tuple[str, ...], ...]) -> int | None:
    return next((found for place in places if (found := read_count(_look_up(said, place))) is not None), None)


def _look_up(said: Any, place: tuple[str, ...]) -> object:
    for name in place:
        said = said.get(name) if isinstance(said, dict) else None
    return said
