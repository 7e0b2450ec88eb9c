"""A provider that breaks its protocol in every way we know of: one case for each exercise, over a real socket.

The question names the case: a task about `case_deep.py` gets the response of case `deep`. Where a case says so, it
answers as it should when it is asked again.
"""

from __future__ import annotations

import gzip
import json
import re
import socket
import socketserver
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.support.exercises import RIGHT
from tests.support.exercises import reply as whole_file

KEY = "sk-test-0123456789abcdef"
MEGABYTE = 1 << 20
EACH = {"prompt_tokens": 100, "completion_tokens": 50}
ESCAPE = "\x1b[2J"
FOUND = re.compile(rb"case_(\w+?)\.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`outcome` is what the task must come to: `resolved`, or `not measured`."""

    sent: Callable[[str], Iterator[bytes]]
    """Raw bytes of the response, for a module's name."""
    outcome: str = "resolved"
    recovers: bool = False
    """The second request gets a good reply."""
    billed: bool = True
    """Whether all that was put by for the first request stays counted."""
    hangs: bool = False
    """Nothing follows the last byte, and the connection stays open."""


def good(module: str, usage: object = EACH, **more: object) -> dict[str, Any]:
    message = {"role": "assistant", "content": whole_file(RIGHT, f"{module}.py")}
    return {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage, **more}


def response(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status}\r\n{lines}Connection: close\r\n\r\n".encode("latin-1") + body


def body(made: Callable[[str], object], **more: Any) -> Case:
    """A whole response with this JSON, or these bytes, in its body."""

    def sent(module: str) -> Iterator[bytes]:
        found = made(module)
        yield response(found if isinstance(found, bytes) else json.dumps(found).encode())

    return Case(sent=sent, **more)


def usage(numbers: object, *, billed: bool = True) -> Case:
    """A good reply, with this usage."""
    return body(lambda module: good(module, numbers), billed=billed)


def raw_usage(text: str) -> Case:
    return body(lambda module: json.dumps(good(module, "USAGE")).replace('"USAGE"', text).encode())


def refused(made: Callable[[str], object], **more: Any) -> Case:
    return body(made, outcome="not measured", **more)


def passing(*pieces: bytes, **more: Any) -> Case:
    """Raw bytes at first, and a good reply when it is asked again."""
    return Case(sent=lambda module: iter(pieces), recovers=True, **more)


def failing(*pieces: bytes, **more: Any) -> Case:
    return Case(sent=lambda module: iter(pieces), outcome="not measured", **more)


def endless(head: bytes, piece: bytes, **more: Any) -> Case:
    def sent(module: str) -> Iterator[bytes]:
        yield head
        while True:
            yield piece

    return Case(sent=sent, **{"outcome": "not measured", **more})


def message(content: object, **more: object) -> Callable[[str], object]:
    """A reply with this content."""

    def made(module: str) -> object:
        found = good(module)
        found["choices"][0]["message"] = {"role": "assistant", "content": content, **more}
        return found

    return made


def head(**headers: str) -> bytes:
    fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{fields}\r\n".encode()


def status(code: str, error: object = "no", **headers: str) -> bytes:
    return response(json.dumps({"error": {"message": error}}).encode(), code, **headers)


def inflating(size: int) -> Iterator[bytes]:
    """So many bytes of blanks, in little."""
    made = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(size // MEGABYTE):
        yield made.compress(b" " * MEGABYTE)
    yield made.flush()


def bomb(module: str) -> Iterator[bytes]:
    yield head(Content_Encoding="gzip", Connection="close")
    yield from inflating(2000 * MEGABYTE)


def error_bomb(module: str) -> Iterator[bytes]:
    yield head(Content_Encoding="gzip", Connection="close").replace(b"200 OK", b"500 Oh")
    yield from inflating(2000 * MEGABYTE)


def packed(module: str) -> Iterator[bytes]:
    yield response(gzip.compress(json.dumps(good(module)).encode()), Content_Encoding="gzip")


def dripping(module: str) -> Iterator[bytes]:
    yield head(Content_Length="100000")
    while True:
        threading.Event().wait(0.2)
        yield b" "


def dripping_head(module: str) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX-Slow: "
    while True:
        threading.Event().wait(0.2)
        yield b"y"


def informing(module: str) -> Iterator[bytes]:
    while True:
        threading.Event().wait(0.05)
        yield b"HTTP/1.1 103 Early Hints\r\n\r\n"


CHUNK = b"100000\r\n" + b" " * MEGABYTE + b"\r\n"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"' + b"x" * 100_000 + b'"}}]}\n\n'
NO_CALLS: Mapping[str, object] = {"prompt_tokens": 5, "completion_tokens": 1}

CASES: Mapping[str, Case] = {
    "good": usage(EACH, billed=False),
    # Numbers.
    "cost_nan": raw_usage('{"prompt_tokens": 1, "completion_tokens": 1, "cost": NaN}'),
    "cost_infinite": raw_usage('{"prompt_tokens": 1, "completion_tokens": 1, "cost": Infinity}'),
    "cost_minus_infinite": raw_usage('{"prompt_tokens": 1, "completion_tokens": 1, "cost": -Infinity}'),
    "cost_1e400": raw_usage('{"prompt_tokens": 1, "completion_tokens": 1, "cost": 1e400}'),
    "cost_1e308": usage({**NO_CALLS, "cost": 1e308}),
    "cost_long": usage({**NO_CALLS, "cost": 10**400}),
    "cost_negative": usage({**NO_CALLS, "cost": -100}),
    "cost_zero": usage({"prompt_tokens": 5, "completion_tokens": 8000, "cost": 0}, billed=False),
    "cost_list": usage({**NO_CALLS, "cost": [1]}, billed=False),
    "tokens_negative": usage({"prompt_tokens": -5, "completion_tokens": -1_000_000, "total_tokens": -3}),
    "tokens_10_400": usage({"prompt_tokens": 10**400, "completion_tokens": 10**400}),
    "tokens_10_30": usage({"prompt_tokens": 10**30, "completion_tokens": 10**30}),
    "tokens_6000_digits": raw_usage('{"prompt_tokens": %s, "completion_tokens": 1}' % ("9" * 6000)),
    "tokens_of_any_kind": usage({"prompt_tokens": 1.5e300, "completion_tokens": "lots"}),
    "tokens_true": usage({"prompt_tokens": True, "completion_tokens": None}),
    "total_10_400": usage({**NO_CALLS, "total_tokens": 10**400}),
    "cached_more": usage({**NO_CALLS, "prompt_tokens_details": {"cached_tokens": 10**7}}),
    "written_more": usage({**NO_CALLS, "cache_creation_input_tokens": 10**7}),
    "reasoning_10_400": usage({**NO_CALLS, "completion_tokens_details": {"reasoning_tokens": 10**400}}),
    "reasoning_more": usage({**NO_CALLS, "completion_tokens_details": {"reasoning_tokens": 10**7}}),
    "usage_missing": body(lambda module: {**good(module), "usage": None}),
    "usage_list": usage([1, 2]),
    # Sizes.
    "endless": endless(head(Transfer_Encoding="chunked"), CHUNK),
    "endless_sse": endless(head(Connection="close"), EVENT),
    "endless_text": endless(head(Connection="close") + b'{"choices":[{"message":{"content":"', b"x" * MEGABYTE),
    "endless_error": endless(head(Connection="close").replace(b"200 OK", b"500 Oh"), b"x" * MEGABYTE),
    "endless_redirect": endless(
        head(Connection="close", Location="/elsewhere").replace(b"200 OK", b"307 Go"), b"x" * MEGABYTE
    ),
    "gzip_bomb": Case(sent=bomb, outcome="not measured"),
    "gzip_bomb_in_error": Case(sent=error_bomb, outcome="not measured"),
    "gzip_twice": passing(response(gzip.compress(gzip.compress(b"{}")), Content_Encoding="gzip")),
    "gzip_not": passing(response(b"no gzip at all", Content_Encoding="gzip")),
    "gzip_good": Case(sent=packed, billed=False),
    "brotli": passing(response(b"\x8b\x02\x80{}\x03", Content_Encoding="br")),
    "large": refused(lambda module: good(module, more="x" * (5 * MEGABYTE))),
    "long_reply": body(message("word " * 400_000), outcome="unresolved", billed=False),
    "blank_lines": body(message("\n" * 1_500_000), outcome="unresolved", billed=False),
    "many_calls": body(
        message("", tool_calls=[{"function": {"name": "f", "arguments": "{}"}}] * 5000),
        outcome="unresolved",
        billed=False,
    ),
    "deep": refused(lambda module: b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "deep_objects": refused(lambda module: b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "deep_error": failing(response(b"[" * 500_000, "400 No"), billed=False),
    "many_values": refused(lambda module: b"[" + b"[]," * 1_000_000 + b"[]]"),
    "many_choices": refused(lambda module: {**good(module), "choices": [{}] * 300_000}),
    "many_headers": passing(
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"x-%d: %s\r\n" % (number, b"y" * 1000) for number in range(5000))
    ),
    "long_header": passing(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 5_000_000 + b"\r\n\r\n"),
    # Time.
    "drip": Case(sent=dripping, recovers=True),
    "drip_head": Case(sent=dripping_head, recovers=True),
    "informing": Case(sent=informing, recovers=True),
    "silent": passing(b"", hangs=True),
    "half": passing(head(Content_Length="5000") + b'{"choices"', hangs=True),
    # Shapes.
    "no_choices": passing(response(b'{"choices": [], "usage": {"prompt_tokens": 1}}')),
    "null_choices": passing(response(b'{"choices": null}')),
    "text_alone": passing(response(b'"hello"')),
    "html": passing(response(b"<html>no</html>")),
    "nothing": passing(response(b"")),
    "not_utf8": passing(response(b"\xff\xfe\xfd{}")),
    "nul": passing(response(b"\0" * 1000)),
    "number_as_content": body(message(12345), outcome="unresolved", billed=False),
    "parts_as_content": body(
        lambda module: message([{"type": "text", "text": whole_file(RIGHT, f"{module}.py")}])(module), billed=False
    ),
    "half_character": body(lambda module: message("\ud800" + whole_file(RIGHT, f"{module}.py"))(module), billed=False),
    "odd_name": body(lambda module: good(module, model=f"</script>{ESCAPE}\u202e" + "m" * 5000), billed=False),
    "odd_finish": body(
        lambda module: {
            **good(module),
            "choices": [{**good(module)["choices"][0], "finish_reason": {"a": 1}}],
        },
        billed=False,
    ),
    # Protocol.
    "garbage": passing(b"\x16\x03\x01\x02\x00 this is no HTTP\r\n\r\n"),
    "two_lengths": passing(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n{}   "),
    "negative_length": passing(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}"),
    "vast_length": passing(head(Content_Length="9" * 18, Connection="close") + b"{}"),
    "vast_chunk": passing(head(Transfer_Encoding="chunked") + b"f" * 18 + b"\r\n{}"),
    "odd_charset": failing(
        response(zlib.compress(b"x" * MEGABYTE), "400 No", Content_Type="text/plain; charset=zlib_codec"),
        billed=False,
    ),
    "redirect_to_file": failing(response(b"", "307 Go", Location="file:///etc/passwd"), billed=False),
    "redirect_elsewhere": failing(response(b"", "307 Go", Location="http://127.0.0.2:1/v1"), billed=False),
    "redirect_loop": failing(response(b"", "307 Go", Location="/v1/chat/completions"), billed=False),
    "redirect_nowhere": failing(response(b"", "307 Go", Location="http://[::"), billed=False),
    # Waits and words.
    "retry_after_1e308": failing(status("429 Slow", Retry_After="1e308"), billed=False),
    "retry_after_date": failing(status("429 Slow", Retry_After="Fri, 31 Dec 9999 23:59:59 GMT"), billed=False),
    "retry_after_nan": passing(status("503 No", Retry_After="nan"), billed=False),
    "retry_after_negative": passing(status("503 No", Retry_After="-5"), billed=False),
    "retry_after_no_date": passing(status("503 No", Retry_After="Fri, 99 Zzz 99999999999"), billed=False),
    "key_in_error": failing(status("400 No", f"{ESCAPE}</script> your key is Bearer {KEY}"), billed=False),
    "html_error": failing(
        response(f"<html><script>alert('{KEY}')</script><p>Bad {ESCAPE}gateway".encode(), "403 No"), billed=False
    ),
}


class HostileProvider:
    """Listens from `with` to its end."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.closing = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                try:
                    outer._answer(self.request)
                except OSError:
                    """The client has had enough."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, client: socket.socket) -> None:
        client.settimeout(60)
        found = FOUND.search(_request(client))
        assert found
        name = found[1].decode()
        with self._lock:
            self.asked[name] += 1
            again = self.asked[name] > 1
        case = CASES["good"] if again and CASES[name].recovers else CASES[name]
        for piece in case.sent(f"case_{name}"):
            client.sendall(piece)
            if self.closing.is_set():
                return
        if case.hangs:
            self.closing.wait()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = False
    allow_reuse_address = True
    request_queue_size = 64


def _request(client: socket.socket) -> bytes:
    """A whole request, its head and its body."""
    content = b""
    while b"\r\n\r\n" not in content:
        content += _received(client)
    start = content.index(b"\r\n\r\n") + 4
    length = re.search(rb"content-length: (\d+)", content, re.IGNORECASE)
    assert length
    while len(content) < start + int(length[1]):
        content += _received(client)
    return content


def _received(client: socket.socket) -> bytes:
    """Raises: ConnectionError when the client has closed the connection."""
    found = client.recv(65536)
    if not found:
        raise ConnectionError("the client is gone")
    return found
