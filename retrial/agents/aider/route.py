"""What a model's name here is called in aider, and which variables lead there: the key of its provider, no other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrial import models
from retrial.errors import UsageError
from retrial.models import endpoints
from retrial.models.endpoints import OPENAI, Endpoint

NAMES = {"together": "together_ai", "ollama": "ollama_chat"}
"""Prefixes that litellm, which aider asks through, has other words for."""
OLLAMA = "ollama"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    model: str
    """As litellm calls it."""
    variables: Mapping[str, str]
    endpoint: Endpoint


def find(name: str, api_base: str, environ: Mapping[str, str]) -> Route:
    """Raises: UsageError when the name leads nowhere from there, or the key it needs is not set."""
    if not name:
        raise UsageError("Agent 'aider' needs a model: -m NAME")
    if models.part_of(name) != models.DEFAULT_PART:
        raise UsageError(
            f"Agent 'aider' asks its model itself, so it cannot have '{name}': name a provider's model, "
            "or one that any OpenAI-compatible server offers with --api-base URL."
        )
    endpoint = endpoints.resolve(name, api_base or None, environ)
    prefix, slash, _ = name.partition("/")
    provider = (endpoints.find(prefix) if slash else None) or OPENAI
    native = f"{NAMES.get(provider.prefix, provider.prefix)}/{endpoint.model}"
    if provider.prefix == OLLAMA and not api_base:
        variables = {"OLLAMA_API_BASE": endpoint.base_url.removesuffix("/v1")}
        return Route(model=native, variables=variables, endpoint=endpoint)
    if endpoint.base_url == provider.base_url:
        return Route(model=native, variables={provider.keys[0]: endpoint.key}, endpoint=endpoint)
    # Elsewhere than at its provider's, everything speaks OpenAI's protocol.
    variables = {"OPENAI_API_BASE": endpoint.base_url, "OPENAI_API_KEY": endpoint.key or "none"}
    return Route(model=f"{OPENAI.prefix}/{endpoint.model}", variables=variables, endpoint=endpoint)
