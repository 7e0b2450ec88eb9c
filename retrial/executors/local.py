"""Threads of this process: workers mostly wait for a model or a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from retrial.errors import Stopped
from retrial.protocols import Context
from retrial.stopping import Stop, interruptible

J = TypeVar("J")
R = TypeVar("R")
S = TypeVar("S")

POLL_SECONDS = 0.2
"""How soon an interrupt is noticed."""


class Local:
    def __init__(self, workers: int, stop: Stop) -> None:
        self._workers, self._stop = workers, stop

    def share(self, service: S) -> S:
        return service

    def run(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[tuple[J, R | Exception]]:
        """Raises: KeyboardInterrupt after Ctrl-C, when what was running has been handed out."""
        stop = self._stop
        with (
            interruptible(stop),
            ThreadPoolExecutor(max_workers=self._workers, thread_name_prefix="retrial") as pool,
        ):
            futures: dict[Future[R | Exception], J] = {pool.submit(_guarded, work, job, stop): job for job in jobs}
            pending = set(futures)
            try:
                while pending:
                    done, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
                    results = ((futures[future], future.result()) for future in done)
                    yield from (pair for pair in results if not isinstance(pair[1], Stopped))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        if stop.interrupted:
            raise KeyboardInterrupt


def make(context: Context) -> Local:
    return Local(context.workers, context.stop)


def _guarded(work: Callable[[J], R], job: J, stop: Stop) -> R | Exception:
    """The one place where any failure becomes a value: one broken job must not end the others."""
    try:
        stop.check()
        return work(job)
    except Exception as error:
        return error
