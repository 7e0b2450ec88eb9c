"""What models cost: given by the user, else from genai-prices' table, offline. Unknown is None, never 0."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.models import endpoints

_FREE = ("local", "ollama", "ollama_chat", "replay")

_TABLE_NAMES: Mapping[str, str] = {"gemini": "google", "xai": "x-ai"}
"""Providers that the table has by other names than ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per million tokens, in and out."""

    prompt: float
    completion: float
    table: tuple[str, str] | None = None
    """(provider, model) in the table, whose prices may rise with the prompt's length."""

    @property
    def free(self) -> bool:
        return self.prompt == 0.0 and self.completion == 0.0

    def cost(self, prompt_tokens: int, completion_tokens: int, *, cache_write: int = 0) -> float:
        """USD for one call; some of the prompt's tokens may be put into a cache."""
        tokens = Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens, cache_write_tokens=cache_write)
        return self.of(tokens)

    def of(self, usage: Usage) -> float:
        """USD for what was used."""
        looked_up = _look_up(self.table, usage) if self.table else None
        if looked_up is not None:
            return sum(looked_up)
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6


def price(model: str, given: tuple[float, float] | None) -> Price | None:
    """The price of a model named as the user did, or None when nobody knows.

    A price that is given wins, but models on one's own machine are free.
    """
    prefix, slash, rest = model.partition("/")
    if prefix == "litellm":
        return price(rest, given)
    if prefix in _FREE:
        return Price(prompt=0.0, completion=0.0)
    if given is not None:
        return Price(prompt=given[0], completion=given[1])
    provider = endpoints.find(prefix) if slash else endpoints.OPENAI
    if provider is None:
        return None
    table = (_TABLE_NAMES.get(provider.prefix, provider.prefix), rest if slash else model)
    looked_up = _look_up(table, Usage(prompt_tokens=1000, completion_tokens=1000))
    if looked_up is None:
        return None
    return Price(prompt=looked_up[0] * 1000, completion=looked_up[1] * 1000, table=table)


def no_price(models: Iterable[str]) -> str:
    """Why a cost is unknown, and what to do."""
    return f"no price for {', '.join(dict.fromkeys(models)) or 'the model'}; give --price"


def parse_price(text: str) -> tuple[float, float]:
    """`IN/OUT` in USD per million tokens.

    Raises: UsageError.
    """
    try:
        numbers = tuple(float(part) for part in text.split("/"))
    except ValueError:
        numbers = ()
    if len(numbers) != 2 or not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise UsageError(f"'{text}' is not a price: give IN/OUT in USD per million tokens, such as 0.25/2.")
    return numbers[0], numbers[1]


def _look_up(table: tuple[str, str], usage: Usage) -> tuple[float, float] | None:
    provider, model = table
    if not model:
        return None
    try:
        import genai_prices
    except ModuleNotFoundError:  # where only one part of ours is used: as if the table were empty
        return None
    tokens = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        found = genai_prices.calc_price(tokens, model, provider_id=provider)
    except (LookupError, ValueError):  # not in the table, or priced by something else than tokens
        return None
    return float(found.input_price), float(found.total_price - found.input_price)
