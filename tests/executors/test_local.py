"""Threads of this process, hundreds of them: nothing is kept, nothing is left."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Iterator

import pytest

from retrial.errors import Stopped
from retrial.executors.local import AHEAD, Local
from retrial.system.shutdown import Stop

SECONDS = 60


class Result:
    """Something that can be looked for."""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_five_hundred_workers_work_at_once_and_are_gone_afterwards() -> None:
    threads, opened, everybody = threading.active_count(), descriptors(), threading.Barrier(500)
    results = Local(500, Stop()).run(lambda job: everybody.wait(SECONDS), range(2_000))
    assert sum(not isinstance(result, Exception) for _, result in results) == 2_000
    assert (threading.active_count(), descriptors()) == (threads, opened)


def test_few_jobs_take_few_workers() -> None:
    names = dict(Local(500, Stop()).run(lambda job: threading.current_thread().name, range(3)))
    assert set(names.values()) <= {"retrial_0", "retrial_1", "retrial_2"}


def test_jobs_are_taken_as_they_are_needed() -> None:
    taken = list[int]()

    def jobs() -> Iterator[int]:
        for number in range(1_000):
            taken.append(number)
            yield number

    for done, _ in enumerate(Local(3, Stop()).run(lambda job: job, jobs()), start=1):
        assert len(taken) <= done + 3 * AHEAD
    assert len(taken) == 1_000


def test_what_has_been_handed_out_is_not_kept() -> None:
    seen = list[weakref.ref[Result]]()
    for _, result in Local(4, Stop()).run(lambda job: Result(), range(200)):
        assert isinstance(result, Result)
        seen.append(weakref.ref(result))
        del result
    gc.collect()
    assert not any(each() for each in seen)


def test_a_source_of_jobs_that_breaks_is_said_and_no_worker_stays() -> None:
    def jobs() -> Iterator[int]:
        yield 1
        raise RuntimeError("no more")

    threads = threading.active_count()
    with pytest.raises(RuntimeError, match="no more"):
        list(Local(4, Stop()).run(lambda job: job, jobs()))
    assert threading.active_count() == threads


def test_when_nobody_listens_any_more_what_is_under_way_is_asked_to_stop() -> None:
    stop, asked = Stop(), threading.Event()
    stop.on_request(asked.set)

    def work(number: int) -> int:
        if number:
            asked.wait(SECONDS)
            stop.raise_if_set()
        return number

    results = Local(4, stop).run(work, range(100))
    assert next(results) == (0, 0)
    results.close()  # type: ignore[attr-defined]
    assert stop.is_set


def test_what_was_stopped_is_not_handed_out_and_what_was_finished_is() -> None:
    stop = Stop()

    def work(number: int) -> int:
        if number == 1:
            stop.request("the disk is full")
        return number

    found = list[int]()
    with pytest.raises(Stopped, match="the disk is full"):
        found.extend(job for job, _ in Local(1, stop).run(work, range(50)))
    assert found == [0, 1]


def test_signals_are_as_they_were_afterwards() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    assert dict(Local(1, Stop()).run(lambda job: job, [1])) == {1: 1}
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before
