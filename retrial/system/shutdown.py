"""Stopping with nothing lost: what is under way is finished and written, nothing new is started."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

from retrial.errors import ExitCode, Stopped
from retrial.system.console import say

if TYPE_CHECKING:
    from retrial import protocols

LOOK_SECONDS = 0.1
"""Between two looks at the disk and the lock. Each is ten calls of the system, and hundreds of threads ask."""
HEARD = (
    "Stopping: what is under way is finished and written, then the program ends. An agent with a program of its own "
    "(aider, command) works to its end. Ctrl-C again ends everything at once."
)


def signals() -> tuple[signal.Signals, ...]:
    """That ask us to stop: Ctrl-C, what queues and containers send before they kill, and the end of a terminal, unless
    that is to be outlived (`nohup`)."""
    outlived = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGINT, signal.SIGTERM, *(() if outlived else (signal.SIGHUP,)))


class Stop:
    """The `Stop` of `protocols.py` within one process. It can be requested once."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._watched = list[Callable[[], str]]()
        self._wakers = list[Callable[[], None]]()
        self._next_look = 0.0
        self.reason = ""
        self.interrupted = False

    def watch(self, why: Callable[[], str]) -> None:
        self._watched.append(why)

    def on_request(self, wake: Callable[[], None]) -> None:
        self._wakers.append(wake)

    @property
    def is_set(self) -> bool:
        return self._asked.is_set()

    @property
    def requested(self) -> bool:
        if self._asked.is_set():
            return True
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_SECONDS
        reason = next(filter(None, (why() for why in self._watched)), "")
        if reason and self.request(reason):
            say(f"Stopping: {reason}. What is under way is finished and written.")
        return self._asked.is_set()

    def wait(self, seconds: float) -> bool:
        return self._asked.wait(seconds)

    def request(self, reason: str) -> bool:
        if self._asked.is_set():
            return False
        self.reason = reason
        self._asked.set()
        for wake in self._wakers:
            wake()
        return True

    def raise_if_set(self) -> None:
        if self.requested:
            raise Stopped(self.reason)

    def end(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        if self._asked.is_set():
            raise Stopped(self.reason)


@contextmanager
def interruptible(stop: protocols.Stop) -> Iterator[None]:
    """While it lasts, the first Ctrl-C only asks to stop, and the next one ends the process."""
    # Signals reach the main thread alone.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    # A handler may interrupt whoever holds a lock, or prints: another thread does what there is to do.
    heard = SimpleQueue[bool]()

    def hear(number: int, frame: FrameType | None) -> None:
        if stop.interrupted and number == signal.SIGHUP:
            # Of one terminal that is closed, both the shell and the kernel tell.
            return
        if stop.interrupted:
            os._exit(ExitCode.INTERRUPTED)
        stop.interrupted = True
        heard.put(True)

    listener = threading.Thread(target=_listen, args=(heard, stop), name="retrial-signals", daemon=True)
    listener.start()
    before = {number: signal.signal(number, hear) for number in signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        heard.put(False)
        listener.join()


def _listen(heard: SimpleQueue[bool], stop: protocols.Stop) -> None:
    while heard.get():
        stop.request("interrupted")
        say("\n" + HEARD)
