"""How many questions are under way at once: what the provider can take, in order, and never fewer than one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.chat import REFUSALS, Backoff, Message, Overload, Sampling
from retrial.errors import ModelError, Stopped
from retrial.executors.limiter import AdaptiveLimit, FairLimiter
from retrial.models.endpoints import Endpoint
from retrial.models.openai import OpenAIModel
from retrial.models.retry import Patience
from retrial.predict.metering.driver_service import Budget, DriverService
from retrial.predict.metering.model_session import ModelSession, TaskLedger
from retrial.store.runs import Run
from retrial.system.shutdown import Stop
from tests.support.servers import Answer, Asked, Behaviour, ChatServer, reply, status

SECONDS = 60
"""More than anything here takes, however busy the machine."""
TOO_FAST = Backoff(load=Overload.RATE, why="the provider limits the rate", seconds=0.0, everybody=True)


def trouble(load: Overload, seconds: float = 0.0) -> Backoff:
    return Backoff(load=load, why="the provider limits the rate", seconds=seconds, everybody=True)


class Meeting:
    """A server's own limit: who comes while too many are there is sent away."""

    def __init__(self, most: int) -> None:
        self._most, self._there, self._lock = most, 0, threading.Lock()
        self.peak = self.refused = self.answered = 0

    def __call__(self, asked: Asked) -> Answer:
        with self._lock:
            if self._there >= self._most:
                self.refused += 1
                return status(429, "slow down", headers={"retry-after-ms": "5"})
            self._there += 1
            self.peak = max(self.peak, self._there)
        time.sleep(0.01)  # what an answer takes
        with self._lock:
            self._there -= 1
            self.answered += 1
        return reply("fine")


class Bucket:
    """A server's own limit: so many a second, and a few more at once."""

    def __init__(self, a_second: float, most: float) -> None:
        self._rate, self._most, self._tokens, self._at = a_second, most, most, time.monotonic()
        self._lock = threading.Lock()
        self.refused = self.answered = 0

    def __call__(self, asked: Asked) -> Answer:
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._most, self._tokens + self._rate * (now - self._at))
            self._at = now
            if self._tokens < 1:
                self.refused += 1
                wait = 1000 * (1 - self._tokens) / self._rate
                return status(429, "slow down", headers={"retry-after-ms": f"{wait:.3f}"})
            self._tokens -= 1
            self.answered += 1
        return reply("fine")


class Asking:
    """Tasks that ask one model through one driver."""

    def __init__(self, folder: Path, model: OpenAIModel, at_once: int) -> None:
        self.stop, self._model = Stop(), model
        self.turns = FairLimiter(at_once, self.stop)
        self._driver = DriverService(Run(folder, "r"), Budget(None), self.turns, self.stop)

    def ask(self, task: int) -> str:
        how = Sampling(temperature=0.0, seed=0, max_tokens=10, seconds=SECONDS)
        chat = ModelSession(self._model, None, how, TaskLedger(f"t-{task}", self._driver), 1)
        return chat.ask((Message(role="user", content=str(task)),)).text


@contextmanager
def asking(folder: Path, at_once: int, *behaviours: Behaviour) -> Iterator[Asking]:
    with ChatServer(behaviours) as server:
        endpoint = Endpoint(title="the provider", base_url=server.url, model="m")
        model = OpenAIModel(name="m", endpoint=endpoint, patience=Patience(base_delay=0.01))
        with closing(model):
            yield Asking(folder, model, at_once)


def all_of(work: Callable[[int], str], tasks: int, workers: int) -> list[str]:
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, range(tasks)))


def test_a_limit_of_questions_at_once_is_found_and_kept_to(tmp_path: Path) -> None:
    server = Meeting(5)
    with asking(tmp_path, 40, server) as them:
        assert all_of(them.ask, 400, 40) == ["fine"] * 400
    assert server.answered == 400
    assert server.peak == 5
    # The first forty at once, the halves after that, and now and then one more, to see whether it goes.
    assert server.refused < 200


def test_a_limit_of_questions_a_second_is_found_and_kept_to(tmp_path: Path) -> None:
    server = Bucket(a_second=200, most=5)
    with asking(tmp_path, 40, server) as them:
        assert all_of(them.ask, 400, 40) == ["fine"] * 400
    assert server.answered == 400
    assert server.refused < 200


def test_all_tasks_wait_for_what_the_provider_asks_for_and_none_fails(tmp_path: Path) -> None:
    """However often it refuses: as long as somebody is answered, there is hope."""
    turn = iter(range(10_000))

    def every_other(asked: Asked) -> Answer:
        return reply("fine") if next(turn) % 2 else status(429, headers={"Retry-After": "0"})

    with asking(tmp_path, 8, every_other) as them:
        assert all_of(them.ask, 6, 3) == ["fine"] * 6


def test_a_provider_that_answers_nobody_is_given_up(tmp_path: Path) -> None:
    with asking(tmp_path, 4, status(429, "not today", headers={"Retry-After": "0"})) as them:
        with pytest.raises(ModelError, match="limits the rate of requests after 8 tries"):
            them.ask(1)
        # What it held is free again.
        assert [them.turns.begin().whom for _ in range(4)] == [""] * 4


def test_one_who_waits_for_a_provider_ends_when_stopped(tmp_path: Path) -> None:
    refused = threading.Event()

    def later(asked: Asked) -> Answer:
        refused.set()
        return status(429, headers={"Retry-After": "500"})

    with asking(tmp_path, 2, later) as them, ThreadPoolExecutor(2) as pool:
        first = pool.submit(them.ask, 1)
        assert refused.wait(SECONDS)
        second = pool.submit(them.ask, 2)
        them.stop.request("enough")
        for future in (first, second):
            assert isinstance(future.exception(SECONDS), Stopped)


def test_one_models_limit_is_not_anothers() -> None:
    turns = FairLimiter(4, Stop())
    assert turns.next_try(turns.begin("a"), trouble(Overload.RATE)) is not None
    first = turns.begin("b")
    assert turns.slowed.startswith("asking a 1 at once of 4")
    assert [turns.begin("b").whom for _ in range(2)] == ["b", "b"]
    turns.end(first)


def begun(turns: FairLimiter, pool: ThreadPoolExecutor, log: list[int], number: int) -> Future[None]:
    """One more who waits for a turn, and is known to."""

    def take() -> None:
        turns.begin()
        log.append(number)

    before = waiting(turns)
    future = pool.submit(take)
    while waiting(turns) == before and not future.done():
        time.sleep(0.001)
    return future


def until_waiting(turns: FairLimiter, number: int) -> None:
    while waiting(turns) < number:
        time.sleep(0.001)


def waiting(turns: FairLimiter) -> int:
    return sum(len(line.waiting) for line in turns._lines.values())


def test_who_came_first_is_first_and_each_end_wakes_one() -> None:
    turns, order = FairLimiter(1, Stop()), list[int]()
    held = turns.begin()
    with ThreadPoolExecutor(20) as pool:
        futures = [begun(turns, pool, order, number) for number in range(20)]
        for number, future in enumerate(futures):
            turns.end(held)
            future.result(SECONDS)
            assert order == list(range(number + 1))


def test_one_that_is_tried_again_comes_before_those_who_wait() -> None:
    turns, order = FairLimiter(1, Stop()), list[int]()
    held = turns.begin()
    with ThreadPoolExecutor(1) as pool:
        other = begun(turns, pool, order, 1)
        again = turns.next_try(held, trouble(Overload.RATE))
        assert again is not None
        assert order == []
        turns.end(again)
        other.result(SECONDS)


def test_when_all_have_failed_and_wait_somebody_looks_at_the_clock() -> None:
    """The older one waits while the other is still under way: it must learn of the new time."""
    turns = FairLimiter(2, Stop())
    older, younger = turns.begin(), turns.begin()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(turns.next_try, older, trouble(Overload.RATE))
        until_waiting(turns, 1)
        second = pool.submit(turns.next_try, younger, trouble(Overload.RATE, 0.1))
        again = first.result(SECONDS)
        assert again is not None
        turns.end(again)
        assert second.result(SECONDS) is not None


def test_one_without_hope_leaves_its_turn_to_the_next() -> None:
    turns = FairLimiter(1, Stop())
    held, order = turns.begin(), list[int]()
    with ThreadPoolExecutor(1) as pool:
        other = begun(turns, pool, order, 1)
        refused = replace(held, refusals=REFUSALS)
        assert turns.next_try(refused, trouble(Overload.RATE, 0.1)) is None
        other.result(SECONDS)


def test_nobody_begins_after_a_stop() -> None:
    stop = Stop()
    turns, order = FairLimiter(1, stop), list[int]()
    held = turns.begin()
    with ThreadPoolExecutor(1) as pool:
        other = begun(turns, pool, order, 1)
        with turns._lock:
            # So that it cannot have heard of it before there is a turn for it.
            stop._asked.set()
            stop.reason = "enough"
        turns.end(held)
        turns._wake_all()
        assert isinstance(other.exception(SECONDS), Stopped)
    assert order == []


def test_a_stop_wakes_everybody() -> None:
    stop = Stop()
    turns = FairLimiter(1, stop)
    turns.begin()
    with ThreadPoolExecutor(100) as pool:
        futures = [begun(turns, pool, [], number) for number in range(100)]
        stop.request("enough")
        assert all(isinstance(future.exception(SECONDS), Stopped) for future in futures)
    with pytest.raises(Stopped, match="enough"):
        turns.begin()


def test_without_room_one_goes_on() -> None:
    turns = FairLimiter(4, Stop(), room=lambda: False)
    held, order = turns.begin(), list[int]()
    with ThreadPoolExecutor(1) as pool:
        other = begun(turns, pool, order, 1)
        assert order == []
        turns.end(held)
        other.result(SECONDS)


def test_a_burst_of_refusals_counts_once() -> None:
    pace = AdaptiveLimit(40)
    for _ in range(40):
        pace.begin(0.0)
    for _ in range(30):
        pace.on_failure(TOO_FAST, 0.0, 1.0)
        pace.end()
    assert pace.allowed == 20
    pace.begin(2.0)
    pace.on_failure(TOO_FAST, 2.0, 3.0)
    # Of the eleven that were under way then.
    assert pace.allowed == 5


def test_nobody_begins_before_the_time_that_the_provider_asks_for() -> None:
    pace = AdaptiveLimit(4)
    pace.begin(0.0)
    pace.on_failure(trouble(Overload.RATE, 7.0), 0.0, 1.0)
    pace.end()
    assert (pace.free(7.9), pace.opens_in(7.0), pace.free(8.0)) == (False, 1.0, True)


def test_it_grows_back_to_all_of_them_and_not_beyond() -> None:
    pace, now, seen = AdaptiveLimit(50), 0.0, list[int]()
    pace.begin(now)
    pace.on_failure(TOO_FAST, now, now)
    pace.end()
    while not pace.full:
        now += 1.0
        pace.begin(now)
        pace.on_success(now, now + 0.5)
        pace.end()
        seen.append(pace.allowed)
        assert len(seen) < 5_000
    assert seen == sorted(seen)
    assert pace.allowed == 50


@pytest.mark.parametrize(("load", "left"), [(Overload.RATE, 50), (Overload.STRAIN, 80), (Overload.NONE, 100)])
def test_strain_slows_more_gently_than_a_limit(load: Overload, left: int) -> None:
    pace = AdaptiveLimit(100)
    for _ in range(100):
        pace.begin(0.0)
    pace.on_failure(trouble(load), 0.0, 1.0)
    assert pace.allowed == left


def test_there_is_always_one() -> None:
    pace = AdaptiveLimit(3)
    for now in range(1, 40):
        pace.begin(float(now))
        pace.on_failure(trouble(Overload.STRAIN), float(now), now + 0.5)
        pace.end()
    assert pace.allowed == 1


def test_where_one_at_a_time_is_too_fast_there_is_a_pause_between_two() -> None:
    """A provider that takes one every ten seconds, and says so."""
    pace, now, ready, answered, refused = AdaptiveLimit(4), 0.0, 0.0, 0, 0
    while answered < 100:
        now += pace.opens_in(now)
        pace.begin(now)
        if now >= ready:
            ready, answered = now + 10.0, answered + 1
            pace.on_success(now, now + 0.1)
        else:
            refused += 1
            pace.on_failure(trouble(Overload.RATE, ready - now), now, now + 0.1)
        pace.end()
        now += 0.1
    assert refused < 25
    assert now < 1.25 * 100 * 10.0
