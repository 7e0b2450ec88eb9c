"""A model as an agent meets it: every question and answer journalled and paid for before it is used."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from retrial.chat import Backoff, CallId, Message, Reply, Request, Usage
from retrial.errors import AttemptOver, OutOfMoney, OutOfTime, RetrialError
from retrial.models.prices import Price
from retrial.predict.metering.budget import worst_case_cost
from retrial.predict.metering.driver_service import TaskDriver
from retrial.predict.metering.resume import Resumed
from retrial.protocols import Model
from retrial.types import Verdict

_LOG = logging.getLogger(__name__)


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
        driver: TaskDriver,
        price: Price | None,
        instance_id: str,
        attempt: int,
        earlier: Resumed | None = None,
    ) -> None:
        """`earlier` is what another go left of this attempt."""
        self.name = model.name
        self.temperature, self.seed = sampling.temperature, sampling.seed
        self.usage = Usage()
        self.served: tuple[str, ...] = ()
        """Which models answered, as the provider names them."""
        self.left_out: tuple[str, ...] = ()
        """Parameters that the model would not take."""
        self.out_of_money = ""
        """Why the task's money ended it."""
        self.replayed = 0.0
        """Seconds of replies that an earlier go had."""
        self._asked = 0
        self._leave: int | None = None
        """The question under way."""
        self._model, self._sampling, self._driver = model, sampling, driver
        self._price, self._instance_id, self._attempt, self._earlier = price, instance_id, attempt, earlier
        self._deadline = time.monotonic() + sampling.seconds

    def wait(self, seconds: float) -> None:
        """So long the agent waited for tests of ours: that is not the attempt's time."""
        self._deadline += seconds

    def left(self) -> float:
        return self._deadline - time.monotonic()

    def ask(self, messages: tuple[Message, ...], tools: tuple[Mapping[str, object], ...] = ()) -> Reply:
        try:
            return self._ask(messages, tools)
        except AttemptOver as error:
            self._over(error)
            raise

    def _ask(self, messages: tuple[Message, ...], tools: tuple[Mapping[str, object], ...]) -> Reply:
        self._asked += 1
        request = Request(
            messages=messages,
            tools=tools,
            place=CallId(instance_id=self._instance_id, attempt=self._attempt, call=self._asked),
            temperature=self._sampling.temperature,
            seed=self._sampling.seed,
            max_tokens=self._sampling.max_tokens,
        )
        known = self._earlier.reply(request) if self._earlier else None
        if known is not None:
            return self._played(known)
        if self.left() <= 0:
            raise OutOfTime(f"the attempt's {self._sampling.seconds:g} seconds were over")
        return self._paid(request, worst_case_cost(request, self._price))

    def _played(self, reply: Reply) -> Reply:
        """It was journalled and paid for then; the attempt's time it takes now too."""
        self.replayed += reply.usage.seconds
        self._deadline -= reply.usage.seconds
        return self._counted(reply)

    def spend(self, usage: Usage) -> None:
        """Raises nothing: it is spent already."""
        if usage == Usage():
            return
        if usage.cost is None and self._price is not None and usage.prompt_tokens + usage.completion_tokens:
            usage = replace(usage, cost=self._price.of(usage))
        self._driver.spend(self._line("spent", usage=usage), usage.cost)
        self.usage += usage

    def show(self, messages: tuple[Message, ...]) -> None:
        """What an agent said and heard on its own, for the transcript."""
        if messages:
            self._write("agent_chat", messages=messages)

    def checked(self, key: str, verdict: Verdict | None) -> None:
        """The visible check was made, with this result; None when the journal has it."""
        if self._earlier and self._earlier.noted(self._asked, key):
            return
        note = self._driver.append_with_next if verdict is None else self._driver.append
        note("check", **self._place(), key=key, **({} if verdict is None else {"verdict": verdict}))

    def check(self) -> None:
        """Before an agent that spends on its own. Raises: BudgetSpent, OutOfMoney."""
        try:
            self._driver.check()
        except OutOfMoney as error:
            self._over(error)
            raise

    def _over(self, error: AttemptOver) -> None:
        """Noted for whoever plays this again, without clock and purse."""
        self._write("over", kind=type(error).__name__, reason=str(error))
        if isinstance(error, OutOfMoney):
            self.out_of_money = str(error)

    def _paid(self, request: Request, amount: float) -> Reply:
        asked = self._line("request", reserved=self._known(amount), request=request)
        started = time.monotonic()
        self._leave = self._driver.begin(asked, amount, self.name)
        # Waiting for a turn, and for money that others may leave, is not the attempt's time.
        self.wait(time.monotonic() - started)
        lost = partial(self._lose, amount)
        timed = replace(
            request, timeout=self.left(), on_lost_reply=lost, on_retry=self._next_try, check_stop=self._driver.still
        )
        started = time.monotonic()
        try:
            reply = self._model.complete(timed)
        except RetrialError as error:
            self._end(self._line("failed", reason=str(error)), amount, 0.0)
            raise
        # Waiting for our own other tasks' questions (a local model takes turns), or for a provider who asks for it, is
        # not the attempt's time.
        self.wait(max(0.0, time.monotonic() - started - reply.usage.seconds))
        # Before anything else: a process killed between the answer and this line has to ask, and pay, again.
        self._end(self._line("reply", reply=reply), amount, 0.0 if reply.recorded else reply.usage.cost)
        self._log(request, reply)
        return self._counted(reply)

    def _log(self, request: Request, reply: Reply) -> None:
        size = {"asked": sum(len(message.content) for message in request.messages), "replied": len(reply.text)}
        place = {"attempt": self._attempt, "call": request.place.call, "model": self.name}
        _LOG.debug("reply", extra={**place, **size, "seconds": round(reply.usage.seconds, 3)})

    def _counted(self, reply: Reply) -> Reply:
        self.usage += reply.usage
        served = f"{reply.model} ({reply.fingerprint})" if reply.fingerprint else reply.model
        self.served = _distinct(*self.served, served)
        self.left_out = _distinct(*self.left_out, *reply.left_out)
        return reply

    def _write(self, event: str, **fields: object) -> None:
        self._driver.append(event, **self._place(), model=self.name, **fields)

    def _line(self, event: str, **fields: object) -> bytes:
        return self._driver.line(event, **self._place(), model=self.name, **fields)

    def _place(self) -> dict[str, int]:
        return {"attempt": self._attempt, "call": self._asked}

    def _end(self, line: bytes, amount: float, cost: float | None) -> None:
        if self._leave is None:
            # Its reply was lost, and there was no money to ask once more.
            self._driver.note(line)
            return
        number, self._leave = self._leave, None
        self._driver.end(number, line, amount, cost)

    def _known(self, amount: float) -> float | None:
        """Of a model without a price, nobody knows the most that a question can cost."""
        return None if self._price is None else amount

    def _lose(self, amount: float, again: bool) -> None:
        """A reply that did not arrive may have been billed: it counts with the most that it can have cost."""
        number, self._leave = self._leave, None
        if number is not None:
            self._driver.lose(number, self._line("lost", cost=self._known(amount)), amount)
        if again:
            self._leave = self._driver.again(amount, self.name)

    def _next_try(self, trouble: Backoff) -> bool:
        return self._leave is not None and self._driver.next_try(self._leave, trouble)


def _distinct(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))
