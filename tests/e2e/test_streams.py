"""Both programs do all of their work, whatever has become of their output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.support.exercises import write_exercise

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

WRITTEN = {"all_preds.jsonl", "preds.json", "report.html", "results.json", "run.json"}
CLOSED = """\
import runpy, sys

name, *sys.argv[1:] = sys.argv[1:]
sys.argv[0], sys.stdout = name, open("/dev/null", "w")
sys.stdout.close()
runpy.run_path(name, run_name="__main__")
"""
BARE = """\
import runpy, sys

class Bare:
    write, flush = sys.stdout.write, sys.stdout.flush

name, *sys.argv[1:] = sys.argv[1:]
sys.argv[0], sys.stdout = name, Bare()
runpy.run_path(name, run_name="__main__")
"""
IN_MEMORY = """\
import io, runpy, sys

name, *sys.argv[1:] = sys.argv[1:]
shown, memory = sys.stdout, io.StringIO()
sys.argv[0], sys.stdout = name, memory
try:
    runpy.run_path(name, run_name="__main__")
except SystemExit as ended:
    shown.write(f"{ended.code} {memory.getvalue()}")
"""


def start(home: Path, script: str, *arguments: object, streams: str) -> int:
    """Run a program whose output is read by no one; returns its exit code."""
    command = [sys.executable, str(PROJECT / script), *map(str, arguments), "--sandbox", "bwrap"]
    if streams == "closed":
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    read, write = os.pipe()
    # As behind `head -1`, once that has ended.
    os.close(read)
    try:
        stderr = write if streams == "both unread" else subprocess.DEVNULL
        return subprocess.run(command, stdout=write, stderr=stderr, cwd=home.parent, timeout=600).returncode
    finally:
        os.close(write)


@pytest.mark.parametrize("streams", ["unread", "both unread", "closed"])
def test_nothing_is_missing_when_nobody_reads_the_output(home: Path, tmp_path: Path, streams: str) -> None:
    benchmark = write_exercise(tmp_path / "bench")
    assert start(home, "harness.py", "-b", benchmark, "-a", "gold", "--run", "it", streams=streams) == 0
    asked = tmp_path / "it.csv"
    assert start(home, "report.py", "it", "--csv", asked, streams=streams) == 0
    assert {path.name for path in (home / "predictions" / "it").iterdir()} >= WRITTEN
    assert asked.is_file()


def test_the_exit_code_is_still_that_of_the_work(home: Path, tmp_path: Path) -> None:
    benchmark = write_exercise(tmp_path / "bench")
    assert start(home, "harness.py", "-b", benchmark, "-a", "null", "--run", "it", streams="unread") == 0
    assert start(home, "report.py", "it", "--fail-under", 50, streams="both unread") == 3


def score_gold(folder: Path, wrapper: str) -> subprocess.CompletedProcess[str]:
    """report.py from another program, which has replaced its output."""
    write_exercise(folder / "bench")
    command = [sys.executable, "-c", wrapper, str(PROJECT / "report.py"), "--gold", "-b", str(folder / "bench")]
    return subprocess.run([*command, "--sandbox", "bwrap"], cwd=PROJECT, capture_output=True, text=True, timeout=600)


def test_a_stream_that_was_closed_will_do(home: Path, tmp_path: Path) -> None:
    done = score_gold(tmp_path, CLOSED)
    assert done.returncode == 0, done.stderr
    assert list((home / "predictions").glob("gold--*/report.html"))


def test_a_stream_that_can_only_be_written_to_will_do(home: Path, tmp_path: Path) -> None:
    done = score_gold(tmp_path, BARE)
    assert done.returncode == 0, done.stderr
    assert "100.0 %" in done.stdout


def test_a_stream_without_bytes_below_it_will_do(home: Path, tmp_path: Path) -> None:
    done = score_gold(tmp_path, IN_MEMORY)
    assert done.stdout.startswith("0 "), done.stderr
    assert "100.0 %" in done.stdout
