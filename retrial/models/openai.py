"""Any endpoint that speaks OpenAI's chat-completions protocol, through the official client.

Calls under way can be ended from another thread: when their time is over, or all at once.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from retrial.chat import Json, Reply, Request
from retrial.errors import UsageError
from retrial.models import bodies, wire
from retrial.models.endpoints import Endpoint, resolve
from retrial.models.failures import Failure, from_status
from retrial.models.prices import Price, price
from retrial.models.retry import PATIENT, Asking, Patience
from retrial.protocols import ModelContext

if TYPE_CHECKING:
    import httpx2
    import openai


class OpenAIModel:
    """One model at one endpoint; may be asked from many threads."""

    def __init__(
        self,
        *,
        name: str,
        endpoint: Endpoint,
        price: Price | None = None,
        extra: Mapping[str, Json] | None = None,
        patience: Patience = PATIENT,
    ) -> None:
        self.name = name
        self._endpoint = endpoint
        self._price = price
        self._asking = Asking(name, endpoint, extra or {}, patience)
        self._client: openai.OpenAI | None = None
        self._lock = threading.Lock()
        self._connections = Connections()

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when no whole answer could be had within the request's time."""
        return self._asking.complete(request, self._ask)

    def close(self) -> None:
        """End calls under way and waits, with ModelError in their threads; safe to call twice."""
        self._asking.closed.set()  # also when there is no client yet
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            _end(self._asking.closed, self._connections, client)

    def _ask(self, sent: dict[str, Json], seconds: float) -> Reply | Failure:
        self._connect()  # before the clock starts: the first time a large package is imported
        with self._connections.within(seconds) as call:
            outcome = self._send(sent, seconds)
            # Where a response has no length, its end may be that it was cut.
            return Failure(kind="timeout", detail=f"a try of {seconds:.1f} s") if call.was_cut else outcome

    def _send(self, sent: dict[str, Json], seconds: float) -> Reply | Failure:
        import httpx2
        import openai

        try:
            return wire.read(self._body(sent, seconds), self._price)
        except openai.APIStatusError as error:
            return from_status(error.status_code, error.response.headers, wire.explain(error.body))
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            return _broken(error.__cause__ or error, seconds)
        except openai.APIError as error:
            return Failure(kind="torn", detail=error.message)
        except bodies.OverLimit as error:
            return Failure(kind="limits", detail=str(error))
        except bodies.Redirected as error:
            return Failure(kind="redirect", detail=str(error))
        except RuntimeError as error:
            if not self._asking.closed.is_set():
                raise
            return Failure(kind="connection", detail=str(error))

    def _body(self, sent: dict[str, Json], seconds: float) -> bytes:
        create: Callable[..., Any] = self._connect().chat.completions.with_streaming_response.create
        known = {name: sent.pop(name) for name in ("model", "messages")}
        with create(**known, extra_body=sent, timeout=seconds) as response:
            return b"".join(response.iter_bytes())

    def _connect(self) -> openai.OpenAI:
        import openai

        with self._lock:
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key=self._endpoint.key or "none",
                    base_url=self._endpoint.base_url,
                    max_retries=0,
                    http_client=self._connections.client(trust_env=not self._endpoint.loopback),
                )
                if not self._endpoint.is_openai:
                    # The client takes these from OpenAI's own variables and would send them to any endpoint.
                    self._client.organization = self._client.project = self._client.admin_api_key = None
                    self._client._custom_headers = {}
                # At the program's end this may run first, and a closed socket can no longer be shut down.
                weakref.finalize(self, _end, self._asking.closed, self._connections, self._client)
            return self._client


class Sockets:
    """Sockets as they are opened.

    Closing a socket does not wake a thread that reads from it; shutting it down does.
    """

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
        self.all = Sockets()
        """Of all calls under way, and of those that begin later."""
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

    def _follow(self, request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, "trace": self._see}

    def _see(self, event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            opened = info["return_value"].get_extra_info("socket")
            self.all.add(opened)
            self._calls.sockets.add(opened)


def _broken(cause: BaseException, seconds: float) -> Failure:
    """A connection that did not come about, or not to its end: then the reply was perhaps on its way."""
    import httpx2

    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return Failure(kind="connection", detail=str(cause))
    if isinstance(cause, httpx2.TimeoutException):
        return Failure(kind="timeout", detail=f"a try of {seconds:.1f} s")
    if isinstance(cause, httpx2.TooManyRedirects):
        return Failure(kind="redirect", detail="in a loop")
    return Failure(kind="torn", detail=str(cause))


def _end(closed: threading.Event, connections: Connections, client: openai.OpenAI) -> None:
    closed.set()
    connections.all.cut()
    client.close()


def _shut_down(one: socket.socket) -> None:
    with suppress(OSError):  # it is closed already
        one.shutdown(socket.SHUT_RDWR)


def make(context: ModelContext) -> OpenAIModel:
    """Raises: UsageError when the name leads nowhere or its key is not set."""
    if importlib.util.find_spec("openai") is None:
        raise UsageError(f"Model '{context.name}' needs the package 'openai': pip install openai")
    options = context.options
    return OpenAIModel(
        name=context.name,
        endpoint=resolve(context.name, options.api_base, os.environ),
        price=price(context.name, options.price),
        extra=options.extra,
        patience=Patience(try_seconds=options.try_seconds),
    )
