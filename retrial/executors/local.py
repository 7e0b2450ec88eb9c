"""Threads of this process: workers mostly wait for a model or a sandbox."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import FrameType
from typing import TypeVar

from retrial.program import INTERRUPTED
from retrial.protocols import Context

J = TypeVar("J")
R = TypeVar("R")

POLL_SECONDS = 0.2
"""How soon an interrupt is noticed."""


class Local:
    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[tuple[J, R | Exception]]:
        """Raises: KeyboardInterrupt after Ctrl-C, when what was running has been handed out."""
        with ThreadPoolExecutor(max_workers=self._workers, thread_name_prefix="retrial") as pool, _Interrupt() as stop:
            futures: dict[Future[R | Exception], J] = {pool.submit(_guarded, work, job, stop): job for job in jobs}
            pending = set(futures)
            try:
                while pending:
                    done, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
                    results = ((futures[future], future.result()) for future in done)
                    yield from (pair for pair in results if not isinstance(pair[1], _NotStarted))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        if stop.asked:
            raise KeyboardInterrupt


def make(context: Context) -> Local:
    return Local(context.workers)


class _NotStarted(Exception):
    """Its turn came after the interrupt."""


def _guarded(work: Callable[[J], R], job: J, stop: _Interrupt) -> R | Exception:
    """The one place where any failure becomes a value: one broken job must not end the others."""
    if stop.asked:
        return _NotStarted()
    try:
        return work(job)
    except Exception as error:
        return error


class _Interrupt:
    """While it lasts, the first Ctrl-C only asks to stop, and the next one ends the process."""

    def __init__(self) -> None:
        self.asked = False
        # Signals reach the main thread alone.
        self._mine = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> _Interrupt:
        if self._mine:
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._mine:
            signal.signal(signal.SIGINT, self._before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            os._exit(INTERRUPTED)
        self.asked = True
        print("\nStopping: running tasks are finished and written; Ctrl-C again ends at once.", file=sys.stderr)
