"""What every executor keeps to, run over every part in `retrial/executors/`."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from retrial import registry
from retrial.errors import BudgetSpent, NotMeasured, Stopped
from retrial.options import ReportOptions
from retrial.protocols import Context, Executor

REAL = {"ray": pytest.mark.real}
"""Those that need something to be started first."""


@pytest.fixture(params=[pytest.param(name, marks=REAL.get(name, ())) for name in registry.names("executors")])
def executor(request: pytest.FixtureRequest) -> Executor:
    options = None
    if request.param == "ray":
        options = ReportOptions(ray_address=request.getfixturevalue("cluster").address)
    part: Executor = registry.module("executors", request.param).make(Context(options=options, workers=2))
    return part


@pytest.mark.smoke
def test_every_job_gives_its_result_once(executor: Executor) -> None:
    assert sorted(executor.run(lambda number: number * number, range(50))) == [(n, n * n) for n in range(50)]


@pytest.mark.smoke
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


class Gate:
    """What jobs come to, wherever they run, and wait at."""

    def __init__(self) -> None:
        self._arrived, self._opened = threading.Semaphore(0), threading.Event()

    def pass_through(self) -> None:
        self._arrived.release()
        assert self._opened.wait(60)

    def open(self) -> None:
        self._opened.set()

    def interrupt(self, number: int) -> None:
        """When so many have come."""
        for _ in range(number):
            self._arrived.acquire()
        os.kill(os.getpid(), signal.SIGINT)
        self._opened.set()


def test_an_interrupt_hands_out_what_was_running_and_starts_nothing_more(executor: Executor) -> None:
    gate = Gate()
    shared = executor.share(gate)

    def work(number: int) -> int:
        shared.pass_through()
        return number

    thread = threading.Thread(target=gate.interrupt, args=(2,))
    thread.start()
    found = []
    with pytest.raises(KeyboardInterrupt):
        for job, _ in executor.run(work, range(MANY)):
            found.append(job)
    thread.join()
    assert {0, 1} <= set(found)
    assert len(found) < MANY


class Till:
    """Counts, and refuses."""

    def __init__(self) -> None:
        self.lock, self.sum = threading.Lock(), 0

    def add(self, number: int) -> int:
        if number < 0:
            raise BudgetSpent(f"{number} is not enough")
        with self.lock:
            self.sum += number
            return self.sum


def test_what_is_shared_is_one_thing_for_all_jobs_and_its_errors_are_its_own(executor: Executor) -> None:
    till = Till()
    shared = executor.share(till)

    def work(number: int) -> int:
        return shared.add(number)

    results = dict(executor.run(work, range(-1, 20)))
    assert isinstance(results[-1], BudgetSpent)
    assert str(results.pop(-1)) == "-1 is not enough"
    assert till.sum == sum(range(20)) == max(number for number in results.values() if isinstance(number, int))


def test_a_call_that_waits_keeps_no_other_from_being_answered(executor: Executor) -> None:
    gate = Gate()
    shared = executor.share(gate)

    def work(number: int) -> int:
        # The first waits for the second.
        shared.pass_through() if number == 0 else shared.open()
        return number

    assert sorted(executor.run(work, range(2))) == [(0, 0), (1, 1)]


def test_whatever_a_job_dies_of_is_its_result(executor: Executor) -> None:
    """Nobody would wait for anything else than a result."""

    def work(number: int) -> int:
        if number == 1:
            raise SystemExit("a library ends its thread")
        return number

    results = dict(executor.run(work, range(4)))
    assert sorted(results) == [0, 1, 2, 3]
    assert isinstance(results[1], NotMeasured)
    assert str(results[1]) == "SystemExit: a library ends its thread"


def test_work_that_was_stopped_is_not_handed_out(executor: Executor) -> None:
    def work(number: int) -> int:
        if number % 2:
            raise Stopped("there is no room")
        return number

    assert sorted(executor.run(work, range(6))) == [(0, 0), (2, 2), (4, 4)]
