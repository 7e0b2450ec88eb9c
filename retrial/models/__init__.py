"""Things that answer. `NAME[:FORMAT]` as people write it becomes a model and an edit format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retrial import prices, registry
from retrial.prices import Price
from retrial.protocols import Context, Model

DEFAULT_PART = "openai"
"""Speaks to every OpenAI-compatible endpoint, so it takes all names that no other part claims."""

AUTO_FORMAT = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What model parts need of the options."""

    api_base: str | None
    price: tuple[float, float] | None
    cache: Path


def split(text: str, default_format: str) -> tuple[str, str]:
    """Name and edit format; what follows a colon counts only if it names a format (`ollama/qwen:7b` does not)."""
    name, _, suffix = text.rpartition(":")
    if name and suffix in registry.names("edits"):
        return name, suffix
    return text, AUTO_FORMAT if default_format == "auto" else default_format


def part_of(name: str) -> str:
    """Which part of this folder serves a model's name."""
    first = name.partition("/")[0]
    return first if first in registry.names("models") else DEFAULT_PART


def open_model(name: str, settings: ModelSettings) -> Model:
    """Raises: UsageError when it cannot be asked (a missing key, file or package)."""
    part = part_of(name)
    own = name if part == DEFAULT_PART else name.partition("/")[2]
    model: Model = registry.module("models", part).make(Context(options=settings, name=own))
    return model


def price_of(name: str, settings: ModelSettings) -> Price | None:
    return prices.price(name, settings.price)
