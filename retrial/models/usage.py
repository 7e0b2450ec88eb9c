"""What a reply's body says it took: every provider counts a little differently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from retrial.chat import Usage
from retrial.models.prices import Price

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
COUNTS = (
    *((name,) for name in ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens")),
    *CACHED,
    *CACHE_WRITES,
    *REASONING,
)


MOST_TOKENS = 100_000_000
MOST_COST = 100_000.0
"""What one reply can take, in tokens and in USD: a larger number is an error of the provider's."""


def read(data: object, price: Price | None) -> Usage:
    """One call's usage; its cost is what the provider says it was, else tokens times price, else unknown.

    Where one number is impossible the cost is unknown, so that all that was put by for the call stays counted.
    """
    said: Mapping[str, Any] = data if isinstance(data, dict) else {}
    cached, written, reasoning = (_first(said, places) for places in (CACHED, CACHE_WRITES, REASONING))
    prompt, seen = _prompt(said, cached + written), _seen(said)
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


def amount(value: Any) -> float | None:
    """USD; None for what cannot be the cost of a call."""
    return float(value) if type(value) in (int, float) and 0 <= value <= MOST_COST else None


def count(value: Any) -> int | None:
    """Tokens; None for what cannot be a call's."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _prompt(said: Mapping[str, Any], in_cache: int) -> int | None:
    """Whoever speaks of `input_tokens` and of a cache leaves out of them what the cache held."""
    prompt, others = count(said.get("prompt_tokens")), count(said.get("input_tokens"))
    if prompt is not None or others is None:
        return prompt
    return others + (in_cache if "cache_read_input_tokens" in said or "cache_creation_input_tokens" in said else 0)


def _seen(said: Mapping[str, Any]) -> int | None:
    completion = count(said.get("completion_tokens"))
    return count(said.get("output_tokens")) if completion is None else completion


def _completion(said: Mapping[str, Any], seen: int | None) -> int | None:
    """With the reasoning, which some count only in the total; it is billed like the rest."""
    prompt, total = count(said.get("prompt_tokens")), count(said.get("total_tokens"))
    return seen if seen is None or prompt is None or total is None else max(seen, total - prompt)


def _cost(said: Mapping[str, Any], counted: bool, usage: Usage, price: Price | None) -> float | None:
    cost = amount(said.get("cost"))
    if cost is not None:
        return cost
    if price is None or price.free:
        return None if price is None else 0.0
    return price.of(usage) if counted and not _has_impossible(said) else None


def _has_impossible(said: Mapping[str, Any]) -> bool:
    """Whether it has a number that cannot be a cost, or a count of tokens."""
    counts = (found for place in COUNTS if _is_number(found := _at(said, place)))
    return _is_number(said.get("cost")) or any(count(found) is None for found in counts)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _first(said: Mapping[str, Any], places: tuple[tuple[str, ...], ...]) -> int:
    return next((found for place in places if (found := count(_at(said, place))) is not None), 0)


def _at(said: Any, place: tuple[str, ...]) -> object:
    for name in place:
        said = said.get(name) if isinstance(said, dict) else None
    return said
