"""The route to aider's model, and the report that its driver wrote: it comes out of a cell, so nothing is trusted."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrial import models
from retrial.attempts import AgentResult
from retrial.chat import Message, Usage
from retrial.errors import UsageError
from retrial.models import endpoints
from retrial.models.endpoints import OPENAI, Endpoint
from retrial.models.failures import ONE_DAY, Failure, kind_of
from retrial.models.wire import read_amount, read_count

LITELLM_NAMES = {"together": "together_ai", "ollama": "ollama_chat"}
"""Prefixes that litellm, which aider asks through, has other words for."""
OLLAMA = "ollama"

COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a model's name is called in aider, and the variables that lead there: the key of its provider, no other."""

    model: str
    """As litellm calls it."""
    variables: Mapping[str, str]
    endpoint: Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class AiderReport:
    effort: AgentResult
    """As far as aider itself knows it."""
    ended: bool
    """aider came to its own end."""
    lint_outcome: bool
    """False: errors that its linter found were left."""
    replies: tuple[str, ...]
    """Those of the chat's messages that the model wrote itself, and not aider in its name."""
    waiting: bool
    """A question is open."""
    failure: Failure | None
    """Why the last question got no answer."""
    tries: int
    """How often that one was asked."""


def find_route(name: str, api_base: str, environ: Mapping[str, str]) -> Route:
    """Return the route of a model's name.

    Raises: UsageError when the name leads nowhere from there, or the key it needs is not set.
    """
    if not name:
        raise UsageError("Agent 'aider' needs a model: -m NAME")
    if models.part_of(name)[0] != models.DEFAULT_PART:
        raise UsageError(
            f"Agent 'aider' asks its model itself, so it cannot have '{name}': name a provider's model, "
            "or one that any OpenAI-compatible server offers with --api-base URL."
        )
    endpoint = endpoints.resolve(name, api_base or None, environ)
    prefix, slash, _ = name.partition("/")
    provider = (endpoints.find(prefix) if slash else None) or OPENAI
    native = f"{LITELLM_NAMES.get(provider.prefix, provider.prefix)}/{endpoint.model}"
    if provider.prefix == OLLAMA and not api_base:
        variables = {"OLLAMA_API_BASE": endpoint.base_url.removesuffix("/v1")}
        return Route(model=native, variables=variables, endpoint=endpoint)
    if endpoint.base_url == provider.base_url:
        return Route(model=native, variables={provider.keys[0]: endpoint.key}, endpoint=endpoint)
    # Elsewhere than at its provider's, everything speaks OpenAI's protocol.
    variables = {"OPENAI_API_BASE": endpoint.base_url, "OPENAI_API_KEY": endpoint.key or "none"}
    return Route(model=f"{OPENAI.prefix}/{endpoint.model}", variables=variables, endpoint=endpoint)


def read(results: Mapping[str, bytes]) -> AiderReport | None:
    """None when there is none that is whole."""
    try:
        # A very long chat does not come out.
        return _report(json.loads(results["report.json"]), json.loads(results.get("chat.json", b"[]")))
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _report(data: Mapping[str, Any], said: Sequence[Mapping[str, Any]]) -> AiderReport:
    # When it has ended, a summary that nobody asked for may still have failed.
    failure = None if data["ended"] else data["failure"]
    chat = [(Message(role=str(each["role"]), content=str(each["content"])), each["reply"]) for each in said]
    effort = AgentResult(
        edit_format=str(data["edit_format"]),
        edit_outcome=bool(data["edit_outcome"]),
        reflections=int(data["reflections"]),
        malformed=int(data["malformed"]),
        exhausted=int(data["exhausted"]),
        user_asks=int(data["user_asks"]),
        spent=_spent(data["calls"], int(data["retries"])),
        chat=tuple(message for message, _ in chat),
    )
    return AiderReport(
        effort=effort,
        ended=bool(data["ended"]),
        lint_outcome=data["lint_outcome"] is not False,
        replies=tuple(message.content for message, reply in chat if reply),
        waiting=bool(data["waiting"]),
        failure=_failure(failure) if failure else None,
        tries=int(failure["tries"]) if failure else 0,
    )


def _spent(calls: Sequence[Mapping[str, Any]], retries: int) -> Usage:
    """What all calls took; of no use as soon as one number is impossible, for then the sums are too low."""
    found = [_usage(call) for call in calls]
    known = [usage for usage in found if usage is not None]
    return sum(known, Usage(retries=retries)) if len(known) == len(found) else Usage(calls=len(found), cost=None)


def _usage(call: Mapping[str, Any]) -> Usage | None:
    cost, counts = call["cost"], {name: read_count(call[name]) for name in COUNTS}
    tokens = {name: found for name, found in counts.items() if found is not None}
    if len(tokens) < len(counts) or (cost is not None and read_amount(cost) is None):
        return None
    seconds = max(0.0, min(float(call["seconds"]), ONE_DAY))
    return Usage(calls=1, **tokens, cost=read_amount(cost), seconds=seconds)


def _failure(found: Mapping[str, Any]) -> Failure:
    text = str(found["text"])
    return Failure(kind=kind_of(int(found["status"]), text) if found["reached"] else "connection", detail=text)
