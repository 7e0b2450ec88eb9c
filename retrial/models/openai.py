"""Any endpoint that speaks OpenAI's chat-completions protocol, through the official client.

Retries are ours, not the client's: one table (`_failures.RULES`) says which errors are tried again, all within the
request's own time. Parameters that a model refuses by name are left out from then on.
"""

from __future__ import annotations

import importlib.util
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from retrial.attempts import Reply, Request
from retrial.errors import ModelError, UsageError
from retrial.models import _chat
from retrial.models._connections import Connections
from retrial.models._endpoints import Endpoint, resolve
from retrial.models._failures import Failure, from_status, mask, sentence
from retrial.prices import Price, price
from retrial.protocols import Context

if TYPE_CHECKING:
    import openai

_TRIES = 8
_FIRST_SHARE = 0.6
"""Of the request's time, for its first try: a stalled reply leaves enough for a second."""


class OpenAIModel:
    """One model at one endpoint; may be asked from many threads."""

    def __init__(
        self,
        *,
        name: str,
        endpoint: Endpoint,
        price: Price | None = None,
        base_delay: float = 1.0,
        try_seconds: float | None = None,
        first_share: float = _FIRST_SHARE,
    ) -> None:
        self.name = name
        self._endpoint = endpoint
        self._price = price
        self._base_delay = base_delay
        self._try_seconds = try_seconds
        self._first_share = first_share
        self._refused: frozenset[str] = frozenset()
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._connections = Connections()

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when no whole answer could be had within the request's time."""
        started = time.monotonic()
        deadline = started + request.timeout
        tries = 0
        while True:
            tries += 1
            seconds = self._seconds_for(tries, deadline, request.timeout)
            sent = _chat.body(request, self._endpoint.model, self._endpoint.extra, self._refused)
            outcome = self._ask(sent, seconds)
            if isinstance(outcome, Failure) and outcome.context_exceeded:
                outcome = Reply(text="", finish="length")
            if isinstance(outcome, Reply):
                return replace(outcome, usage=replace(outcome.usage, seconds=time.monotonic() - started))
            if refused := _chat.refused_parameter(outcome, sent):
                self._leave_out(refused)
                tries -= 1  # not the endpoint's fault; ends, since each parameter is left out once
                continue
            self._wait(outcome, tries, deadline)

    def close(self) -> None:
        """End calls under way and waits, with ModelError in their threads; safe to call twice."""
        self._closed.set()  # also when there is no client yet
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            _end(self._closed, self._connections, client)

    def _seconds_for(self, tries: int, deadline: float, timeout: float) -> float:
        left = max(0.001, deadline - time.monotonic())
        if self._try_seconds is not None:
            return min(left, self._try_seconds)
        return min(left, timeout * self._first_share) if tries == 1 else left

    def _ask(self, sent: dict[str, object], seconds: float) -> Reply | Failure:
        """One try."""
        import httpx2
        import openai

        try:
            outcome = self._send(sent, seconds)
        except openai.APIStatusError as error:
            return from_status(error.status_code, error.response.headers, _chat.explain(error.body))
        except (openai.APITimeoutError, httpx2.TimeoutException):
            return Failure(kind="timeout", detail=f"a try of {seconds:.1f} s")
        except httpx2.RemoteProtocolError as error:
            return Failure(kind="torn", detail=str(error))
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            return Failure(kind="connection", detail=str(error.__cause__ or error))
        except openai.APIError as error:
            return Failure(kind="torn", detail=error.message)
        except RuntimeError as error:
            if not self._closed.is_set():
                raise
            return Failure(kind="connection", detail=str(error))
        return outcome

    def _send(self, sent: dict[str, object], seconds: float) -> Reply | Failure:
        # The body is read piece by piece: some gateways send blanks to keep a stalled reply alive, which a
        # read timeout never ends.
        ends = time.monotonic() + seconds
        create: Callable[..., Any] = self._connect().chat.completions.with_streaming_response.create
        known = {name: sent.pop(name) for name in ("model", "messages")}
        with create(**known, extra_body=sent, timeout=seconds) as response:
            pieces = []
            for piece in response.iter_bytes():
                pieces.append(piece)
                if time.monotonic() > ends:
                    return Failure(kind="timeout", detail=f"a try of {seconds:.1f} s")
        return _chat.read(b"".join(pieces), self._price)

    def _connect(self) -> openai.OpenAI:
        import openai

        with self._lock:
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key=self._endpoint.key or "none",
                    base_url=self._endpoint.base_url,
                    max_retries=0,
                    http_client=self._connections.client(trust_env=not self._endpoint.loopback),
                )
                # At the program's end this may run first, and a closed socket can no longer be shut down.
                weakref.finalize(self, _end, self._closed, self._connections, self._client)
            return self._client

    def _leave_out(self, parameter: str) -> None:
        with self._lock:
            self._refused |= {parameter}

    def _wait(self, failure: Failure, tries: int, deadline: float) -> None:
        """Until the next try may start.

        Raises: ModelError when there may be none.
        """
        delay = failure.delay(tries, self._base_delay)
        too_long = time.monotonic() + delay >= deadline
        if failure.rule.retry and tries < _TRIES and not too_long and not self._closed.wait(delay):
            return
        asked = failure.retry_after if failure.rule.retry and too_long else None
        text = sentence(self.name, self._endpoint.title, self._endpoint.key_name, failure, tries, asked)
        raise ModelError(mask(text, self._endpoint.key))


def _end(closed: threading.Event, connections: Connections, client: openai.OpenAI) -> None:
    closed.set()
    connections.cut()
    client.close()


def make(context: Context) -> OpenAIModel:
    """Raises: UsageError when the name leads nowhere or its key is not set."""
    if importlib.util.find_spec("openai") is None:
        raise UsageError(f"Model '{context.name}' needs the package 'openai': pip install openai")
    options = context.options
    return OpenAIModel(
        name=context.name,
        endpoint=resolve(context.name, options.api_base, os.environ),
        price=price(context.name, options.price),
    )
