"""Money: put by before a question is asked, so that parallel workers cannot pass a limit together."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from retrial.chat import Message, Request, Tool, unknown_is_infinite
from retrial.errors import BudgetSpent, OutOfMoney
from retrial.models.prices import Price, no_price
from retrial.store.events import Event
from retrial.store.runs import Run
from retrial.store.spending import sums_of

MESSAGE_TOKENS = 32
"""What a provider writes around a message or a call: its role, its beginning, its end."""
CENTS = 0.00005
"""USD that are not worth a word."""
TOOLS_TOKENS = 1024
"""What a provider tells a model about functions as such; some take several hundred tokens for it."""


class Budget:
    """A run's. What is only put by mostly comes back, so that a question waits for it; what is spent does not."""

    def __init__(self, limit: float | None, spent: float = 0.0, unsettled: float = 0.0) -> None:
        """`unsettled`: so much of what was spent is of replies that did not arrive, and were perhaps not billed."""
        self._limit = limit
        self._spent, self._unsettled = spent, unsettled
        self._reserved: dict[int, float] = {}
        self._unknown = math.isinf(spent)
        self._number = 0
        self._settled = threading.Condition()

    @property
    def spent(self) -> float | None:
        """None as soon as one call's cost is not known."""
        return None if self._unknown else self._spent

    def reserve(self, amount: float) -> int:
        """Waits while others' questions are under way that may leave enough. Returns a number to settle it by.

        Raises: BudgetSpent when this could pass the limit.
        """
        with self._settled:
            self._settled.wait_for(lambda: self._fits(amount) or self._never(amount))
            if not self._fits(amount):
                raise BudgetSpent(self._refusal(amount))
            self._number += 1
            self._reserved[self._number] = amount
            return self._number

    def settle(self, number: int, cost: float | None) -> None:
        """What was put by is free again, but for the cost; an unknown one is taken to be all of it."""
        with self._settled:
            amount = self._reserved.pop(number)
            self._spent += amount if cost is None else cost
            self._unknown = self._unknown or cost is None
            self._settled.notify_all()

    def lose(self, number: int) -> None:
        """The reply did not arrive: it may have been billed with all that was put by for it."""
        with self._settled:
            amount = self._reserved.pop(number)
            self._spent += amount
            self._unsettled += amount
            self._settled.notify_all()

    def shown(self, unpriced: Sequence[str] = ()) -> str:
        """For people; `unpriced` are the models whose price is not known."""
        with self._settled:
            if self._unknown:
                return f"cost unknown ({no_price(unpriced)})" if unpriced else "cost unknown"
            unsettled = f" ({self._unsettled:.4f} of it perhaps not billed)" if self._unsettled > CENTS else ""
            return f"{self._spent:.4f} USD{unsettled}"

    def add(self, cost: float | None) -> None:
        """An agent spent this on its own, with nothing put by for it."""
        with self._settled:
            self._spent += unknown_is_infinite(cost)
            self._unknown = self._unknown or cost is None

    def check(self) -> None:
        """Raises: BudgetSpent when nothing is left for an agent that spends on its own."""
        with self._settled:
            if self._limit is not None and self._spent >= self._limit:
                raise BudgetSpent(self._refusal())

    def _refusal(self, amount: float = 0.0) -> str:
        return _not_enough("The budget", self._limit, self._spent, amount, "--max-cost", self._unsettled)

    def _fits(self, amount: float) -> bool:
        return self._limit is None or self._spent + sum(self._reserved.values()) + amount <= self._limit

    def _never(self, amount: float) -> bool:
        return not self._reserved or (self._limit is not None and self._spent + amount > self._limit)


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
        why = _not_enough("The task's budget", self._limit, spent, amount or 0.0, flag, self._unsettled)
        raise BudgetSpent(why) if self._fits(self._settled, amount) else OutOfMoney(why)

    def _fits(self, spent: float, amount: float | None) -> bool:
        if self._limit is None:
            return True
        return spent < self._limit if amount is None else spent + amount <= self._limit


def task_budget(limit: float | None, earlier: Sequence[Event]) -> TaskBudget:
    """A task's, with what these events of its journal say of the money."""
    return TaskBudget(limit, *(sums_of(earlier) if limit is not None else (0.0, 0.0)))


def _not_enough(whose: str, limit: float | None, spent: float, amount: float, flag: str, unsettled: float = 0.0) -> str:
    if math.isinf(spent):
        return f"{whose} of {limit:g} USD cannot be kept to: what was spent before is not known; leave {flag} out."
    following = f", and the next call could cost {amount:.4f}" if amount else ""
    perhaps = f", {unsettled:.4f} of it for replies that did not arrive, perhaps unbilled" if unsettled > CENTS else ""
    return f"{whose} of {limit:g} USD is not enough: {spent:.4f} USD spent{perhaps}{following}; raise {flag}."


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


def budget_for_runs(limit: float | None, runs: Iterable[Run]) -> Budget:
    """With what all that was ever asked in these runs can have cost."""
    known = list(runs)
    return Budget(limit, sum(map(committed_in, known)), sum(run.unsettled() or 0.0 for run in known))


def committed_in(run: Run) -> float:
    """What all that was ever asked in a run can have cost."""
    return sum(entry.committed for entry in run.sums().values())
