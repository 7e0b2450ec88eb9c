"""Models, one file for each kind of endpoint. `open_model` turns a name into a model, `price_of` into its price.

Imports `executors`, `store` and what is below; `grading` and the folders above may import it.
"""

from __future__ import annotations

from retrial import registry
from retrial.models import prices
from retrial.models.prices import Price
from retrial.options import ModelSettings
from retrial.protocols import Model, ModelContext

DEFAULT_PART = "openai"
"""Speaks to every OpenAI-compatible endpoint, so it takes all names that no other part claims."""


def part_of(name: str) -> tuple[str, str]:
    """Which part of this folder serves a model's name, and what that part calls it."""
    first, _, rest = name.partition("/")
    others = set(registry.names("models")) - {DEFAULT_PART}
    return (first, rest) if first in others else (DEFAULT_PART, name)


def open_model(name: str, settings: ModelSettings) -> Model:
    """Raises: UsageError when it cannot be asked (a missing key, file or package)."""
    part, own = part_of(name)
    model: Model = registry.module("models", part).make(ModelContext(options=settings, name=own))
    return model


def price_of(name: str, settings: ModelSettings) -> Price | None:
    """What is known of it before it is asked; a part may know more than our table (`known_price`)."""
    found = prices.price(name, settings.price)
    part, own = part_of(name)
    known = getattr(registry.module("models", part), "known_price", None) if found is None else None
    return known(own) if known else found
