"""`--compare`, `--baseline` and `--fail-under` through the real programs: the reference against nothing at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.support.exercises import write_exercise
from tests.support.programs import report

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

SLUGS = ("one", "two", "three", "four", "five", "six", "seven")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark of as many tasks as it takes to tell two runs apart."""
    for slug in SLUGS:
        write_exercise(tmp_path / "bench", f"add-{slug}")
    return tmp_path / "bench"


@pytest.fixture
def two(run: Run, folder: Path) -> None:
    """Run `g` has every task right, run `n` none."""
    for agent, name in (("gold", "g"), ("null", "n")):
        done = run("harness.py", "-b", folder, "-a", agent, "--run", name, "--sandbox", "bwrap")
        assert done.returncode == 0, done.stderr


@pytest.mark.smoke
@pytest.mark.usefixtures("two")
def test_runs_are_scored_where_they_were_not_and_told_apart(run: Run, home: Path, folder: Path) -> None:
    done = report(run, "--compare", "n", "g")
    sentence = (
        "g solves 100.0 points more than n on the 7 tasks that both measured; that is more than chance (p = 0.016)."
    )
    assert sentence in done.stdout
    assert "agent: null in n, gold in g" in done.stdout
    assert "n is scored" in done.stderr and "g is scored" in done.stderr
    content = json.loads((home / "predictions/compare--n--g/results.json").read_text())
    assert [row["rate"]["percent"] for row in content["runs"]] == [0.0, 100.0]
    assert (content["pairs"][0]["difference"], len(content["pairs"][0]["gained"])) == (100.0, 7)
    assert (content["pairs"][0]["sentence"], content["warnings"]) == (sentence, [])

    # Once scored, nothing is run; a file of predictions is a run like any other.
    again = report(run, "--compare", "g", home / "predictions/n/all_preds.jsonl", "n", code=2)
    assert "'n' is named twice" in again.stderr
    shutil.copy(home / "predictions/n/all_preds.jsonl", file := home.parent / "sent.jsonl")
    with_file = report(run, "--compare", "g", file, "-b", folder)
    assert "g is scored" not in with_file.stderr
    assert "solves 100.0 points less than g" in with_file.stdout
    assert "was made is not known here" in with_file.stdout
    assert "is scored" not in report(run, "--compare", "g", file, "-b", folder).stderr


@pytest.mark.smoke
@pytest.mark.usefixtures("two")
def test_gates_end_with_three_when_they_are_missed(run: Run, home: Path) -> None:
    assert "--fail-under 100: kept" in report(run, "g", "--fail-under", 100).stdout
    assert (
        "--baseline g: missed. n solves 100.0 points less than g" in report(run, "n", "--baseline", "g", code=3).stdout
    )
    assert "--fail-under 0.1: missed. 0 % are resolved." in report(run, "n", "--fail-under", 0.1, code=3).stdout
    kept = report(run, "g", "--baseline", home / "predictions/n/results.json", "--fail-under", 50)
    assert kept.stdout.count(": kept.") == 2
    shutil.copy(home / "predictions/g/results.json", old := home.parent / "results.json")
    same = report(run, "g", "--baseline", old)
    assert "g (now) and g solve the same on the 7 tasks" in same.stdout
