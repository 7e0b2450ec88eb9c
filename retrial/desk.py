"""The driver, as a task under way meets it, on whatever machine it runs: the driver alone writes, keeps the money and
gives leave to ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack

from retrial import journal
from retrial.budget import Budget, TaskBudget, committed
from retrial.journal import Journal, Line
from retrial.stopping import Stop
from retrial.store import Run
from retrial.turns import Turns


class Desk:
    """Plain values in and out: an executor may let other machines call it (`Executor.share`)."""

    def __init__(self, run: Run, budget: Budget, turns: Turns, stop: Stop) -> None:
        self._run, self._budget, self._turns, self._stop = run, budget, turns, stop
        self._lock = threading.Lock()
        self._journals: dict[str, Journal] = {}
        self._leaves: dict[int, str] = {}
        """Questions under way → whose they are."""

    def open(self, instance_id: str) -> bytes:
        """Somebody begins to work at this task, or goes on for one who was lost: the journal as it is now."""
        self.close(instance_id)
        found = self._run.journal(instance_id)
        with self._lock:
            self._journals[instance_id] = found
        return found.content()

    def close(self, instance_id: str) -> None:
        """Nobody works at it any more. Of what was asked and has no end yet nobody will hear; it may be billed."""
        with self._lock:
            self._journals.pop(instance_id, None)
            lost = [number for number, whose in self._leaves.items() if whose == instance_id]
        for number in lost:
            self._give_back(number, None)

    def write(self, instance_id: str, lines: bytes) -> None:
        """On disk when this returns."""
        if not lines:
            return
        with self._lock:
            found = self._journals.get(instance_id) or self._run.journal(instance_id)
        found.write(lines)

    def begin(self, instance_id: str, lines: bytes, amount: float) -> int:
        """Leave to ask one question: so much money is put by, and it is written down. Waits for money and for a turn.

        Returns a number to end it by. Raises: BudgetSpent, Stopped.
        """
        self._stop.check()
        with ExitStack() as undone:
            number = self._budget.reserve(amount)
            undone.callback(self._budget.settle, number, 0.0)
            self._turns.begin()
            undone.callback(self._turns.end)
            self.write(instance_id, lines)
            undone.pop_all()
        with self._lock:
            self._leaves[number] = instance_id
        return number

    def end(self, number: int, instance_id: str, lines: bytes, cost: float | None) -> None:
        """What came of a question, on disk when this returns; an unknown cost is taken to be all that was put by."""
        self.write(instance_id, lines)
        self._give_back(number, cost)

    def slow(self, seconds: float | None) -> None:
        """A provider refused a question for coming too soon, and perhaps said how long to wait."""
        self._turns.slow(seconds)

    def spend(self, instance_id: str, lines: bytes, cost: float | None) -> None:
        """An agent has spent this on its own."""
        self.write(instance_id, lines)
        self._budget.add(cost)

    def check(self) -> None:
        """Before an agent that spends on its own. Raises: BudgetSpent, Stopped."""
        self._stop.check()
        self._budget.check()

    def _give_back(self, number: int, cost: float | None) -> None:
        with self._lock:
            if self._leaves.pop(number, None) is None:
                # Its worker was taken for lost.
                return
        self._budget.settle(number, cost)
        self._turns.end()


class TaskDesk:
    """What one task's work has of the desk: its journal, and its own limit of money."""

    def __init__(self, instance_id: str, desk: Desk, limit: float | None = None) -> None:
        self._instance_id, self._desk = instance_id, desk
        self._earlier = tuple(journal.read(desk.open(instance_id)))
        self._purse = TaskBudget(limit, committed(self._earlier) if limit is not None else 0.0)
        self._kept = b""

    def lines(self) -> Iterator[Line]:
        """What earlier goes have written; not what this one does."""
        return iter(self._earlier)

    def append(self, event: str, **fields: object) -> None:
        self.note(journal.line(event, **fields))

    def note(self, line: bytes) -> None:
        self._desk.write(self._instance_id, self._with_kept(line))

    def append_with_next(self, event: str, **fields: object) -> None:
        """What alone is of no use goes to disk with what follows."""
        self._kept += journal.line(event, **fields)

    def begin(self, line: bytes, amount: float) -> int:
        """Raises: OutOfMoney when this could pass the task's limit; as `Desk.begin`."""
        self._purse.check(amount)
        return self._desk.begin(self._instance_id, self._with_kept(line), amount)

    def end(self, number: int, line: bytes, amount: float, cost: float | None) -> None:
        """Of this amount that was put by, so much is spent."""
        self._desk.end(number, self._instance_id, self._with_kept(line), cost)
        self._purse.add(amount if cost is None else cost)

    def again(self, amount: float) -> int:
        """Leave to ask once more what is written down already. Raises: as `begin` does."""
        self._purse.check(amount)
        return self._desk.begin(self._instance_id, b"", amount)

    def slow(self, seconds: float | None) -> None:
        self._desk.slow(seconds)

    def spend(self, line: bytes, cost: float | None) -> None:
        self._desk.spend(self._instance_id, self._with_kept(line), cost)
        self._purse.add(cost)

    def check(self) -> None:
        """Before an agent that spends on its own. Raises: OutOfMoney, BudgetSpent, Stopped."""
        self._purse.check()
        self._desk.check()

    def _with_kept(self, line: bytes) -> bytes:
        lines, self._kept = self._kept + line, b""
        return lines
