"""An attempt's way to its model: every call is reserved, made and settled here, with its lines in the journal."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from retrial.chat import Backoff, CallId, Message, Reply, Request, Sampling, Tool, Usage, unknown_is_infinite
from retrial.errors import AttemptOver, BudgetSpent, OutOfMoney, OutOfTime, RetrialError
from retrial.grading.visible_check import Checked
from retrial.models.prices import Price
from retrial.predict.metering.driver_service import DriverService, not_enough
from retrial.predict.metering.resume import Earlier, Resumed
from retrial.protocols import Model
from retrial.store import events, journal
from retrial.store.events import (
    AgentChat,
    AgentSpent,
    CallFailed,
    Event,
    Question,
    Replied,
    ReplyLost,
    Requested,
    VisibleChecked,
)
from retrial.store.json_io import decode
from retrial.store.spending import sums_of

MESSAGE_TOKENS = 32
"""What a provider writes around a message or a call: its role, its beginning, its end."""
TOOLS_TOKENS = 1024
"""What a provider tells a model about functions as such; some take several hundred tokens for it."""
_LOG = logging.getLogger(__name__)


class TaskBudget:
    """One task's own limit; its attempts follow each other, so that nothing waits here."""

    def __init__(self, limit: float | None, settled: float, unsettled: float = 0.0) -> None:
        """What was spent for certain, and what may have been, for replies that did not arrive."""
        self._limit = limit
        self._settled, self._unsettled = settled, unsettled

    def add(self, cost: float | None) -> None:
        self._settled += unknown_is_infinite(cost)

    def lose(self, amount: float) -> None:
        """As `Budget.lose`."""
        self._unsettled += amount

    def check(self, amount: float | None = None) -> None:
        """Raises: OutOfMoney when this could pass the limit, or without an amount, when nothing is left; BudgetSpent
        when it would not have done so without replies that did not arrive, which is nobody's failure."""
        spent = self._settled + self._unsettled
        if self._fits(spent, amount):
            return
        flag = "--max-cost-per-task"
        why = not_enough("The task's budget", self._limit, spent, amount or 0.0, flag, self._unsettled)
        raise BudgetSpent(why) if self._fits(self._settled, amount) else OutOfMoney(why)

    def _fits(self, spent: float, amount: float | None) -> bool:
        if self._limit is None:
            return True
        return spent < self._limit if amount is None else spent + amount <= self._limit


class TaskLedger:
    """One task's journal and its own limit of money, over all attempts."""

    def __init__(self, instance_id: str, driver: DriverService, limit: float | None = None) -> None:
        self.instance_id, self.driver = instance_id, driver
        events = tuple(journal.read(driver.open(instance_id)))
        self.earlier = Earlier(events) if events else None
        """What earlier goes at this task left; None at the first."""
        self.budget = task_budget(limit, events)
        self._go = secrets.token_hex(4)
        """Identifies this worker's lines: a worker that was taken for lost may still write its own."""
        self._held = b""

    def append(self, event: Event) -> None:
        """On disk when this returns."""
        self.driver.append(self.instance_id, self.lines(event))

    def append_with_next(self, event: Event) -> None:
        """Write the event together with the next one: alone it is of no use."""
        self._held = self.lines(event)

    def lines(self, event: Event) -> bytes:
        """As they go to disk now: what was held back, and this."""
        held, self._held = self._held, b""
        return held + journal.line(replace(event, go=self._go))


class ModelSession:
    """The `Chat` of one attempt, and the `CallControl` of its calls."""

    def __init__(
        self,
        model: Model,
        price: Price | None,
        sampling: Sampling,
        ledger: TaskLedger,
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
        self._most = 0.0
        """What the call under way can cost at most."""
        self._reserved: int | None = None
        """Its number with the driver; None when its reply was lost."""
        self._model, self._price, self._sampling = model, price, sampling
        self._ledger, self._driver, self._attempt, self._earlier = ledger, ledger.driver, attempt, earlier
        self._deadline = time.monotonic() + sampling.seconds

    def left(self) -> float:
        return self._deadline - time.monotonic()

    def ask(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Reply:
        self._asked += 1
        request = Request(
            messages=messages,
            tools=tools,
            place=CallId(instance_id=self._ledger.instance_id, attempt=self._attempt, call=self._asked),
            temperature=self._sampling.temperature,
            seed=self._sampling.seed,
            max_tokens=self._sampling.max_tokens,
        )
        try:
            known = self._earlier.reply(request) if self._earlier else None
            reply = self._call(request) if known is None else known
        except AttemptOver as error:
            self._over(error)
            raise
        if known is not None:
            # It was journalled and paid for then; the attempt's time it takes now too.
            self.replayed += reply.usage.seconds
            self._deadline -= reply.usage.seconds
        self._count(reply)
        return reply

    def _call(self, request: Request) -> Reply:
        """Reserve, call, settle. Raises: ModelError, BudgetSpent, AttemptOver, Stopped."""
        if self.left() <= 0:
            raise OutOfTime(f"the attempt's {self._sampling.seconds:g} seconds were over")
        self._most = worst_case_cost(request, self._price)
        started = time.monotonic()
        self._reserve(Requested(reserved=self._priced(), request=decode(request, Question)))
        # Waiting for a turn, and for money that others may leave, is not the attempt's time.
        self._deadline += time.monotonic() - started
        started = time.monotonic()
        try:
            reply = self._model.complete(replace(request, timeout=self.left(), control=self))
        except RetrialError as error:
            self._settle(0.0, CallFailed(reason=str(error)))
            raise
        # Waiting for our own other tasks' questions (a local model takes turns), or for a provider who asks for it, is
        # not the attempt's time.
        self._deadline += max(0.0, time.monotonic() - started - reply.usage.seconds)
        # Before anything else: a process killed between the answer and this line has to ask, and pay, again.
        self._settle(0.0 if reply.recorded else reply.usage.cost, Replied(reply=reply))
        self._log(request, reply)
        return reply

    def _reserve(self, event: Requested | None = None) -> None:
        """Reserve the worst-case cost of the call and journal the request; wait for budget and for a slot.

        Raises: OutOfMoney, BudgetSpent, Stopped.
        """
        self._ledger.budget.check(self._most)
        lines = self._lines(event) if event else b""
        self._reserved = self._driver.reserve(self._ledger.instance_id, lines, self._most, self.name)

    def lose(self, again: bool) -> None:
        """A reply that did not arrive may have been billed: it counts with the most that it can have cost."""
        number, self._reserved = self._reserved, None
        if number is not None:
            self._driver.lose(number, self._ledger.instance_id, self._lines(ReplyLost(cost=self._priced())))
            self._ledger.budget.lose(self._most)
        if again:
            self._reserve()

    def next_try(self, trouble: Backoff) -> bool:
        return self._reserved is not None and self._driver.next_try(self._reserved, trouble)

    def check_stop(self) -> None:
        self._driver.check_stop()

    def _settle(self, cost: float | None, event: Event) -> None:
        """Journal the outcome of the call and settle its cost."""
        number, self._reserved = self._reserved, None
        if number is None:
            # Its reply was lost, and there was no money to ask once more.
            self._write(event)
            return
        self._driver.settle(number, self._ledger.instance_id, self._lines(event), cost)
        self._ledger.budget.add(self._most if cost is None else cost)

    def _count(self, reply: Reply) -> None:
        self.usage += reply.usage
        served = f"{reply.model} ({reply.fingerprint})" if reply.fingerprint else reply.model
        self.served = _distinct(*self.served, served)
        self.left_out = _distinct(*self.left_out, *reply.left_out)

    def _log(self, request: Request, reply: Reply) -> None:
        size = {"asked": sum(len(message.content) for message in request.messages), "replied": len(reply.text)}
        place = {"attempt": self._attempt, "call": request.place.call, "model": self.name}
        _LOG.debug("reply", extra={**place, **size, "seconds": round(reply.usage.seconds, 3)})

    def _over(self, error: AttemptOver) -> None:
        """Journal why the attempt ended: a replay has neither clock nor budget."""
        self._write(events.AttemptOver(kind=type(error).__name__, reason=str(error)))
        if isinstance(error, OutOfMoney):
            self.out_of_money = str(error)

    def checked(self, found: Checked, waited: float = 0.0) -> None:
        """The visible check was made. The agent waited so long for it: that is not the attempt's time."""
        self._deadline += waited
        if self._earlier and self._earlier.noted(self._asked, found.key):
            return
        note = self._ledger.append_with_next if found.repeated else self._ledger.append
        verdict = None if found.repeated else found.verdict
        note(VisibleChecked(attempt=self._attempt, call=self._asked, key=found.key, verdict=verdict))

    def check_budget(self) -> None:
        """Before an agent that spends on its own. Raises: BudgetSpent, OutOfMoney, Stopped."""
        try:
            self._ledger.budget.check()
        except OutOfMoney as error:
            self._over(error)
            raise
        self._driver.check_budget()

    def spend(self, usage: Usage) -> None:
        """Raises nothing: it is spent already."""
        if usage == Usage():
            return
        if usage.cost is None and self._price is not None and usage.prompt_tokens + usage.completion_tokens:
            usage = replace(usage, cost=self._price.of(usage))
        self._driver.settle(None, self._ledger.instance_id, self._lines(AgentSpent(usage=usage)), usage.cost)
        self._ledger.budget.add(usage.cost)
        self.usage += usage

    def show(self, messages: tuple[Message, ...]) -> None:
        """What an agent said and heard on its own, for the transcript."""
        if messages:
            self._write(AgentChat(messages=messages))

    def _write(self, event: Event) -> None:
        self._driver.append(self._ledger.instance_id, self._lines(event))

    def _lines(self, event: Event) -> bytes:
        return self._ledger.lines(replace(event, attempt=self._attempt, call=self._asked, model=self.name))

    def _priced(self) -> float | None:
        """Return the worst-case cost; None for a model without a price."""
        return None if self._price is None else self._most


def _distinct(*texts: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))


def task_budget(limit: float | None, earlier: Sequence[Event]) -> TaskBudget:
    """A task's, with what these events of its journal say of the money."""
    return TaskBudget(limit, *(sums_of(earlier) if limit is not None else (0.0, 0.0)))


def worst_case_cost(request: Request, price: Price | None) -> float:
    """The most that one question can cost: the dearest kind of prompt, and a reply as long as it may be."""
    if price is None:
        return 0.0
    tokens = prompt_tokens(request.messages, request.tools)
    return max(price.cost(tokens, request.max_tokens, cache_write=written) for written in (0, tokens))


def prompt_tokens(messages: Iterable[Message], tools: tuple[Tool, ...] = ()) -> int:
    """No tokenizer makes more than one token of a byte. Prose has one in four bytes, but digits, rare scripts and emoji
    come near one each, and a limit must hold for those too."""
    texts = [text for message in messages for text in _texts(message)]
    told = TOOLS_TOKENS + size(json.dumps(list(map(asdict, tools)))) if tools else 0
    return sum(MESSAGE_TOKENS + size(text) for text in texts) + told


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _texts(message: Message) -> Iterable[str]:
    # Arguments that are no JSON object go out as text in one.
    return (message.content, *(call.name + json.dumps(call.arguments) for call in message.calls))
