"""Exotic providers, through LiteLLM: `-m litellm/PROVIDER/NAME`, such as `litellm/bedrock/…` or `litellm/azure/…`.

Keys are where LiteLLM looks for them. Retries are ours, as for every model; it is told to make none of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import warnings
from dataclasses import replace
from typing import Any

from retrial.chat import Json, Reply, Request
from retrial.errors import UsageError
from retrial.models import endpoints, wire
from retrial.models.endpoints import Endpoint
from retrial.models.failures import Failure, from_status
from retrial.models.prices import Price, price
from retrial.models.retry import Asking, Patience
from retrial.options import ModelSettings
from retrial.protocols import ModelContext


class LiteLLMModel:
    """One model of one provider; may be asked from many threads."""

    def __init__(self, endpoint: Endpoint, options: ModelSettings) -> None:
        self.name = f"litellm/{endpoint.model}"
        self._endpoint = endpoint
        self._price = price(endpoint.model, options.price)
        self._asking = Asking(self.name, endpoint, options.extra, Patience(try_seconds=options.try_seconds))
        self._litellm = _library(endpoint.model)

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when no whole answer could be had within the request's time."""
        return self._asking.complete(request, self._ask)

    def _ask(self, sent: dict[str, Json], seconds: float) -> Reply | Failure:
        import openai

        errors = self._litellm.exceptions
        # An endpoint of one's own mostly needs no key, but the client will not go without.
        key = self._endpoint.key or ("none" if self._endpoint.base_url else None)
        try:
            answer = self._litellm.completion(
                **sent,
                api_base=self._endpoint.base_url or None,
                api_key=key,
                timeout=seconds,
                num_retries=0,
                max_retries=0,
            )
        except errors.Timeout:
            return Failure(kind="timeout", detail=f"a try of {seconds:.1f} s")
        except errors.APIConnectionError as error:
            return Failure(kind="connection", detail=str(error))
        except openai.OpenAIError as error:  # of which all of its own are
            headers = getattr(getattr(error, "response", None), "headers", {})
            return from_status(getattr(error, "status_code", None) or 500, headers, str(error))
        return self._read(answer)

    def _read(self, answer: Any) -> Reply | Failure:
        reply = wire.read(json.dumps(answer.model_dump(), default=str).encode(), self._price)
        if isinstance(reply, Failure) or reply.usage.cost is not None:
            return reply
        # Its own table knows what ours does not.
        cost = wire.read_amount(getattr(answer, "_hidden_params", {}).get("response_cost"))
        return replace(reply, usage=replace(reply.usage, cost=cost)) if cost else reply


def known_price(name: str) -> Price | None:
    """From LiteLLM's own table, for a limit on what our table does not know."""
    table = _library(name).model_cost
    found = table.get(name) or table.get(name.partition("/")[2]) or {}
    prompt, completion = found.get("input_cost_per_token"), found.get("output_cost_per_token")
    if prompt is None or completion is None:
        return None
    return Price(prompt=prompt * 1e6, completion=completion * 1e6)


def _library(name: str) -> Any:
    if importlib.util.find_spec("litellm") is None:
        raise UsageError(f"Model 'litellm/{name}' needs the package 'litellm': pip install -r requirements-litellm.txt")
    # Its table of prices would be fetched otherwise, by the mere import.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # It warns of its own types when they meet a newer pydantic.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    library: Any = importlib.import_module("litellm")
    library.telemetry = False
    library.suppress_debug_info = True
    return library


def make(context: ModelContext) -> LiteLLMModel:
    """Raises: UsageError when there is no such package, or no name."""
    options, name = context.options, context.name
    prefix, _, rest = name.partition("/")
    if not rest:
        raise UsageError(f"Model 'litellm/{name}' should be litellm/PROVIDER/NAME.")
    # Of providers that we know, the key too, so that it can be masked; the others' are LiteLLM's own business.
    known = endpoints.find(prefix)
    key_name, key = endpoints.first_set(os.environ, known.keys if known else ())
    endpoint = Endpoint(title="LiteLLM", base_url=options.api_base or "", model=name, key=key, key_name=key_name)
    return LiteLLMModel(endpoint, options)
