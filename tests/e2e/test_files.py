"""Predictions made elsewhere: parts of a file, and lines that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.support.exercises import write_exercise

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """For predictions of two tasks."""
    for slug in ("add-one", "add-two"):
        write_exercise(tmp_path / "bench", slug)
    return tmp_path / "predictions.jsonl"


def line(name: str) -> str:
    return json.dumps({"instance_id": name, "model_name_or_path": "m", "model_patch": ""}) + "\n"


def test_one_instance_of_a_file_can_be_scored(run: Run, home: Path, predictions: Path) -> None:
    predictions.write_text(line("aider_python_add_one") + line("aider_python_add_two"))
    flags = ("-b", predictions.parent / "bench", "--sandbox", "bwrap")
    whole = run("report.py", predictions, *flags)
    one = run("report.py", predictions, "-t", "aider_python_add_two", *flags)
    assert (whole.returncode, one.returncode) == (0, 0), one.stderr
    found = [json.loads(path.read_text()) for path in (home / "predictions").glob("predictions-*/results.json")]
    assert sorted([row["instance_id"] for row in each["instances"]] for each in found) == [
        ["aider_python_add_one", "aider_python_add_two"],
        ["aider_python_add_two"],
    ]
    predictions.write_text(line("aider_python_add_one"))
    missing = run("report.py", predictions, "-t", "aider_python_add_two", *flags)
    assert missing.returncode == 2
    assert "has no prediction for aider_python_add_two" in missing.stderr


def test_the_sentence_about_unknown_ids_says_how_to_leave_them_out(run: Run, predictions: Path) -> None:
    predictions.write_text(line("aider_python_add_one") + line("unheard-of"))
    flags = ("-b", predictions.parent / "bench", "--sandbox", "bwrap")
    refused = run("report.py", predictions, *flags)
    assert refused.returncode == 2
    assert "'unheard-of', which is not in the benchmark" in refused.stderr
    assert "Leave these lines out with --keep-going" in refused.stderr
    assert run("report.py", predictions, *flags, "--keep-going").returncode == 1
