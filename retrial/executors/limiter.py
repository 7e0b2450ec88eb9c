"""FIFO concurrency limiter with an adaptive limit (AIMD): fewer calls at once after an overload, more again while calls
succeed. Also the limits that follow from the machine."""

from __future__ import annotations

import heapq
import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from retrial.chat import REFUSALS, Backoff, Overload
from retrial.errors import Stopped
from retrial.protocols import Stop
from retrial.system import host
from retrial.types import HostCapacity

LOOK_SECONDS = 1.0
"""How often somebody looks whether there is room again."""
LEAST_CALLS = 16
AHEAD = 4
"""So many tasks for each sandbox may wait for it."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Leave to do one thing."""

    whom: str
    """Who is to do it."""
    number: int
    """Who comes first: one that is tried again keeps it."""
    begun: float
    refusals: int = 0
    """In a row, while nobody else was served."""
    done: int = 0
    """By whoever does it, at the last refusal."""
    places: int = 1
    """Of those in the pool that it takes."""


class FairLimiter:
    """A pool of turns; safe to use from many threads."""

    def __init__(self, most: int, stop: Stop, doing: str = "asking", room: Callable[[], bool] = lambda: True) -> None:
        """`room`: whether there is enough of what else it needs for one beside those under way."""
        self._most, self._stop, self._doing, self._room = most, stop, doing, room
        self._lock = threading.Lock()
        self._taken = 0
        self._numbers = itertools.count()
        self._lines: dict[str, _Queue] = {}
        self._resting = threading.Condition(self._lock)
        stop.on_request(self._wake_all)

    @property
    def slowed(self) -> str:
        """For people: who is given fewer at once than might be, and why; empty when nobody is."""
        with self._lock:
            slow = [(whom, line.pace) for whom, line in self._lines.items() if not line.pace.full]
            several = len(self._lines) > 1
        return "; ".join(
            f"{self._doing} {whom + ' ' if several else ''}{pace.allowed} at once of {pace.most}: {pace.why}"
            for whom, pace in slow
        )

    def begin(self, whom: str = "") -> Slot:
        """Waits for a turn.

        Raises: Stopped.
        """
        self._stop.raise_if_set()
        with self._lock:
            turn = Slot(whom=whom, number=next(self._numbers), begun=0.0)
            return self._wait(turn)

    def end(self, turn: Slot, *, well: bool = True) -> None:
        """It is done, or will not be."""
        now = time.monotonic()
        with self._lock:
            line = self._lines[turn.whom]
            before = line.pace.allowed
            if well:
                line.pace.on_success(turn.begun, now)
            self._give_back(line, turn)
            self._call()
            self._log(turn.whom, before, "it goes well")

    def alone(self, turn: Slot) -> Slot:
        """Exchange a turn for one that takes all places: it begins when nothing else is under way.

        Raises: Stopped, and the turn is given back.
        """
        with self._lock:
            self._give_back(self._lines[turn.whom], turn)
            return self._wait(replace(turn, places=self._most))

    def next_try(self, turn: Slot, trouble: Backoff) -> Slot | None:
        """It failed and is to be tried again: waits as long as it has to, and for a turn.

        Returns None, and the turn is given back, when there is no hope. Raises: Stopped.
        """
        now = time.monotonic()
        with self._lock:
            line = self._lines[turn.whom]
            before = line.pace.allowed
            line.pace.on_failure(trouble, turn.begun, now)
            self._give_back(line, turn)
            if line.waiting:
                # When that one may begin is another time now.
                line.waiting[0].called.notify()
            self._log(turn.whom, before, trouble.why)
            refusals = 1 + (turn.refusals if turn.done == line.pace.done else 0)
            hopeless = trouble.load is Overload.RATE and refusals >= REFUSALS
            if hopeless or not trouble.everybody:
                self._call()
            if hopeless:
                return None
            if not trouble.everybody:
                self._resting.wait_for(lambda: self._stop.is_set, trouble.seconds)
            return self._wait(replace(turn, refusals=refusals, done=line.pace.done))

    def _wait(self, turn: Slot) -> Slot:
        line = self._lines.setdefault(turn.whom, _Queue(AdaptiveLimit(self._most)))
        waiter = _Waiter(number=turn.number, places=turn.places, called=threading.Condition(self._lock))
        heapq.heappush(line.waiting, waiter)
        self._call()
        while waiter.begun is None:
            if self._stop.is_set:
                line.waiting.remove(waiter)
                heapq.heapify(line.waiting)
                raise Stopped(self._stop.reason)
            # Only the first of a line looks at the clock.
            waiter.called.wait(self._seconds(line) if line.waiting[0] is waiter else None)
            self._call()
        return replace(turn, begun=waiter.begun)

    def _seconds(self, line: _Queue) -> float | None:
        """How long to wait if nobody calls."""
        return line.pace.opens_in(time.monotonic()) or (LOOK_SECONDS if self._taken and not self._room() else None)

    def _call(self) -> None:
        """Everybody who may begin, who came first before the others."""
        now = time.monotonic()
        while self._taken < self._most and not self._stop.is_set:
            free = [line for line in self._lines.values() if line.waiting and line.pace.free(now)]
            if not free or (self._taken and not self._room()):
                return
            line = min(free, key=lambda each: each.waiting[0].number)
            if self._taken + line.waiting[0].places > self._most:
                # It must run alone. Later ones wait for it; otherwise it could starve.
                return
            waiter = heapq.heappop(line.waiting)
            waiter.begun = now
            waiter.called.notify()
            line.pace.begin(now)
            self._taken += waiter.places
            if line.waiting:
                line.waiting[0].called.notify()

    def _give_back(self, line: _Queue, turn: Slot) -> None:
        line.pace.end()
        self._taken -= turn.places

    def _wake_all(self) -> None:
        with self._lock:
            self._resting.notify_all()
            for line in self._lines.values():
                for waiter in line.waiting:
                    waiter.called.notify()

    def _log(self, whom: str, before: int, why: str) -> None:
        now = self._lines[whom].pace.allowed
        if now != before:
            fields = {"whom": whom, "before": before, "now": now, "of": self._most}
            _LOG.info("%s: %d at once, %d before: %s", self._doing, now, before, why, extra=fields)


class _Waiter:
    def __init__(self, *, number: int, places: int, called: threading.Condition) -> None:
        self.number, self.places, self.called = number, places, called
        self.begun: float | None = None

    def __lt__(self, other: _Waiter) -> bool:
        return self.number < other.number


class _Queue:
    """Those who wait for the same one."""

    def __init__(self, pace: AdaptiveLimit) -> None:
        self.pace = pace
        self.waiting: list[_Waiter] = []


def calls_at_once(jobs: int) -> int:
    """Of `--jobs`: models are asked without cores of ours."""
    return jobs or max(LEAST_CALLS, 2 * host.capacity().cores)


def tasks_in_flight(jobs: int, test_jobs: int) -> int:
    """More than questions: those whose tests wait for a sandbox must not keep a model idle."""
    calls = calls_at_once(jobs)
    return 1 if calls == 1 else calls + AHEAD * sandboxes_at_once(test_jobs)


def sandboxes_at_once(test_jobs: int, where: HostCapacity | None = None) -> int:
    """Of `--test-jobs`, or as many as the machine is good for: this one, or that."""
    return test_jobs or (where or host.capacity()).jobs()


CUTS: Mapping[Overload, float] = {Overload.RATE: 0.5, Overload.STRAIN: 0.8, Overload.BROKEN: 0.5}
"""How many at once are left of those that were too many."""
GROWTH = 0.1
"""How many more at once after one round (all at once, done once); ever more with every round that goes well."""
MARGIN = 1.1
"""By how much the pause between two is longer than what was refused."""
LONGEST_PAUSE = 600.0
SHRINKING = 0.005
"""The share of that pause that goes with the first that goes well; ever more with the next ones."""


class AdaptiveLimit:
    """How many may be given to one provider at once. Pure but for what it remembers: every moment is an argument."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self.done = 0
        self.why = ""
        """Why there are not as many as might be."""
        self._allowed = float(most)
        self._pause = 0.0
        """Between two beginnings, where even one at a time is too much."""
        self._opens = self._slowed = -math.inf
        self._rounds = 0.0

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    @property
    def full(self) -> bool:
        return self.allowed == self.most and not self._pause

    def opens_in(self, now: float) -> float:
        """Seconds until the next call may start."""
        return max(0.0, self._opens - now)

    def free(self, now: float) -> bool:
        return self.taken < self.allowed and now >= self._opens

    def begin(self, now: float) -> None:
        self.taken += 1
        self._opens = max(self._opens, now + self._pause)

    def end(self) -> None:
        self.taken -= 1

    def on_success(self, begun: float, now: float) -> None:
        """What had begun then is done now."""
        self.done += 1
        if begun <= self._slowed:
            # It tells how it went before.
            return
        self._rounds += 1.0 / self._allowed
        if self._pause:
            self._pause *= max(0.0, 1.0 - SHRINKING * self._rounds)
            if self._pause <= now - begun:
                self._pause = 0.0
            return
        self._allowed = min(float(self.most), self._allowed + GROWTH * self._rounds / self._allowed)

    def on_failure(self, trouble: Backoff, begun: float, now: float) -> None:
        """What had begun then has failed. Of all that was under way when it was slowed, the first has said it."""
        if trouble.everybody:
            self._opens = max(self._opens, now + trouble.seconds)
        if trouble.load is Overload.NONE or begun <= self._slowed:
            return
        if trouble.load is Overload.RATE and self.taken <= 1:
            self._pause = min(LONGEST_PAUSE, MARGIN * (max(self._pause, now - begun) + trouble.seconds))
        self._allowed = max(1.0, min(self._allowed, self.taken) * CUTS[trouble.load])
        self._slowed, self._rounds, self.why = now, 0.0, trouble.why
