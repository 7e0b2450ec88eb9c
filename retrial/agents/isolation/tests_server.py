"""Where an agent's test client asks: the harness takes the workspace's diff and runs the visible check.

Who asks says nothing but that it asks: no path, no patch. The answer is a line with the client's exit code, and what it
is to print.
"""

from __future__ import annotations

import os
import selectors
import socket
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from retrial.protocols import WorkspaceCheck
from retrial.sandboxes.supervisor import HeadAndTail
from retrial.types import Verdict

NAME = "tests.socket"
REQUEST = b"test\n"
PATIENCE = 10.0
"""Seconds for a client to ask, and to take what it is told."""
SHOWN_BYTES = 200_000
MOST = 200
"""Requests of one errand. The time for tests is not the agent's own, so nothing else would end one that only tests."""
STRANGER = "No verdict: this is not how the test client asks."
ENOUGH = f"No verdict: these tests have been asked for {MOST} times."
PASSED, FAILED, NO_VERDICT = 0, 1, 2


class TestsSocket:
    """Answers one client at a time, from `with` to its end; whatever `check` raises is raised there."""

    __test__ = False

    def __init__(self, folder: Path, check: WorkspaceCheck) -> None:
        self._check = check
        self._asked = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._bind(folder)
        self._stop = os.eventfd(0)
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="retrial-tests")
        self._served: Future[None] | None = None
        self.busy = False
        """Tests are under way: that is not the agent's time."""
        self.news = os.eventfd(0, os.EFD_NONBLOCK)
        """Can be read when an answer has been given, or when none will be given any more."""

    def _bind(self, folder: Path) -> None:
        # A socket's name may have 107 bytes, and this folder's may have more.
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._listener.bind(f"/proc/self/fd/{opened}/{NAME}")
        finally:
            os.close(opened)
        (folder / NAME).chmod(0o666)
        self._listener.listen(8)

    @property
    def broken(self) -> bool:
        """A check could not be made; there is nothing more to wait for."""
        return self._served is not None and self._served.done()

    def __enter__(self) -> TestsSocket:
        self._served = self._pool.submit(self._serve)
        self._served.add_done_callback(lambda served: os.eventfd_write(self.news, 1))
        return self

    def __exit__(self, *exception: object) -> None:
        """Waits for a check that is under way: it must not go on beside the next one."""
        os.eventfd_write(self._stop, 1)
        self._pool.shutdown()
        self._listener.close()
        for descriptor in (self._stop, self.news):
            os.close(descriptor)
        if self._served:
            self._served.result()

    def _serve(self) -> None:
        while self._somebody_asks():
            with self._listener.accept()[0] as client:
                client.settimeout(PATIENCE)
                answer = self._answer() if _has_asked(client) else said(NO_VERDICT, STRANGER)
                # Who has gone, or does not listen, misses it.
                with suppress(OSError):
                    client.sendall(answer)

    def _somebody_asks(self) -> bool:
        """Waits for a client, or for the end."""
        with selectors.DefaultSelector() as selector:
            for descriptor in (self._listener.fileno(), self._stop):
                selector.register(descriptor, selectors.EVENT_READ)
            return self._stop not in {key.fd for key, _ in selector.select()}

    def _answer(self) -> bytes:
        self._asked += 1
        if self._asked > MOST:
            return said(NO_VERDICT, ENOUGH)
        self.busy = True
        try:
            return told(self._check())
        finally:
            self.busy = False
            os.eventfd_write(self.news, 1)


def told(verdict: Verdict) -> bytes:
    """What a client prints and ends with: lint errors stand in an edit's way as failing tests do."""
    lint = "\n".join(("Errors in the edited code:", *verdict.lint)) if verdict.lint else ""
    text = "\n\n".join(part for part in (verdict.telling or verdict.output, lint, verdict.reason) if part)
    if not verdict.outcome.measured:
        return said(NO_VERDICT, f"{text}\n\nNo verdict: nothing can be said of this edit.".lstrip())
    return said(PASSED if verdict.resolved and not verdict.lint else FAILED, text)


def said(status: int, text: str) -> bytes:
    shown = HeadAndTail(SHOWN_BYTES)
    shown.add(text.rstrip().encode(errors="replace"))
    return f"{status}\n{shown.text()}\n".encode(errors="replace")


def _has_asked(client: socket.socket) -> bool:
    """Reads no more than a request has, whatever is sent."""
    received = b""
    with suppress(OSError):
        while len(received) < len(REQUEST) and (data := client.recv(len(REQUEST) - len(received))):
            received += data
    return received == REQUEST
