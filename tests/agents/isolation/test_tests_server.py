"""What an agent's test client gets to hear, and what a stranger at its socket can do."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from retrial.agents.isolation import tests_client, tests_server
from retrial.agents.isolation.tests_server import MOST, NAME, SHOWN_BYTES, TestsSocket, told
from retrial.errors import SandboxError
from retrial.types import Outcome, Verdict

FAILED = Verdict(outcome=Outcome.TESTS_FAILED, stdout="E  assert 3 == 4", reason="1 of 2 tests failed")
PASSED = Verdict(outcome=Outcome.RESOLVED, stdout="2 passed")


def ask(folder: Path) -> subprocess.CompletedProcess[bytes]:
    """With the real client, as an agent does: a file beside the socket, and no more than a bare Python."""
    client = folder / "client.py"
    client.write_bytes(Path(tests_client.__file__).read_bytes())
    return subprocess.run([sys.executable, "-I", "-S", client], capture_output=True, timeout=60, cwd="/")


def connected(folder: Path) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX)
    wire.settimeout(60)
    wire.connect(str(folder / NAME))
    return wire


def whole(wire: socket.socket) -> bytes:
    return b"".join(iter(lambda: wire.recv(1 << 16), b""))


def answering(*verdicts: Verdict) -> Callable[[], Verdict]:
    waiting = iter(verdicts)
    return lambda: next(waiting)


def test_the_client_prints_the_output_and_ends_as_the_tests_do(tmp_path: Path) -> None:
    with TestsSocket(tmp_path, answering(FAILED, PASSED)):
        first, second = ask(tmp_path), ask(tmp_path)
    assert (first.returncode, first.stdout) == (1, b"E  assert 3 == 4\n\n1 of 2 tests failed\n")
    assert (second.returncode, second.stdout) == (0, b"2 passed\n")


@pytest.mark.parametrize(
    ("verdict", "status", "text"),
    [
        (Verdict(outcome=Outcome.RESOLVED, lint=("a.py:1: F821 undefined name",)), b"1", b"F821"),
        (Verdict(outcome=Outcome.TESTS_FAILED, telling="what matters", stdout="noise"), b"1", b"what matters"),
        (Verdict(outcome=Outcome.PATCH_EMPTY, reason="the patch is empty"), b"1", b"the patch is empty"),
        (Verdict(outcome=Outcome.TIMED_OUT, reason="the tests took too long"), b"1", b"too long"),
        (Verdict(outcome=Outcome.UNVERIFIED, reason="there are no tests"), b"2", b"there are no tests"),
        (Verdict(outcome=Outcome.NOT_MEASURED, reason="the engine went away"), b"2", b"the engine went away"),
        (Verdict(outcome=Outcome.TESTS_FAILED, stdout="\udcff odd \x00 bytes"), b"1", b"odd"),
    ],
)
def test_every_verdict_has_an_exit_code_and_a_text(verdict: Verdict, status: bytes, text: bytes) -> None:
    first, _, rest = told(verdict).partition(b"\n")
    assert first == status
    assert text in rest


def test_what_tells_more_than_the_noise_is_told_instead_of_it() -> None:
    assert b"noise" not in told(Verdict(outcome=Outcome.TESTS_FAILED, telling="what matters", stdout="noise"))


def test_endless_output_is_cut_in_the_middle() -> None:
    said = told(Verdict(outcome=Outcome.TESTS_FAILED, stdout="first" + "x" * 10 * SHOWN_BYTES, reason="last"))
    assert len(said) < SHOWN_BYTES + 200
    assert said.startswith(b"1\nfirst")
    assert said.endswith(b"last\n")


def test_a_folder_with_a_long_name_can_have_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with TestsSocket(folder, answering(PASSED)):
        assert ask(folder).returncode == 0


def test_without_a_harness_there_is_no_verdict(tmp_path: Path) -> None:
    with TestsSocket(tmp_path, answering()):
        pass
    done = ask(tmp_path)
    assert (done.returncode, done.stdout) == (2, tests_client.NO_ANSWER.encode())


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", b"te", b"", b"x" * 1_000_000, b"/etc/passwd\n"])
def test_garbage_is_answered_and_runs_no_test(sent: bytes, tmp_path: Path) -> None:
    with TestsSocket(tmp_path, answering(PASSED)):
        with connected(tmp_path) as wire:
            # The server reads no more than a request, and closes.
            try:
                wire.sendall(sent)
                wire.shutdown(socket.SHUT_WR)
                said = whole(wire)
            except (BrokenPipeError, ConnectionResetError):
                said = b""
        assert said in (b"", f"2\n{tests_server.STRANGER}\n".encode())
        assert ask(tmp_path).returncode == 0


def test_a_client_that_goes_away_leaves_the_next_one_its_turn(tmp_path: Path) -> None:
    with TestsSocket(tmp_path, answering(FAILED, PASSED)):
        with connected(tmp_path) as wire:
            wire.sendall(b"test\n")
        assert ask(tmp_path).returncode == 0


def test_requests_are_served_one_at_a_time(tmp_path: Path) -> None:
    inside = threading.Semaphore(1)

    def alone() -> Verdict:
        assert inside.acquire(blocking=False)
        inside.release()
        return PASSED

    with TestsSocket(tmp_path, alone):
        wires = [connected(tmp_path) for _ in range(8)]
        for wire in wires:
            wire.sendall(b"test\n")
        assert {whole(wire) for wire in wires} == {b"0\n2 passed\n"}
        for wire in wires:
            wire.close()


def test_who_only_tests_is_told_at_last_that_it_is_enough(tmp_path: Path) -> None:
    asked = []

    def check() -> Verdict:
        asked.append(1)
        return FAILED

    with TestsSocket(tmp_path, check):
        for _ in range(MOST + 5):
            with connected(tmp_path) as wire:
                wire.sendall(b"test\n")
                said = whole(wire)
    assert len(asked) == MOST
    assert said == f"2\n{tests_server.ENOUGH}\n".encode()


@pytest.mark.parametrize("error", [SandboxError("the engine went away"), OSError("disk full"), ZeroDivisionError()])
def test_what_a_check_raises_is_raised_at_the_end_and_no_client_hears_of_failed_tests(
    error: Exception, tmp_path: Path
) -> None:
    def broken() -> Verdict:
        raise error

    with pytest.raises(type(error)) as caught, TestsSocket(tmp_path, broken) as tests:
        assert ask(tmp_path).returncode == 2
        with selectors.DefaultSelector() as selector:
            selector.register(tests.news, selectors.EVENT_READ)
            assert selector.select(60)
        assert tests.broken
    assert caught.value is error


def test_it_is_busy_while_a_check_is_made_and_says_when_it_is_over(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> Verdict:
        begun.set()
        go_on.wait(60)
        return PASSED

    with TestsSocket(tmp_path, slow) as tests, connected(tmp_path) as wire:
        wire.sendall(b"test\n")
        assert begun.wait(60)
        busy = tests.busy
        go_on.set()
        whole(wire)
        assert (busy, tests.busy, os.eventfd_read(tests.news)) == (True, False, 1)


def test_a_check_that_is_under_way_is_waited_for(tmp_path: Path) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), list[int]()

    def check() -> Verdict:
        begun.set()
        go_on.wait(60)
        ended.append(1)
        return PASSED

    with ExitStack() as stack:
        stack.enter_context(TestsSocket(tmp_path, check))
        stack.callback(go_on.set)
        stack.enter_context(connected(tmp_path)).sendall(b"test\n")
        assert begun.wait(60)
    assert ended == [1]
