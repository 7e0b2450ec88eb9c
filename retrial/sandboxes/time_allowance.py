"""How long a job may run: so much wall time, or so much CPU time with the wall time as a backstop.

Under load a job takes more wall time for the same work. A limit in CPU time does not count the time in which others had
the processor; but it would never end a job that waits for something that does not come. So such a job is ended too: one
that hardly uses the processor, and does not want it either, for as long as the limit is.
"""

from __future__ import annotations

from typing import Protocol

from retrial.types import Limits

IDLE = 0.05
"""Of one core: a job that waits in a loop uses less, and a busy machine leaves a job more."""
PAUSE = 1.0
"""Seconds between two looks at least: engines take as long for an answer."""


class Meter(Protocol):
    """What can be measured of a running job."""

    def cpu_seconds(self) -> float | None:
        """Return the CPU time of all processes so far; None where it cannot be measured."""
        ...

    def wants_cpu(self) -> bool:
        """Whether a process runs, or would if it got a processor; False where that cannot be told."""
        ...


class TimeAllowance:
    """The time that one job has. It looks at the meter only when the job might have used it up."""

    def __init__(self, limits: Limits, started: float) -> None:
        self._limits = limits
        self._started, self._end = started, started + limits.seconds
        self._window = (started, 0.0)
        """When the last look for an idle job was, and what the job had used by then."""
        self.deadline = self._end if limits.cpu_seconds is None else self._next(started, limits.cpu_seconds, 0.0)
        self.cpu_seconds: float | None = None
        """As of the last look."""
        self.starved = False
        """The wall time is over; of its CPU time the job has some left, and wanted it."""

    def extend(self, now: float, meter: Meter) -> bool:
        """Set the next deadline; False when the job's time is over."""
        measured, most = meter.cpu_seconds(), self._limits.cpu_seconds
        # An engine may fail to answer once.
        used = self.cpu_seconds = self.cpu_seconds if measured is None else measured
        if most is None:
            return False
        if used is None:
            # Wall time is all there is to go by.
            self.deadline = min(self._end, self._started + most)
            return now < self.deadline
        if used >= most:
            return False
        if now >= self._end:
            self.starved = meter.wants_cpu()
            return False
        if measured is not None and self._idle(now, most, used) and not meter.wants_cpu():
            return False
        self.deadline = self._next(now, most, used)
        return True

    def _next(self, now: float, most: float, used: float) -> float:
        """Before then the job can neither have used up its CPU time nor have been idle for long enough."""
        soonest = now + max((most - used) / self._limits.cpus, PAUSE)
        return min(self._end, soonest, max(self._window[0] + most, now + PAUSE))

    def _idle(self, now: float, most: float, used: float) -> bool:
        began, before = self._window
        if now - began < most:
            return False
        self._window = (now, used)
        return used - before < IDLE * (now - began)
