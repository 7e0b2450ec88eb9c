"""Jobs to the nodes of a Ray cluster, results from them, and answers to what they ask of this process.

One thread does everything but the calls of services: those may wait, and have threads of their own.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any

from retrial.errors import NotMeasured
from retrial.executors.local import caught
from retrial.executors.ray.fleet import Fleet, Member
from retrial.executors.ray.node import Finished, Halt, NodeJob, Question, ServiceReply, drain
from retrial.protocols import Stop
from retrial.system.console import say

LOSSES = 3
"""A job that was lost so often may be what loses nodes."""
BEAT_SECONDS = 0.2
"""How soon a stop is noticed."""
CALLS = 4096
"""Of services at once; each job under way has one at most."""
UNREAD = 256
"""So many results that nobody has taken yet, and no more jobs are given out."""


class Dispatch:
    """`lost(job)` of a service, if it has that, is called for jobs whose worker is lost."""

    def __init__(
        self, maker: bytes, jobs: Iterable[Any], services: Sequence[Any], stop: Stop, *, workers: int, most_slots: int
    ) -> None:
        self._services, self._stop, self._workers = services, stop, workers
        self._todo = (NodeJob(number=number, value=value) for number, value in enumerate(jobs))
        self._again = deque[NodeJob]()
        self._suspects = deque[NodeJob]()
        """If they are lost once more, it is nobody else's doing: they are done alone, and last."""
        self._losses = Counter[int]()
        self._open = 0
        """Jobs that were begun and have no result."""
        self._exhausted = self._closed = self._halted = False
        self._said = set[str]()
        self._news = SimpleQueue[Callable[[], object]]()
        self._done = SimpleQueue[tuple[Any, Any] | None]()
        self._fleet = Fleet(maker, most_slots, later=self._news.put, hear=self._hear, lose=self._settle)
        self._calls = ThreadPoolExecutor(CALLS, "retrial-service")
        self._own = ThreadPoolExecutor(1, "retrial-ray")

    def __enter__(self) -> Dispatch:
        self._ends = self._own.submit(self._run)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ends.done():
            self._closed = True
            self._stop.request("nobody takes the results")
        self._own.shutdown()
        self._calls.shutdown(wait=False, cancel_futures=True)

    def results(self) -> Iterator[tuple[Any, Any]]:
        """As they come. Raises: UsageError."""
        while (found := self._done.get()) is not None:
            yield found
        self._ends.result()

    def _run(self) -> None:
        # Without any there is nobody to be woken.
        self._again.extend(filter(None, [self._next()]))
        try:
            while not (self._closed or self._nothing_left()):
                self._fleet.look_around()
                self._hand_out()
                self._halt()
                self._fleet.flush()
                for heed in drain(self._news, BEAT_SECONDS):
                    heed()
        finally:
            self._fleet.dismiss()
            self._done.put(None)

    def _nothing_left(self) -> bool:
        if not self._stop.is_set:
            return self._exhausted and not self._open
        # What is lost while we stop is left to the next go.
        return self._open == len(self._again) + len(self._suspects)

    def _hand_out(self) -> None:
        members = self._fleet.members
        slots = sum(member.machine.slots for member in members)
        while self._done.qsize() < UNREAD and not self._stop.requested:
            free = {member.free(self._workers, slots): member for member in members}
            if members and max(free) <= 0:
                return
            job = self._next()
            if job is None:
                self._test_suspects()
                return
            if members:
                free[max(free)].give(job)
            else:
                self._finish(job, NotMeasured(f"no node of the Ray cluster can do it: {self._fleet.why_none}"))

    def _next(self) -> NodeJob | None:
        if self._again:
            return self._again.popleft()
        if self._suspects and not self._fleet.members:
            return self._suspects.popleft()
        job = None if self._exhausted else next(self._todo, None)
        self._exhausted = job is None
        self._open += job is not None
        return job

    def _test_suspects(self) -> None:
        for member in self._fleet.members:
            if self._suspects and member.ready and not member.jobs:
                member.give(self._suspects.popleft())

    def _finish(self, job: NodeJob, result: Any) -> None:
        self._open -= 1
        self._done.put((job.value, result))

    def _halt(self) -> None:
        if self._stop.is_set and not self._halted:
            self._halted = True
            for member in self._fleet.members:
                member.send(Halt(reason=self._stop.reason))

    def _hear(self, member: Member, event: Finished | Question | logging.LogRecord) -> None:
        match event:
            case Finished():
                self._finish(member.jobs.pop(event.number), event.result)
                self._fleet.trust(member)
            case Question():
                member.calls += 1
                self._calls.submit(self._serve, member, event)
            case logging.LogRecord():
                self._log(member, event)

    def _serve(self, member: Member, question: Question) -> None:
        method = getattr(self._services[question.service], question.method)
        value = caught(partial(method, *question.arguments))
        self._news.put(partial(self._answer, member, ServiceReply(number=question.number, value=value)))

    def _answer(self, member: Member, answer: ServiceReply) -> None:
        member.calls -= 1
        if member.gone:
            self._settle(member)
        else:
            member.send(answer)

    def _settle(self, member: Member) -> None:
        """Of one who is lost: nobody else has its jobs before all that was asked for them has come to an end."""
        for service in self._services:
            for job in member.jobs.values() if hasattr(service, "lost") else ():
                service.lost(job.value)
        if member.calls:
            return
        for job in member.jobs.values():
            self._losses[job.number] += 1
            if self._losses[job.number] >= LOSSES:
                self._finish(job, NotMeasured(f"whoever worked at it was lost, {LOSSES} times: see the log of the run"))
            elif self._losses[job.number] == LOSSES - 1:
                self._suspects.append(job)
            else:
                self._again.append(job)
        member.jobs.clear()

    def _log(self, member: Member, record: logging.LogRecord) -> None:
        """What nodes say to people is said once, whoever says it first."""
        if record.name == say.__module__ and record.msg not in self._said:
            self._said.add(record.msg)
            say(f"node {member.machine.name}: {record.msg}")
        else:
            logging.getLogger(record.name).handle(record)
