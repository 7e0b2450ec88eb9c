"""A real HTTP server on a loopback port that speaks the chat-completions protocol as a test's script says.

    with ChatServer([status(500), reply("fine")]) as server:
        …  # ask server.url; server.requests holds what was asked

The behaviours are used one for each request; the last one stays. A stalled reply ends when the server is closed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server does with one request."""

    status: int = 200
    headers: Mapping[str, str] | None = None
    content: bytes = b""
    cut: int = 0
    """So many bytes at the end are announced but never sent: the connection is torn."""
    stall: bool = False
    """Nothing is sent before the server closes."""
    drip: bool = False
    """Blanks are sent until the server closes, as gateways do to keep a connection alive."""


Behaviour = Answer | Callable[[Asked], Answer]


def reply(
    text: str = "Hello.", *, finish: str = "stop", usage: Mapping[str, object] | None = None, **message: object
) -> Answer:
    """A whole reply; further arguments go into its message."""
    counted = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15} if usage is None else dict(usage)
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    return json_answer({"id": "chat-1", "object": "chat.completion", "choices": [choice], "usage": counted})


def json_answer(data: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(status=status, headers=headers, content=json.dumps(data).encode())


def status(number: int, message: str = "no", /, *, headers: Mapping[str, str] | None = None, **error: object) -> Answer:
    """An error as OpenAI words it; further arguments go into the error object (`code`, `type`, `param`)."""
    return json_answer({"error": {"message": message, **error}}, status=number, headers=headers)


def torn(text: str = "Hello.") -> Answer:
    """A reply whose connection breaks before its end."""
    return Answer(content=reply(text).content, cut=30)


def stalled() -> Answer:
    return Answer(stall=True)


class ChatServer:
    """Listens from `with` to its end; `requests` are all that arrived, in order."""

    def __init__(self, behaviours: Sequence[Behaviour] = ()) -> None:
        self._behaviours = list(behaviours) or [reply()]
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.requests: list[Asked] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._http = _Http(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def _next(self, asked: Asked) -> Answer:
        with self._lock:
            self.requests.append(asked)
            behaviour = self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]
        return behaviour if isinstance(behaviour, Answer) else behaviour(asked)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = outer._next(Asked(path=self.path, headers=headers, body=json.loads(content)))
                if answer.stall:
                    outer._closing.wait()
                    return
                _send(self, answer, outer._closing)

            def log_message(self, format: str, *args: object) -> None:
                """Tests read requests, not the log."""

        return Handler


class _Http(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that give up on a stalled reply are part of the script."""


def _send(handler: BaseHTTPRequestHandler, answer: Answer, closing: threading.Event) -> None:
    handler.send_response(answer.status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Connection", "close")
    for name, value in (answer.headers or {}).items():
        handler.send_header(name, value)
    if not answer.drip:
        handler.send_header("Content-Length", str(len(answer.content)))
    handler.end_headers()
    while answer.drip and not closing.wait(0.01):
        handler.wfile.write(b" ")
    handler.wfile.write(answer.content[: len(answer.content) - answer.cut])
