"""What every executor keeps to, run over every part in `retrial/executors/`."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from retrial import registry
from retrial.protocols import Context, Executor


@pytest.fixture(params=registry.names("executors"))
def executor(request: pytest.FixtureRequest) -> Executor:
    part: Executor = registry.module("executors", request.param).make(Context(options=None, workers=2))
    return part


def test_every_job_gives_its_result_once(executor: Executor) -> None:
    assert sorted(executor.run(lambda number: number * number, range(50))) == [(n, n * n) for n in range(50)]


def test_a_failure_is_a_value_and_the_others_go_on(executor: Executor) -> None:
    def work(number: int) -> int:
        if number == 3:
            raise RuntimeError("three")
        return number

    results = dict(executor.run(work, range(6)))
    assert isinstance(results.pop(3), RuntimeError)
    assert results == {number: number for number in (0, 1, 2, 4, 5)}


def test_no_jobs_are_no_results(executor: Executor) -> None:
    assert list(executor.run(lambda job: job, [])) == []


MANY = 20_000
"""More than can be done, however little each takes, before the main thread hears of a signal."""


def test_an_interrupt_hands_out_what_was_running_and_starts_nothing_more(executor: Executor) -> None:
    running, asked = threading.Semaphore(0), threading.Event()

    def work(number: int) -> int:
        running.release()
        asked.wait(60)
        return number

    def interrupt() -> None:
        running.acquire()
        running.acquire()
        os.kill(os.getpid(), signal.SIGINT)
        asked.set()

    thread = threading.Thread(target=interrupt)
    thread.start()
    found = []
    with pytest.raises(KeyboardInterrupt):
        for job, _ in executor.run(work, range(MANY)):
            found.append(job)
    thread.join()
    assert {0, 1} <= set(found)
    assert len(found) < MANY
