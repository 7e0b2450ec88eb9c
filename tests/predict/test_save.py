"""Work that waits for a disk, several pieces at once."""

from __future__ import annotations

import threading

import pytest

from retrial.predict.save import WAITING, WORKERS, WriterPool


def test_all_that_was_taken_is_done_when_it_ends() -> None:
    done: list[int] = []
    with WriterPool() as workers:
        for number in range(3 * WAITING):
            workers.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    assert sorted(done) == list(range(3 * WAITING))


def test_as_many_wait_at_once_as_there_are_workers() -> None:
    together = threading.Barrier(WORKERS, timeout=60)
    with WriterPool() as workers:
        for _ in range(WORKERS):
            workers.submit(together.wait)
    assert not together.broken


def test_a_failure_is_raised_and_ends_it() -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"), WriterPool() as workers:
        workers.submit(full)


def test_what_ends_it_otherwise_is_not_hidden_by_a_failure() -> None:
    with pytest.raises(KeyboardInterrupt), WriterPool() as workers:
        workers.submit(lambda: 1 / 0)
        raise KeyboardInterrupt
