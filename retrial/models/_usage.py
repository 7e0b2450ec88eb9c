"""What a reply's body says it took: every provider counts a little differently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from retrial.attempts import Usage
from retrial.prices import Price

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


def read(data: object, price: Price | None) -> Usage:
    """One call's usage; its cost is what the provider says it was, else tokens times price, else unknown."""
    said: Mapping[str, Any] = data if isinstance(data, dict) else {}
    cached, written, reasoning = (_first(said, places) for places in (CACHED, CACHE_WRITES, REASONING))
    prompt, seen = _prompt(said, cached + written), _seen(said)
    completion = _completion(said, seen)
    usage = Usage(
        calls=1,
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cached_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=reasoning or (completion or 0) - (seen or 0),
        cost=None,
    )
    return replace(usage, cost=_cost(said.get("cost"), prompt is not None and completion is not None, usage, price))


def _prompt(said: Mapping[str, Any], in_cache: int) -> int | None:
    """Whoever speaks of `input_tokens` and of a cache leaves out of them what the cache held."""
    prompt, others = _count(said.get("prompt_tokens")), _count(said.get("input_tokens"))
    if prompt is not None or others is None:
        return prompt
    return others + (in_cache if "cache_read_input_tokens" in said or "cache_creation_input_tokens" in said else 0)


def _seen(said: Mapping[str, Any]) -> int | None:
    completion = _count(said.get("completion_tokens"))
    return _count(said.get("output_tokens")) if completion is None else completion


def _completion(said: Mapping[str, Any], seen: int | None) -> int | None:
    """With the reasoning, which some count only in the total; it is billed like the rest."""
    prompt, total = _count(said.get("prompt_tokens")), _count(said.get("total_tokens"))
    return seen if seen is None or prompt is None or total is None else max(seen, total - prompt)


def _cost(said: object, counted: bool, usage: Usage, price: Price | None) -> float | None:
    if isinstance(said, int | float) and not isinstance(said, bool) and said >= 0:
        return float(said)
    if price is None or not (price.free or counted):
        return None
    return price.of(usage)


def _first(said: Mapping[str, Any], places: tuple[tuple[str, ...], ...]) -> int:
    return next((count for place in places if (count := _count(_at(said, place))) is not None), 0)


def _at(said: Any, place: tuple[str, ...]) -> object:
    for name in place:
        said = said.get(name) if isinstance(said, dict) else None
    return said


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
