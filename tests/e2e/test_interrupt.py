"""Ctrl-C: nothing new is begun, what is finished is on disk, and the same command goes on."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from retrial.store.runs import Run as Stored
from retrial.system.locks import PREDICTING
from tests.conftest import PROJECT, Run
from tests.support import servers
from tests.support.exercises import RIGHT, TESTS, reply, write_exercise, write_replies
from tests.support.servers import Answer, Asked, ChatServer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

SECONDS = 300
"""More than anything here takes, however busy the machine."""
SLOW = TESTS + "\n\ndef test_slowly():\n    import time\n    time.sleep(0.5)\n"


class Program:
    """harness.py or report.py, as a process that is sent signals."""

    def __init__(self, script: str, flags: Sequence[object], folder: Path) -> None:
        command = [sys.executable, str(PROJECT / script), *map(str, flags)]
        # Whoever runs these tests with nohup has that signal ignored, and so would what they start.
        self.process = subprocess.Popen(
            ["env", "--default-signal=HUP", *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
        )
        self.said = ""

    def until(self, pattern: str) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.said += line
            if re.search(pattern, line):
                return
        raise AssertionError(f"never said {pattern}: {self.said}")

    def begun(self) -> None:
        """Python's own beginning is over, of which it says what it likes: our program listens to signals."""
        caught = 0
        while not caught & 1 << signal.SIGTERM - 1 and self.process.poll() is None:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            caught = int(status.partition("SigCgt:")[2].split()[0], 16)

    def send(self, number: signal.Signals = signal.SIGINT) -> None:
        # As a terminal does: to all of them.
        os.killpg(self.process.pid, number)

    def end(self) -> int:
        try:
            self.said += self.process.communicate(timeout=SECONDS)[1]
        finally:
            # Whoever still lives then has failed the test; nobody may outlive it.
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.communicate()
        assert "Traceback" not in self.said, self.said
        return self.process.returncode


def predictions(home: Path, run: str = "r") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (home / "predictions" / run).glob("aider_*.json")}


@pytest.mark.smoke
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_run_goes_on(number: signal.Signals, run: Run, home: Path, tmp_path: Path) -> None:
    for each in range(12):
        write_exercise(tmp_path / "bench", f"sum-{each}")
    lines = [{"text": reply(RIGHT, f"sum_{each}.py"), "match": f"files: sum_{each}.py\n"} for each in range(12)]
    replies = write_replies(tmp_path / "replies.jsonl", *lines)
    flags = ["-b", tmp_path / "bench", "-m", f"replay/{replies}", "--sandbox", "bwrap", "--run", "r", "--jobs", "1"]
    program = Program("harness.py", flags, tmp_path)
    program.until("^harness 2/")
    program.send(number)
    assert program.end() == 130
    finished = predictions(home)
    assert 2 <= len(finished) < 12
    assert all(json.loads(content)["plausible"] for content in finished.values())
    assert f"harness: {len(finished)} of 12 tasks are finished, {12 - len(finished)} are left." in program.said
    assert f"the same command goes on: {shlex.join(['python', 'harness.py', *map(str, flags)])}" in program.said

    again = run("harness.py", *flags)
    assert again.returncode == 0, again.stderr
    assert len(predictions(home)) == 12
    assert {name: predictions(home)[name] for name in finished} == finished


class Held:
    """A model that does not answer before it may."""

    def __init__(self) -> None:
        self.arrived, self.may = threading.Semaphore(0), threading.Event()

    def __call__(self, asked: Asked) -> Answer:
        self.arrived.release()
        self.may.wait(SECONDS)
        text = "\n".join(message["content"] for message in asked.body["messages"])
        names = re.findall(r"files: (\w+\.py)\n", text)
        return servers.reply(reply(RIGHT, names[0]))


def flags_for(server: ChatServer, bench: Path, *more: object) -> list[object]:
    return ["-b", bench, "-m", "m:whole", "--api-base", server.url, "--sandbox", "bwrap", "--run", "r", *more]


def test_what_was_asked_is_waited_for_and_written_and_nothing_more_is_asked(
    run: Run, home: Path, tmp_path: Path
) -> None:
    held = Held()
    for each in range(8):
        write_exercise(tmp_path / "bench", f"sum-{each}")
    with ChatServer([held]) as server:
        flags = flags_for(server, tmp_path / "bench", "--jobs", 2)
        program = Program("harness.py", flags, tmp_path)
        assert held.arrived.acquire(timeout=SECONDS) and held.arrived.acquire(timeout=SECONDS)
        program.send()
        program.until("^Stopping:")
        held.may.set()
        assert program.end() == 130
        assert len(server.requests) == 2
        journals = [path.read_text() for path in (home / "predictions" / "r" / "journal").glob("*.jsonl")]
        assert sum('"event": "reply"' in each for each in journals) == 2
        again = run("harness.py", *flags)
        assert again.returncode == 0, again.stderr
        # What was answered before is not asked again.
        assert len(server.requests) == 8
    assert len(predictions(home)) == 8


def test_a_wait_for_the_provider_ends_at_once(home: Path, tmp_path: Path) -> None:
    refused = threading.Event()

    def later(asked: Asked) -> Answer:
        refused.set()
        return servers.status(429, "slow down", headers={"Retry-After": "500"})

    for each in range(4):
        write_exercise(tmp_path / "bench", f"sum-{each}")
    with ChatServer([later]) as server:
        program = Program("harness.py", flags_for(server, tmp_path / "bench"), tmp_path)
        assert refused.wait(SECONDS)
        program.send()
        assert program.end() == 130
    assert "harness: 0 of 4 tasks are finished, 4 are left." in program.said


def test_the_second_time_it_ends_now(home: Path, tmp_path: Path) -> None:
    held = Held()
    write_exercise(tmp_path / "bench")
    with ChatServer([held]) as server:
        program = Program("harness.py", flags_for(server, tmp_path / "bench"), tmp_path)
        assert held.arrived.acquire(timeout=SECONDS)
        program.send()
        program.until("^Stopping:")
        program.send()
        assert program.end() == 130
        held.may.set()


def test_a_closed_terminal_may_be_told_of_twice(home: Path, tmp_path: Path) -> None:
    """By the shell and by the kernel: that is not a second wish."""
    held = Held()
    write_exercise(tmp_path / "bench")
    with ChatServer([held]) as server:
        program = Program("harness.py", flags_for(server, tmp_path / "bench"), tmp_path)
        assert held.arrived.acquire(timeout=SECONDS)
        program.send(signal.SIGHUP)
        program.until("^Stopping:")
        program.send(signal.SIGHUP)
        held.may.set()
        assert program.end() == 130
    [journal] = (home / "predictions" / "r" / "journal").glob("*.jsonl")
    assert '"event": "reply"' in journal.read_text()


def test_a_run_outlives_its_terminal(home: Path, tmp_path: Path) -> None:
    """Of which it need not have been told: `& disown`."""
    held = Held()
    for each in range(4):
        write_exercise(tmp_path / "bench", f"sum-{each}")
    shown, terminal = os.openpty()
    with ChatServer([held]) as server:
        command = [sys.executable, str(PROJECT / "harness.py"), *map(str, flags_for(server, tmp_path / "bench"))]
        process = subprocess.Popen(command, stdout=terminal, stderr=terminal, cwd=tmp_path, start_new_session=True)
        os.close(terminal)
        assert held.arrived.acquire(timeout=SECONDS)
        os.close(shown)
        held.may.set()
        assert process.wait(SECONDS) == 0
    assert len(predictions(home)) == 4


def test_scoring_goes_on_too(run: Run, home: Path, tmp_path: Path) -> None:
    for each in range(8):
        write_exercise(tmp_path / "bench", f"sum-{each}", tests=SLOW)
    flags = ("--gold", "-b", tmp_path / "bench", "--sandbox", "bwrap", "--test-jobs", 1)
    program = Program("report.py", flags, tmp_path)
    program.until("^report 2/")
    program.send()
    assert program.end() == 130
    assert re.search(r"report: \d of 8 tasks are finished, \d are left\.", program.said)
    assert f"the same command goes on: {shlex.join(['python', 'report.py', *map(str, flags)])}" in program.said
    again = run("report.py", *flags)
    assert again.returncode == 0, again.stderr


MOMENTS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0]
"""Seconds after our own beginning: while it is loaded, looks at tasks, tries the sandbox, runs, winds down."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whenever_it_comes_there_is_no_traceback(number: signal.Signals, home: Path, tmp_path: Path) -> None:
    for each in range(3):
        write_exercise(tmp_path / "bench", f"sum-{each}")
    for moment in MOMENTS:
        program = Program("report.py", ("--gold", "-b", tmp_path / "bench", "--sandbox", "bwrap", "--fresh"), tmp_path)
        program.begun()
        try:
            program.process.wait(moment)
        except subprocess.TimeoutExpired:
            program.send(number)
        # At the very end there is nothing to say any more, and it ends by the signal.
        assert program.end() in (0, 130, -number), program.said


def test_two_processes_are_not_at_one_run(run: Run, home: Path, tmp_path: Path) -> None:
    replies = write_replies(tmp_path / "replies.jsonl", {"text": reply(RIGHT)})
    flags = ("-b", write_exercise(tmp_path / "bench"), "-m", f"replay/{replies}", "--sandbox", "bwrap", "--run", "r")
    with Stored(home, "r").lock(PREDICTING):
        refused = run("harness.py", *flags)
    assert refused.returncode == 2
    assert "Run 'r' is under way in another process" in refused.stderr
    assert run("harness.py", *flags).returncode == 0
