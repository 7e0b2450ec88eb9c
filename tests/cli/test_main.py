"""What both programs share: Ctrl-C is told as such, whatever the code that it strikes makes of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PROJECT

# Both were seen: Python 3.11 wraps what strikes while a class is made, and clean-up code may fail on half-made things.
WRAPPED = """
class Struck:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)
type("Made", (), {"field": Struck()})
"""
REPLACED = """
try:
    signal.raise_signal(signal.SIGINT)
finally:
    os.close(12345)
"""
UNRAISABLE = """
class Struck:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
Struck()
signal.pause()
"""
OWN = """
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass
raise OSError("the disk is on fire")
"""


def run(tmp_path: Path, body: str) -> subprocess.CompletedProcess[str]:
    """A program whose `main` is this."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (tmp_path / "struck.py").write_text(f"import os, signal\n\ndef main(arguments):\n{lines}    return 0\n")
    start = (
        f"import sys; sys.path[:0] = [{str(PROJECT)!r}]; import retrial.cli; from retrial.cli import main; "
        f"retrial.cli.__path__.append({str(tmp_path)!r}); "
        "sys.exit(main.run('it', lambda argv: (argv,), 'cli.struck'))"
    )
    return subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("body", [WRAPPED, REPLACED], ids=["wrapped", "replaced"])
def test_an_interrupt_that_became_another_error_is_still_one(tmp_path: Path, body: str) -> None:
    done = run(tmp_path, body)
    assert done.returncode == 130, done.stderr
    assert "it: interrupted." in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_where_nothing_can_be_raised_ends_the_program(tmp_path: Path) -> None:
    done = run(tmp_path, UNRAISABLE)
    assert done.returncode == -signal.SIGINT, done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_of_its_own_is_told_though_there_was_an_interrupt(tmp_path: Path) -> None:
    done = run(tmp_path, OWN)
    assert done.returncode == 1
    assert "the disk is on fire" in done.stderr
