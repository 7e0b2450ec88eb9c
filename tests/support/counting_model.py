"""A model server in a process of its own, so that whoever is killed, it lives: counts every request, and what it sent.

    python -m tests.support.counting_model LOG NUMBER

It prints its address and logs what happens to each request, with the time: `arrived`, `sent` (the answer is on its
way), and `unread` (the client died with the answer in its socket: the kernel then resets the connection).
The NUMBER-th distinct question is not answered until there is a file `LOG.release`.
The answer depends on the question alone.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.exercises import RIGHT, WRONG, reply

LATENCY = 0.05
"""So that some question is mostly under way."""
MALFORMED = "I would simply add the two numbers."
FILE = re.compile(r"sum_(\d+)\.py")
NEVER: Mapping[tuple[str, int], Sequence[str]] = {}
SCRIPTS: Sequence[Mapping[tuple[str, int], Sequence[str]]] = (
    *[{("m-one", 0): [RIGHT]}] * 4,
    *[{("m-one", 0): [WRONG, RIGHT]}] * 2,
    {("m-one", 0): [MALFORMED, RIGHT]},
    {("m-two", 0): [RIGHT]},
    {("m-one", 0): [MALFORMED, WRONG], ("m-one", 1): [WRONG, RIGHT]},
    NEVER,
)
"""By the last digit of the task: (model, seed) → what it writes; what is not here is wrong."""


Question = tuple[int, str, int, int]
"""The task's number, the model, the seed, and how often the model has spoken."""


def question(model: str, asked: Mapping[str, Any]) -> Question:
    """Of a request as the server meets it, or as a journal has it; without what tests printed, which is never the same
    twice."""
    path = FILE.search(json.dumps(asked["messages"]))
    assert path
    turn = sum(message["role"] == "assistant" for message in asked["messages"])
    return int(path[1]), model, asked["seed"], turn


def said(asked: Question) -> str:
    number, model, seed, turn = asked
    script = SCRIPTS[number % len(SCRIPTS)].get((model, seed), ())
    content = script[turn] if turn < len(script) else WRONG
    return content if content == MALFORMED else reply(content, f"sum_{number}.py")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log: Path
    held: int
    questions: list[Question]
    lock = threading.Lock()
    numbers = itertools.count(1)
    number = 0
    """Of the connection's latest request."""
    latest: Question | None = None

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionResetError:
            if self.latest:
                self._note("unread", self.latest)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = question(body["model"], body)
        self.number, self.latest = next(self.numbers), asked
        self._note("arrived", asked)
        time.sleep(LATENCY)
        while self._is_held(asked):
            time.sleep(LATENCY)
        message = {"role": "assistant", "content": said(asked)}
        usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        answer = {"id": "1", "object": "chat.completion", "usage": usage, "model": body["model"]}
        content = json.dumps(
            {**answer, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()
        self._note("sent", asked)

    def _is_held(self, asked: Question) -> bool:
        with self.lock:
            if asked not in self.questions:
                self.questions.append(asked)
        return self.questions.index(asked) == self.held - 1 and not Path(f"{self.log}.release").exists()

    def _note(self, event: str, asked: Question) -> None:
        with self.log.open("a") as file:
            file.write(json.dumps([event, asked, self.number, time.time()]) + "\n")

    def log_message(self, format: str, *args: object) -> None:
        """The log is ours."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients are killed here."""


if __name__ == "__main__":
    Handler.log, Handler.held = Path(sys.argv[1]), int(sys.argv[2])
    Handler.questions = []
    Handler.log.touch()
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()
