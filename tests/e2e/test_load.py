"""A busy machine is not held against a patch: what timed out beside busy processes is not cached."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from retrial.patches.apply import diff
from tests.conftest import Run
from tests.support.exercises import STUB, write_exercise

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

HANG = "import time\n\n\ndef add(a, b):\n    time.sleep(1000)\n"
TASK = "aider_python_sum_up"


@contextmanager
def busy() -> Iterator[None]:
    """Leave no core idle."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(4 * len(os.sched_getaffinity(0)))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def scored(run: Run, home: Path, file: Path, bench: Path) -> dict[str, Any]:
    flags = ("-b", bench, "--sandbox", "bwrap", "--test-timeout-seconds", 6)
    done = run("report.py", file, *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    (results,) = (home / "predictions").glob("mine-*/results.json")
    (row,) = json.loads(results.read_text())["instances"]
    return dict(row)


def test_a_time_out_beside_busy_processes_is_not_cached(run: Run, home: Path, tmp_path: Path) -> None:
    bench, file = write_exercise(tmp_path / "bench"), tmp_path / "mine.jsonl"
    patch = diff({"sum_up.py": STUB.encode()}, {"sum_up.py": HANG.encode()})
    file.write_text(json.dumps({"instance_id": TASK, "model_name_or_path": "m", "model_patch": patch}) + "\n")
    assert run("report.py", "--gold", "-b", bench, "--sandbox", "bwrap", "--test-timeout-seconds", 6).returncode == 0
    with busy():
        first = scored(run, home, file, bench)
    assert first["outcome"] == "timed_out"
    assert not scored(run, home, file, bench)["cached"]
    assert "the machine was busy" in first["reason"]
