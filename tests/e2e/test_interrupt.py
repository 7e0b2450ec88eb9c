"""Ctrl-C: what is finished is on disk, and the same command goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from retrial.claims import claimed
from retrial.store import Run as Stored
from tests.conftest import PROJECT, Run
from tests.exercises import RIGHT, reply, write_exercise, write_replies

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]


def test_an_interrupted_run_goes_on(run: Run, home: Path, tmp_path: Path) -> None:
    for number in range(12):
        write_exercise(tmp_path / "bench", f"sum-{number}")
    lines = [{"text": reply(RIGHT, f"sum_{number}.py"), "match": f"files: sum_{number}.py\n"} for number in range(12)]
    replies = write_replies(tmp_path / "replies.jsonl", *lines)
    flags = [
        "-b",
        str(tmp_path / "bench"),
        "-m",
        f"replay/{replies}",
        "--sandbox",
        "bwrap",
        "--run",
        "r",
        "--jobs",
        "1",
    ]
    process = subprocess.Popen(
        [sys.executable, str(PROJECT / "harness.py"), *flags], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stderr
    for line in process.stderr:
        if line.startswith("harness 2/"):
            os.kill(process.pid, signal.SIGINT)
            break
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 130, rest
    assert "the same command goes on" in rest
    folder = home / "predictions" / "r"
    finished = {path.name: path.read_bytes() for path in folder.glob("aider_*.json")}
    assert 2 <= len(finished) < 12
    assert all(json.loads(content)["plausible"] for content in finished.values())

    again = run("harness.py", *flags)
    assert again.returncode == 0, again.stderr
    assert len(list(folder.glob("aider_*.json"))) == 12
    assert {name: (folder / name).read_bytes() for name in finished} == finished


def test_two_processes_are_not_at_one_run(run: Run, home: Path, tmp_path: Path) -> None:
    replies = write_replies(tmp_path / "replies.jsonl", {"text": reply(RIGHT)})
    flags = ("-b", write_exercise(tmp_path / "bench"), "-m", f"replay/{replies}", "--sandbox", "bwrap", "--run", "r")
    with claimed(Stored(home, "r")):
        refused = run("harness.py", *flags)
    assert refused.returncode == 2
    assert "Run 'r' is under way in another process" in refused.stderr
    assert run("harness.py", *flags).returncode == 0
