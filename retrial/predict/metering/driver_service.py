"""Driver-side services for a running task, on whatever machine it runs: journal, budget, permits for model calls."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import dataclass, replace

from retrial.chat import Backoff
from retrial.executors.limiter import FairLimiter, Slot
from retrial.predict.metering.budget import Budget
from retrial.protocols import Stop
from retrial.store.journal import Journal
from retrial.store.runs import Run
from retrial.system.host import give_up_reserve


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
        """Leave to ask this model one question: so much money is put by, and it is written down. Waits for money and
        for a turn.

        Returns a number to settle it by. Raises: BudgetSpent, Stopped.
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
