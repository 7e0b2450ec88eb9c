"""How many questions are under way at once: fewer when a provider asks for it, more again afterwards."""

from __future__ import annotations

import threading

from retrial.stopping import Stop


class Turns:
    """A pool of questions; safe to use from many threads."""

    def __init__(self, most: int, stop: Stop) -> None:
        self._most = most
        self._stop = stop
        self._taken = 0
        self._free = threading.Condition()

    def begin(self) -> None:
        """Waits for a turn.

        Raises: Stopped.
        """
        with self._free:
            while self._taken >= self._most and not self._stop.asked:
                self._free.wait(1.0)
            self._stop.check()
            self._taken += 1

    def end(self) -> None:
        with self._free:
            self._taken -= 1
            self._free.notify()

    def slow(self, seconds: float | None) -> None:
        """A provider refused a question for coming too soon, and perhaps said how long to wait."""
