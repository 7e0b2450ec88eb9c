"""Asking until there is an answer: which failures are tried again, how soon and how long, whoever carries the question.

Retries are ours, not a client's: one table (`failures.RULES`) says what is tried again, all within the request's own
time, to which waiting between tries does not count. Parameters that a model refuses by name are left out from then on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from retrial.chat import Backoff, Json, Overload, Reply, Request
from retrial.errors import ModelError
from retrial.models import wire
from retrial.models.endpoints import Endpoint
from retrial.models.failures import Failure, sentence, shown
from retrial.system.secrets import MASKER

_LOG = logging.getLogger(__name__)
TRIES = 8
LONGEST_WAIT = 600.0
"""Seconds that a provider may ask to wait: who asks for more is asked again another day."""
FIRST_SHARE = 0.6
"""Of the request's time, for its first try: a stalled reply leaves enough for a second."""

Try = Callable[[dict[str, Json], float], Reply | Failure]
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

    def __init__(self, name: str, endpoint: Endpoint, extra: Mapping[str, Json], patience: Patience) -> None:
        MASKER.add(endpoint.key)
        MASKER.learn_address(endpoint.base_url)
        MASKER.learn_fields(extra)
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
        waited, tries = 0.0, 0
        while True:
            tries += 1
            refused = self._refused
            sent = wire.body(request, self._endpoint.model, self._extra, refused)
            deadline = started + waited + request.timeout
            outcome = try_once(sent, self._patience.seconds(tries, request.timeout, deadline))
            ended = time.monotonic()
            if isinstance(outcome, Failure) and outcome.context_exceeded:
                outcome = Reply(text="", finish="length")
            if isinstance(outcome, Reply):
                usage = replace(outcome.usage, seconds=ended - started - waited, retries=tries - 1)
                return replace(outcome, usage=usage, left_out=wire.left_out(request, refused))
            if parameter := wire.refused_parameter(outcome, sent):
                with self._lock:
                    self._refused |= {parameter}
                tries -= 1  # not the endpoint's fault; ends, since each parameter is left out once
                continue
            again = False
            try:
                self._wait(request, outcome, tries, deadline - ended)
                again = True
            finally:
                if outcome.rule.billed:
                    request.control.lose(again)
            waited += time.monotonic() - ended

    def _wait(self, request: Request, failure: Failure, tries: int, left: float) -> None:
        """Until the next try may start.

        Raises: ModelError when there may be none; Stopped.
        """
        rule = failure.rule
        trouble = Backoff(
            load=rule.load,
            why=f"{self._endpoint.title} {rule.happened}",
            seconds=failure.delay(tries, self._patience.base_delay),
            everybody=failure.retry_after is not None or rule.load is Overload.RATE,
            tries=tries,
        )
        too_long = trouble.seconds > LONGEST_WAIT
        # How often the rate may be limited is for whoever knows how it goes for the others.
        often = tries >= TRIES and trouble.load is not Overload.RATE
        again = rule.retry and left > 0 and not too_long and not often and not self.closed.is_set()
        fields = {"model": self._name, "tries": tries, "kind": failure.kind, "seconds": round(trouble.seconds, 3)}
        what = "asked again after" if again else "given up after"
        _LOG.warning("%s: %s", what, shown(failure, self._endpoint), extra=fields)
        if again and request.control.next_try(trouble):
            return
        asked = failure.retry_after if rule.retry and too_long else None
        raise ModelError(sentence(self._name, self._endpoint, failure, tries, asked))
