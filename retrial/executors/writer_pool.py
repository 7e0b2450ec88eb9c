"""Bounded pool of threads that write finished work to disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

WORKERS = 8
WAITING = 32
"""Pieces of work taken at once."""


class WriterPool:
    """All that was taken is done when it ends; the first failure is raised where the next piece is taken, or then."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="retrial-abreast")
        self._room = threading.Semaphore(WAITING)
        self._failures: list[BaseException] = []

    def submit(self, work: Callable[[], object]) -> None:
        self._room.acquire()
        self._raise()
        self._pool.submit(work).add_done_callback(self._ended)

    def _ended(self, future: Future[object]) -> None:
        if error := future.exception():
            self._failures.append(error)
        self._room.release()

    def _raise(self) -> None:
        if self._failures:
            raise self._failures[0]

    def __enter__(self) -> WriterPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()
        if error is None:
            self._raise()
