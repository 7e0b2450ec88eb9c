"""Stopping with nothing lost: what is under way is finished and written, nothing new is started."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from retrial.errors import Stopped
from retrial.program import INTERRUPTED

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what queues and containers send before they kill."""


class Stop:
    """Asked for at most once; whoever is about to start something looks at it."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self.reason = ""
        self.interrupted = False

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def ask(self, reason: str) -> None:
        if not self.asked:
            self.reason = reason
            self._asked.set()

    def check(self) -> None:
        """Raises: Stopped when nothing new may be started."""
        if self.asked:
            raise Stopped(self.reason)


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """While it lasts, the first Ctrl-C only asks to stop, and the next one ends the process."""
    # Signals reach the main thread alone.
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.interrupted:
            os._exit(INTERRUPTED)
        stop.interrupted = True
        stop.ask("interrupted")
        print("\nStopping: what is under way is finished and written; Ctrl-C again ends at once.", file=sys.stderr)

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
