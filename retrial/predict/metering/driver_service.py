"""Driver-side services for a running task, on whatever machine it runs: budget, journal, permits for model calls.

Money is reserved before a call, so that parallel workers cannot pass a limit together.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from retrial.chat import Backoff, unknown_is_infinite
from retrial.errors import BudgetSpent
from retrial.executors.limiter import FairLimiter, Slot
from retrial.models.prices import no_price
from retrial.protocols import Stop
from retrial.store.journal import Journal
from retrial.store.runs import Run
from retrial.system.host import give_up_reserve

CENTS = 0.00005
"""USD that are not worth a word."""


class Budget:
    """The budget of a run. A call waits while open reservations may be released, never for money that is spent."""

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
        return not_enough("The budget", self._limit, self._spent, amount, "--max-cost", self._unsettled)

    def _fits(self, amount: float) -> bool:
        return self._limit is None or self._spent + sum(self._reserved.values()) + amount <= self._limit

    def _never(self, amount: float) -> bool:
        return not self._reserved or (self._limit is not None and self._spent + amount > self._limit)


def not_enough(whose: str, limit: float | None, spent: float, amount: float, flag: str, unsettled: float = 0.0) -> str:
    if math.isinf(spent):
        return f"{whose} of {limit:g} USD cannot be kept to: what was spent before is not known; leave {flag} out."
    following = f", and the next call could cost {amount:.4f}" if amount else ""
    perhaps = f", {unsettled:.4f} of it for replies that did not arrive, perhaps unbilled" if unsettled > CENTS else ""
    return f"{whose} of {limit:g} USD is not enough: {spent:.4f} USD spent{perhaps}{following}; raise {flag}."


def budget_for_runs(limit: float | None, runs: Iterable[Run]) -> Budget:
    """With what all that was ever asked in these runs can have cost."""
    known = list(runs)
    return Budget(limit, sum(map(committed_in, known)), sum(run.unsettled() or 0.0 for run in known))


def committed_in(run: Run) -> float:
    """What all that was ever asked in a run can have cost."""
    return sum(entry.committed for entry in run.sums().values())


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPermit:
    """A question under way."""

    whose: str
    turn: Slot | None
    """None while it waits for another."""


class DriverService:
    """Plain values in and out: an executor may let other machines call it (`Executor.share`)."""

    def __init__(self, run: Run, budget: Budget, turns: FairLimiter, stop: Stop) -> None:
        self._run, self._budget, self._turns, self._stop = run, budget, turns, stop
        self._lock = threading.Lock()
        self._journals: dict[str, Journal] = {}
        self._leaves: dict[int, CallPermit] = {}

    def open(self, instance_id: str) -> bytes:
        """Somebody begins to work at this task, or goes on for one who was lost: the journal as it is now."""
        self.close(instance_id)
        found = self._run.journal(instance_id)
        with self._lock:
            self._journals[instance_id] = found
        return found.mended()

    def close(self, instance_id: str) -> None:
        """Nobody works at it any more. Of what was asked and has no end yet nobody will hear; it may be billed."""
        with self._lock:
            self._journals.pop(instance_id, None)
            lost = [number for number, leave in self._leaves.items() if leave.whose == instance_id]
        for number in lost:
            self._give_up(number)

    lost = close
    """The worker is lost: an executor calls this, also for calls reserved for it in the meantime."""

    def append(self, instance_id: str, lines: bytes) -> None:
        """On disk when this returns."""
        if not lines:
            return
        with self._lock:
            found = self._journals.get(instance_id) or self._run.journal(instance_id)
        try:
            found.write(lines)
        except OSError as error:
            give_up_reserve(error)
            found.write(lines)

    def reserve(self, instance_id: str, lines: bytes, amount: float, whom: str = "") -> int:
        """Reserve `amount` for one call and journal the request; wait for budget and for a slot.

        Return a number to settle the call by. Raises: BudgetSpent, Stopped.
        """
        self._stop.raise_if_set()
        with ExitStack() as undone:
            number = self._budget.reserve(amount)
            undone.callback(self._budget.settle, number, 0.0)
            turn = self._turns.begin(whom)
            undone.callback(self._turns.end, turn)
            self.append(instance_id, lines)
            undone.pop_all()
        with self._lock:
            self._leaves[number] = CallPermit(whose=instance_id, turn=turn)
        return number

    def settle(self, number: int | None, instance_id: str, lines: bytes, cost: float | None) -> None:
        """Write the outcome of a call to disk and settle its cost; an unknown cost counts as the whole reservation.

        Without a number: an agent spent this on its own, without a reservation.
        """
        self.append(instance_id, lines)
        if number is None:
            self._budget.add(cost)
        elif leave := self._taken_back(number):
            self._budget.settle(number, cost)
            self._end(leave)

    def lose(self, number: int, instance_id: str, lines: bytes) -> None:
        """The reply to a question did not arrive; it may have been billed with all that was put by for it."""
        self.append(instance_id, lines)
        self._give_up(number)

    def next_try(self, number: int, trouble: Backoff) -> bool:
        """A question failed and is to be tried again: waits as long as it has to, and for another turn.

        False when there is no hope. Raises: Stopped.
        """
        with self._lock:
            leave = self._leaves.get(number)
            if leave is None or leave.turn is None:
                # Its worker was taken for lost.
                return False
            self._leaves[number] = replace(leave, turn=None)
        turn = self._turns.next_try(leave.turn, trouble)
        with self._lock:
            if number in self._leaves:
                self._leaves[number] = replace(leave, turn=turn)
                return turn is not None
        if turn is not None:
            self._turns.end(turn)
        return False

    def check_stop(self) -> None:
        """Raises: Stopped."""
        self._stop.raise_if_set()

    def check_budget(self) -> None:
        """Before an agent that spends on its own. Raises: BudgetSpent, Stopped."""
        self._stop.raise_if_set()
        self._budget.check()

    def _give_up(self, number: int) -> None:
        if leave := self._taken_back(number):
            self._budget.lose(number)
            self._end(leave, well=False)

    def _taken_back(self, number: int) -> CallPermit | None:
        """None when its worker was taken for lost."""
        with self._lock:
            return self._leaves.pop(number, None)

    def _end(self, leave: CallPermit, *, well: bool = True) -> None:
        if leave.turn is not None:
            self._turns.end(leave.turn, well=well)
