"""Driver-side services for a running task, on whatever machine it runs: journal, budget, permits for model calls."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from retrial.chat import Backoff
from retrial.executors.limiter import FairLimiter, Slot
from retrial.predict.metering.budget import Budget, task_budget
from retrial.protocols import Stop
from retrial.store import journal
from retrial.store.journal import Journal, Line
from retrial.store.runs import Run
from retrial.system.host import write_using_reserve


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

    def lost(self, instance_id: str) -> None:
        """Whoever worked at it is gone: an executor says so, also of what was begun for them in the meantime."""
        self.close(instance_id)

    def write(self, instance_id: str, lines: bytes) -> None:
        """On disk when this returns."""
        if not lines:
            return
        with self._lock:
            found = self._journals.get(instance_id) or self._run.journal(instance_id)
        write_using_reserve(lambda: found.write(lines))

    def begin(self, instance_id: str, lines: bytes, amount: float, whom: str = "") -> int:
        """Leave to ask this model one question: so much money is put by, and it is written down. Waits for money and
        for a turn.

        Returns a number to end it by. Raises: BudgetSpent, Stopped.
        """
        self._stop.raise_if_set()
        with ExitStack() as undone:
            number = self._budget.reserve(amount)
            undone.callback(self._budget.settle, number, 0.0)
            turn = self._turns.begin(whom)
            undone.callback(self._turns.end, turn)
            self.write(instance_id, lines)
            undone.pop_all()
        with self._lock:
            self._leaves[number] = CallPermit(whose=instance_id, turn=turn)
        return number

    def end(self, number: int, instance_id: str, lines: bytes, cost: float | None) -> None:
        """What came of a question, on disk when this returns; an unknown cost is taken to be all that was put by."""
        self.write(instance_id, lines)
        if leave := self._taken_back(number):
            self._budget.settle(number, cost)
            self._end(leave)

    def lose(self, number: int, instance_id: str, lines: bytes) -> None:
        """The reply to a question did not arrive; it may have been billed with all that was put by for it."""
        self.write(instance_id, lines)
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

    def still(self) -> None:
        """Raises: Stopped."""
        self._stop.raise_if_set()

    def spend(self, instance_id: str, lines: bytes, cost: float | None) -> None:
        """An agent has spent this on its own."""
        self.write(instance_id, lines)
        self._budget.add(cost)

    def check(self) -> None:
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


class TaskDriver:
    """What one task's work has of the driver: its journal, and its own limit of money."""

    def __init__(self, instance_id: str, driver: DriverService, limit: float | None = None) -> None:
        self._instance_id, self._driver = instance_id, driver
        self._go = secrets.token_hex(4)
        """Which go at the task wrote a line: there may be another's, of a worker that was taken for lost."""
        self._earlier = tuple(journal.read(driver.open(instance_id)))
        self._purse = task_budget(limit, self._earlier)
        self._kept = b""

    def lines(self) -> Iterator[Line]:
        """What earlier goes have written; not what this one does."""
        return iter(self._earlier)

    def line(self, event: str, **fields: object) -> bytes:
        """As it goes into the journal."""
        return journal.line(event, go=self._go, **fields)

    def append(self, event: str, **fields: object) -> None:
        self.note(self.line(event, **fields))

    def note(self, line: bytes) -> None:
        self._driver.write(self._instance_id, self._with_kept(line))

    def append_with_next(self, event: str, **fields: object) -> None:
        """What alone is of no use goes to disk with what follows."""
        self._kept += self.line(event, **fields)

    def begin(self, line: bytes, amount: float, whom: str = "") -> int:
        """Raises: OutOfMoney or BudgetSpent when this could pass the task's limit; as `DriverService.begin`."""
        self._purse.check(amount)
        return self._driver.begin(self._instance_id, self._with_kept(line), amount, whom)

    def end(self, number: int, line: bytes, amount: float, cost: float | None) -> None:
        """Of this amount that was put by, so much is spent."""
        self._driver.end(number, self._instance_id, self._with_kept(line), cost)
        self._purse.add(amount if cost is None else cost)

    def lose(self, number: int, line: bytes, amount: float) -> None:
        """As `DriverService.lose`."""
        self._driver.lose(number, self._instance_id, self._with_kept(line))
        self._purse.lose(amount)

    def again(self, amount: float, whom: str = "") -> int:
        """Leave to ask once more what is written down already. Raises: as `begin` does."""
        self._purse.check(amount)
        return self._driver.begin(self._instance_id, b"", amount, whom)

    def next_try(self, number: int, trouble: Backoff) -> bool:
        """As `DriverService.next_try`."""
        return self._driver.next_try(number, trouble)

    def still(self) -> None:
        """Raises: Stopped."""
        self._driver.still()

    def spend(self, line: bytes, cost: float | None) -> None:
        self._driver.spend(self._instance_id, self._with_kept(line), cost)
        self._purse.add(cost)

    def check(self) -> None:
        """Before an agent that spends on its own. Raises: OutOfMoney, BudgetSpent, Stopped."""
        self._purse.check()
        self._driver.check()

    def _with_kept(self, line: bytes) -> bytes:
        lines, self._kept = self._kept + line, b""
        return lines
