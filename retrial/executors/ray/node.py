"""The executor `ray` on one machine of a cluster: jobs and answers come in, results and questions go out.

What leaves is pickled by the thread that made it: a value that cannot be costs its own job alone.
"""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from retrial.errors import NotMeasured, RetrialError
from retrial.executors.local import caught, guarded
from retrial.protocols import WorkerNode
from retrial.system import run_log
from retrial.system.shutdown import Stop

T = TypeVar("T")

BEAT_SECONDS = 10.0
"""The driver hears something at least so often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeJob:
    """Something to work at, under a number of the driver's."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReply:
    """What a service of the driver's has returned, or raised."""

    number: int
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """Nothing new is to be started."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    number: int
    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call of a method of one of the driver's services."""

    number: int
    service: int
    method: str
    arguments: tuple[Any, ...]


class Node:
    """The actor of one machine, alone in its process."""

    def __init__(self) -> None:
        self._stop = Stop()
        self._work: Callable[[Any], Any] | None = None
        self._outgoing = SimpleQueue[bytes]()
        self._asked: dict[int, Future[Any]] = {}
        self._numbers = itertools.count()

    def here(self) -> None:
        """Returns as soon as the cluster has given us the machine's slots."""

    def begin(self, maker: bytes, slots: int, level: int) -> str:
        """Get ready, to log what is of that level; returns why nothing can be done here, in one sentence."""
        _NODES.append(self)
        _forward(_Forwarding(self._send), level)
        try:
            self._work = pickle.loads(maker)(WorkerNode(slots=slots, stop=self._stop))
        except RetrialError as error:
            return str(error)
        return ""

    def give(self, parcel: bytes) -> None:
        for each in pickle.loads(parcel):
            match each:
                case NodeJob():
                    threading.Thread(target=self._do, args=(each,), name="retrial", daemon=True).start()
                case ServiceReply(value=Exception() as error):
                    self._asked.pop(each.number).set_exception(error)
                case ServiceReply():
                    self._asked.pop(each.number).set_result(each.value)
                case Halt():
                    self._stop.request(each.reason)

    def take(self) -> list[bytes]:
        """All that there is to say; waits until there is something."""
        return drain(self._outgoing, BEAT_SECONDS)

    def end(self) -> None:
        """As a program ends, so that what it has made here is removed."""
        from ray.actor import exit_actor

        # Whoever waits for something to take is not waited for.
        self._send(None)
        exit_actor()

    def ask(self, service: int, method: str, *arguments: object) -> Any:
        """Waits for the driver's answer. If the driver is gone there will be none: then this process is ended too."""
        number, answer = next(self._numbers), Future[Any]()
        self._asked[number] = answer
        self._send(Question(number=number, service=service, method=method, arguments=arguments))
        return answer.result()

    def _do(self, job: NodeJob) -> None:
        assert self._work is not None
        result = _portable(guarded(self._work, job.value, self._stop))
        if error := caught(partial(self._send, Finished(number=job.number, result=result))):
            self._send(Finished(number=job.number, result=NotMeasured(f"its result cannot travel: {error}")))

    def _send(self, event: object) -> None:
        self._outgoing.put(pickle.dumps(event))


def drain(queue: SimpleQueue[T], seconds: float) -> list[T]:
    """All that is in it; waits no longer than that until there is something."""
    found: list[T] = []
    with suppress(Empty):
        found.append(queue.get(timeout=seconds))
        while True:
            found.append(queue.get_nowait())
    return found


_NODES: list[Node] = []
"""That of this process, once it has begun."""


class Distant:
    """A service of the driver's, as work on another machine meets it: its methods run in the driver's process."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method.startswith("__"):
            raise AttributeError(method)
        return partial(_NODES[-1].ask, self._number, method)


class _Forwarding(logging.Handler):
    """What is logged here is for the driver's log."""

    def __init__(self, send: Callable[[object], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        known = {
            name: value
            for name, value in vars(record).items()
            if isinstance(value, str | int | float | None) and not name.startswith("_")
        }
        trace = {"traceback": logging.Formatter().formatException(record.exc_info)} if record.exc_info else {}
        said = {"msg": record.getMessage(), "args": (), "host": os.uname().nodename}
        self._send(logging.makeLogRecord({**known, **run_log.fields(), **trace, **said}))


def _forward(handler: logging.Handler, level: int) -> None:
    ours = logging.getLogger("retrial")
    ours.handlers, ours.propagate = [handler], False
    ours.setLevel(level)


def _portable(result: Any) -> Any:
    """Errors of others often cannot be made again from what they are pickled as."""
    if not isinstance(result, Exception) or isinstance(result, RetrialError):
        return result
    travels = caught(partial(_travels, result)) is True
    return result if travels else NotMeasured(f"{type(result).__name__}: {result}")


def _travels(value: object) -> bool:
    """Raises: anything, if it does not."""
    pickle.loads(pickle.dumps(value))
    return True
