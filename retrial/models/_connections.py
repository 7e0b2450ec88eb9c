"""An HTTP client whose calls under way can be ended from another thread.

Closing a socket does not wake a thread that reads from it; shutting it down does.
"""

from __future__ import annotations

import socket
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2


class Connections:
    """The sockets of one client, as they are opened."""

    def __init__(self) -> None:
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._lock = threading.Lock()

    def client(self, *, trust_env: bool) -> httpx2.Client:
        """`trust_env` off: a proxy for the outside must not be asked for this machine."""
        import openai

        return openai.DefaultHttpxClient(trust_env=trust_env, event_hooks={"request": [self._follow]})

    def cut(self) -> None:
        """End whatever is under way; readers see the end of the stream."""
        with self._lock:
            opened = list(self._sockets)
        for one in opened:
            with suppress(OSError):  # it is closed already
                one.shutdown(socket.SHUT_RDWR)

    def _follow(self, request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, "trace": self._see}

    def _see(self, event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            with self._lock:
                self._sockets.add(info["return_value"].get_extra_info("socket"))
