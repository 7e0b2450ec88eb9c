"""Asking until there is an answer: which failures are tried again, how soon and how long, whoever carries the question.

Retries are ours, not a client's: one table (`_failures.RULES`) says what is tried again, all within the request's own
time. Parameters that a model refuses by name are left out from then on.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from retrial.attempts import Reply, Request
from retrial.errors import ModelError
from retrial.models import _chat
from retrial.models._endpoints import Endpoint
from retrial.models._failures import Failure, sentence

TRIES = 8
FIRST_SHARE = 0.6
"""Of the request's time, for its first try: a stalled reply leaves enough for a second."""

Try = Callable[[dict[str, object], float], Reply | Failure]
"""One try: what is sent, and how many seconds it may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for what."""

    base_delay: float = 1.0
    try_seconds: float | None = None
    """For one try; None: all of the time that is left, or its share."""
    first_share: float = FIRST_SHARE

    def seconds(self, tries: int, timeout: float, deadline: float) -> float:
        left = max(0.001, deadline - time.monotonic())
        if self.try_seconds is not None:
            return min(left, self.try_seconds)
        return min(left, timeout * self.first_share) if tries == 1 else left


PATIENT = Patience()


class Asking:
    """One model at one endpoint; may be asked from many threads."""

    def __init__(self, name: str, endpoint: Endpoint, extra: Mapping[str, object], patience: Patience) -> None:
        self._name = name
        self._endpoint = endpoint
        self._extra = {**endpoint.extra, **extra}
        self._patience = patience
        self._refused: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self.closed = threading.Event()

    def complete(self, request: Request, try_once: Try) -> Reply:
        """Raises: ModelError when no whole answer could be had within the request's time."""
        started = time.monotonic()
        deadline = started + request.timeout
        tries = 0
        while True:
            tries += 1
            refused = self._refused
            sent = _chat.body(request, self._endpoint.model, self._extra, refused)
            outcome = try_once(sent, self._patience.seconds(tries, request.timeout, deadline))
            if isinstance(outcome, Failure) and outcome.context_exceeded:
                outcome = Reply(text="", finish="length")
            if isinstance(outcome, Reply):
                usage = replace(outcome.usage, seconds=time.monotonic() - started, retries=tries - 1)
                return replace(outcome, usage=usage, left_out=_chat.left_out(request, refused))
            if parameter := _chat.refused_parameter(outcome, sent):
                self._leave_out(parameter)
                tries -= 1  # not the endpoint's fault; ends, since each parameter is left out once
                continue
            if outcome.kind == "rate":
                request.slowed(outcome.retry_after)
            if outcome.rule.billed:
                request.lost()
            self._wait(outcome, tries, deadline)

    def _leave_out(self, parameter: str) -> None:
        with self._lock:
            self._refused |= {parameter}

    def _wait(self, failure: Failure, tries: int, deadline: float) -> None:
        """Until the next try may start.

        Raises: ModelError when there may be none.
        """
        delay = failure.delay(tries, self._patience.base_delay)
        too_long = time.monotonic() + delay >= deadline
        if failure.rule.retry and tries < TRIES and not too_long and not self.closed.wait(delay):
            return
        asked = failure.retry_after if failure.rule.retry and too_long else None
        raise ModelError(sentence(self._name, self._endpoint, failure, tries, asked))
