"""Threads of this process: workers mostly wait for a model or a sandbox."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import Generic, TypeVar

from retrial.errors import NotMeasured, Stopped
from retrial.protocols import Context, Stop
from retrial.system import shutdown
from retrial.system.shutdown import interruptible

J = TypeVar("J")
R = TypeVar("R")
S = TypeVar("S")

AHEAD = 2
"""So many jobs for each worker have been taken and not been handed out: nobody waits for who takes the results."""
FIRST_THREADS = 2
"""These start at once; more start while this process uses less than `BUSY` of a core."""
BUSY = 0.7
LOOK_SECONDS = 0.005
MOST_LOOKS = 40
"""Then a thread starts whatever the others do."""


class Local:
    def __init__(self, workers: int, stop: Stop) -> None:
        self._workers, self._stop = workers, stop

    def share(self, service: S) -> S:
        return service

    def run(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[tuple[J, R | Exception]]:
        """Raises: KeyboardInterrupt or Stopped when it was asked for, and what was running has been handed out."""
        with interruptible(self._stop), _Crew(work, self._stop, self._workers) as crew:
            for job in jobs:
                if self._stop.requested:
                    break
                crew.begin(job)
                yield from crew.results(down_to=AHEAD * self._workers - 1)
            yield from crew.results(down_to=0)
        self._stop.end()


def make(context: Context) -> Local:
    return Local(context.workers, context.stop or shutdown.Stop())


class _Crew(Generic[J, R]):
    """Workers who do one job after the other; nothing is kept of what has been handed out."""

    def __init__(self, work: Callable[[J], R], stop: Stop, workers: int) -> None:
        self._work, self._stop = work, stop
        self._threads = ThreadPoolExecutor(workers, "retrial", initializer=self._join)
        self._joining = threading.Lock()
        self._joined = self._admitted = 0
        self._done = SimpleQueue[tuple[J, R | Exception]]()
        self._begun = 0

    def begin(self, job: J) -> None:
        self._threads.submit(self._do, job)
        self._begun += 1

    def results(self, *, down_to: int) -> Iterator[tuple[J, R | Exception]]:
        """Until so many are left that were begun."""
        while self._begun > down_to:
            job, result = self._done.get()
            self._begun -= 1
            if not isinstance(result, Stopped):
                yield job, result

    def __enter__(self) -> _Crew[J, R]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """When nobody listens any more, what is under way comes to its next stop."""
        if self._begun:
            self._stop.request("nobody takes the results")
        self._threads.shutdown()

    def _join(self) -> None:
        """Start a thread when the others leave it time.

        All share one interpreter: tasks that prepare at the same time all reach the first sandbox late.
        """
        with self._joining:
            if self._joined >= FIRST_THREADS and self._joined >= self._admitted:
                any(self._leaves_time() for _ in range(MOST_LOOKS))
                self._admitted = self._joined + 1 + self._joined // 4
            self._joined += 1

    def _leaves_time(self) -> bool:
        used, started = time.process_time(), time.monotonic()
        stopped = self._stop.wait(LOOK_SECONDS)
        return stopped or time.process_time() - used < BUSY * (time.monotonic() - started)

    def _do(self, job: J) -> None:
        self._done.put((job, guarded(self._work, job, self._stop)))


def guarded(work: Callable[[J], R], job: J, stop: Stop) -> R | Exception:
    """What comes of a job, unless nothing new is to be started."""

    def begun() -> R:
        stop.raise_if_set()
        return work(job)

    return caught(begun)


def caught(work: Callable[[], R]) -> R | Exception:
    """The one place where any failure becomes a value: one broken job must not end the others.

    Also what a library raises to end its thread, or to say that it has broken down: somebody waits for a result.
    """
    try:
        return work()
    except BaseException as error:
        return error if isinstance(error, Exception) else NotMeasured(f"{type(error).__name__}: {error}")
