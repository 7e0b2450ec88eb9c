"""What models cost."""

from __future__ import annotations

import pytest

from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.models.prices import Price, parse_price, price


@pytest.mark.parametrize(
    "name",
    [
        "gpt-5",
        "openai/gpt-5",
        "anthropic/claude-opus-4",
        "gemini/gemini-2.5-pro",
        "deepseek/deepseek-chat",
        "xai/grok-4",
    ],
)
def test_a_known_model_has_a_price(name: str) -> None:
    found = price(name, None)
    assert found is not None
    assert 0 < found.prompt < found.completion
    assert found.cost(1_000, 1_000) == pytest.approx((found.prompt + found.completion) / 1000)
    assert found.cost(0, 0) == 0.0


@pytest.mark.parametrize(
    "name", ["", "nope", "nope/nope", "openai/", "openrouter/nope/nope:free", "vllm/gpt-5", "ü/%\n"]
)
def test_an_unknown_model_has_none(name: str) -> None:
    assert price(name, None) is None


def test_a_price_that_is_given_wins() -> None:
    assert price("nope", (1.0, 2.0)) == price("gpt-5", (1.0, 2.0)) == Price(prompt=1.0, completion=2.0)


def test_a_cost_is_tokens_times_price() -> None:
    assert Price(prompt=1.0, completion=2.0).cost(500_000, 250_000) == 1.0


def test_a_price_is_written_in_slash_out() -> None:
    assert parse_price("0.25/2") == (0.25, 2.0)


@pytest.mark.parametrize("text", ["", "1", "1/2/3", "a/b", "-1/2", "nan/1", "1/inf"])
def test_anything_else_is_bad_usage(text: str) -> None:
    with pytest.raises(UsageError, match="is not a price"):
        parse_price(text)


def test_what_comes_from_a_cache_is_cheaper_where_the_table_says_so() -> None:
    known = price("anthropic/claude-opus-4", None)
    assert known is not None
    plain = known.cost(1000, 100)
    cached = Usage(prompt_tokens=1000, completion_tokens=100, cached_tokens=900)
    assert known.of(cached) < plain < known.cost(1000, 100, cache_write=900)


def test_a_price_that_is_given_makes_no_difference_for_a_cache() -> None:
    given = Price(prompt=1.0, completion=2.0)
    usage = Usage(prompt_tokens=1000, completion_tokens=100, cached_tokens=900, cache_write_tokens=50)
    assert given.of(usage) == given.cost(1000, 100)


def test_more_from_the_cache_than_there_was_is_counted_as_if_there_were_none() -> None:
    known = price("gpt-5", None)
    assert known is not None
    usage = Usage(prompt_tokens=1000, completion_tokens=100, cached_tokens=5000)
    assert known.of(usage) == pytest.approx(known.cost(1000, 100))


def test_a_name_for_litellm_has_the_price_that_it_has_without() -> None:
    assert price("litellm/openai/gpt-5", None) == price("openai/gpt-5", None)
