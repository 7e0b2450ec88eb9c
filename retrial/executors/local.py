"""Threads of this process: workers mostly wait for a model or a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

from retrial.protocols import Context

J = TypeVar("J")
R = TypeVar("R")


class Local:
    def __init__(self, workers: int) -> None:
        self._workers = workers

    def run(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[tuple[J, R | Exception]]:
        with ThreadPoolExecutor(max_workers=self._workers, thread_name_prefix="retrial") as pool:
            futures: dict[Future[R | Exception], J] = {pool.submit(_guarded, work, job): job for job in jobs}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            finally:
                # Interrupted: start nothing more; what runs may finish.
                pool.shutdown(wait=False, cancel_futures=True)


def make(context: Context) -> Local:
    return Local(context.workers)


def _guarded(work: Callable[[J], R], job: J) -> R | Exception:
    """The one place where any failure becomes a value: one broken job must not end the others."""
    try:
        return work(job)
    except Exception as error:
        return error
