"""A model as an agent meets it: every question and answer journalled and paid for before it is used."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from retrial.attempts import Message, Place, Reply, Request, Usage
from retrial.errors import BudgetSpent, OutOfTime
from retrial.prices import Price
from retrial.protocols import Model
from retrial.store import Journal

CHARACTERS_PER_TOKEN = 2
"""A low guess, so that a reservation is a high one."""


class Budget:
    """Money is reserved before a call, so that parallel workers cannot pass the limit together."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self._limit = limit
        self._spent = spent
        self._reserved = 0.0
        self._unknown = False
        self._lock = threading.Lock()

    @property
    def spent(self) -> float | None:
        """None as soon as one call's cost is not known."""
        return None if self._unknown else self._spent

    def reserve(self, amount: float) -> None:
        """Raises: BudgetSpent when this could pass the limit."""
        with self._lock:
            if self._limit is not None and self._spent + self._reserved + amount > self._limit:
                raise BudgetSpent(
                    f"The budget of {self._limit:g} USD is used up: {self._spent:.4f} USD spent, "
                    f"{self._reserved:.4f} reserved, the next call could cost {amount:.4f}."
                )
            self._reserved += amount

    def settle(self, reserved: float, cost: float | None) -> None:
        with self._lock:
            self._reserved -= reserved
            self._spent += reserved if cost is None else cost
            self._unknown = self._unknown or cost is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How one attempt asks."""

    temperature: float
    seed: int
    max_tokens: int
    seconds: float
    """For the whole attempt."""


class MeteredChat:
    """One attempt's view of a model."""

    def __init__(
        self,
        model: Model,
        sampling: Sampling,
        journal: Journal,
        budget: Budget,
        price: Price | None,
        instance_id: str,
        attempt: int,
    ) -> None:
        self.name = model.name
        self.usage = Usage()
        self._asked = 0
        self._model, self._sampling, self._journal, self._budget = model, sampling, journal, budget
        self._price, self._instance_id, self._attempt = price, instance_id, attempt
        self._deadline = time.monotonic() + sampling.seconds

    def wait(self, seconds: float) -> None:
        """So long the agent waited for tests of ours: that is not the attempt's time."""
        self._deadline += seconds

    def ask(self, messages: tuple[Message, ...], tools: tuple[Mapping[str, object], ...] = ()) -> Reply:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime(f"the attempt's {self._sampling.seconds:g} seconds were over")
        self._asked += 1
        request = Request(
            messages=messages,
            tools=tools,
            place=Place(instance_id=self._instance_id, attempt=self._attempt, call=self._asked),
            temperature=self._sampling.temperature,
            seed=self._sampling.seed,
            max_tokens=self._sampling.max_tokens,
            timeout=left,
        )
        reserved = most(request, self._price)
        self._budget.reserve(reserved)
        reply = None
        try:
            self._journal.append("request", attempt=self._attempt, model=self.name, request=request)
            started = time.monotonic()
            reply = self._model.complete(request)
            # Waiting for our own other tasks' questions (a local model takes turns) is not the attempt's time.
            self._deadline += max(0.0, time.monotonic() - started - reply.usage.seconds)
            self._journal.append("reply", attempt=self._attempt, model=self.name, reply=reply)
            self.usage += reply.usage
            return reply
        finally:
            # A call that failed may have been billed, but nothing says so: it counts as free.
            self._budget.settle(reserved, reply.usage.cost if reply else 0.0)


def most(request: Request, price: Price | None) -> float:
    """The most that one question can cost."""
    if price is None:
        return 0.0
    characters = sum(len(message.content) + 16 for message in request.messages)
    return price.cost(characters // CHARACTERS_PER_TOKEN, request.max_tokens)
