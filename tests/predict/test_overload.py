"""A machine that is too busy to run the visible tests: the task is left open, and nothing more is paid for it."""

from __future__ import annotations

from pathlib import Path

from retrial.checks import Check
from retrial.errors import Overloaded
from tests.support.repository_task import Scripted, predict, repository

TASK = repository({"calc.py": b"def add(a, b):\n    return a - b\n"}, "add subtracts")
EDITED = "calc.py\n```\ndef add(a, b):\n    return a + b\n```\n"
BUSY = "the machine is too busy"


def too_busy() -> Check | str:
    raise Overloaded(BUSY)


def test_it_ends_the_ladder_without_a_result(home: Path, tmp_path: Path) -> None:
    model = Scripted("calc.py", EDITED)
    prediction = predict(TASK, model, tmp_path, tries=3, tests=too_busy)
    assert prediction.not_measured == f"attempt 1 (scripted): {BUSY}"
    assert len(prediction.attempts) == 1


def test_the_same_command_repeats_the_check_and_not_the_questions(home: Path, tmp_path: Path) -> None:
    predict(TASK, Scripted("calc.py", EDITED), tmp_path, tests=too_busy)
    silent = Scripted()
    prediction = predict(TASK, silent, tmp_path)
    assert (prediction.not_measured, silent.told) == ("", [])
    assert prediction.chosen.unverified
