"""An HTTP client whose calls under way can be ended from another thread: when their time is over, or all at once.

Closing a socket does not wake a thread that reads from it; shutting it down does.
"""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from retrial.models import bodies

if TYPE_CHECKING:
    import httpx2


class Sockets:
    """Sockets as they are opened."""

    def __init__(self) -> None:
        self._opened: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()
        self.was_cut = False

    def add(self, one: socket.socket) -> None:
        with self._lock:
            self._opened.add(one)
            late = self.was_cut
        if late:
            _shut_down(one)

    def cut(self) -> None:
        """End whatever is under way; readers see the end of the stream."""
        with self._lock:
            self.was_cut = True
            opened = list(self._opened)
        for one in opened:
            _shut_down(one)


class Connections:
    """The connections of one client. Each call opens its own, so that its time can be limited as a whole: a read
    timeout does not end a response that arrives byte by byte."""

    def __init__(self) -> None:
        self._all = Sockets()
        self._calls = threading.local()

    def client(self, *, trust_env: bool) -> httpx2.Client:
        """`trust_env` off: a proxy for the outside must not be asked for this machine."""
        import httpx2
        import openai

        return openai.DefaultHttpxClient(
            trust_env=trust_env,
            event_hooks={"request": [self._follow], "response": [bodies.limit]},
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
            max_redirects=bodies.REDIRECTS,
        )

    @contextmanager
    def within(self, seconds: float) -> Iterator[Sockets]:
        """The call that this thread makes inside is cut when so much time is over; the result says whether it was."""
        call = self._calls.sockets = Sockets()
        clock = threading.Timer(seconds, call.cut)
        clock.daemon = True
        clock.start()
        try:
            yield call
        finally:
            clock.cancel()

    def cut(self) -> None:
        """End all calls under way, and those that begin later."""
        self._all.cut()

    def _follow(self, request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, "trace": self._see}

    def _see(self, event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            opened = info["return_value"].get_extra_info("socket")
            self._all.add(opened)
            self._calls.sockets.add(opened)


def _shut_down(one: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        one.shutdown(socket.SHUT_RDWR)
