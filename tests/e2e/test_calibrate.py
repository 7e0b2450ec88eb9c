"""report.py --calibrate: tasks that cannot be trusted here are found, named, and left out of the calibrated rate."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retrial.patches.apply import diff
from tests.conftest import PROJECT, Run
from tests.e2e.test_known_scores import results
from tests.e2e.test_swebench import name, write_rows
from tests.parts import ready_with_repository
from tests.support.exercises import RIGHT, STUB, WRONG, write_exercise

pytestmark = pytest.mark.real

# Thirty coins never fall the same way twice: the reference passes at first, for what it skips then may be optional.
FLICKERING = """\
import random

import pytest

from {module} import add


@pytest.mark.parametrize("number", range(30))
def test_sums(number):
    if random.random() < 0.5:
        pytest.skip("not today")
    assert add(number, 1) == number + 1
"""
OTHER = "def add(a, b):\n    return b + a\n"
WORTH = {"sum_up": "sound", "flicker": "flaky", "broken": "broken", "idle": "stub_passes"}


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """One task of each kind."""
    folder = write_exercise(tmp_path / "bench")
    write_exercise(folder, "flicker", tests=FLICKERING)
    write_exercise(folder, "broken", example=WRONG)
    return write_exercise(folder, "idle", stub=OTHER)


def predictions(path: Path) -> Path:
    """A right answer to every task."""
    rows = [
        {
            "instance_id": f"aider_python_{slug}",
            "model_name_or_path": "somebody",
            "model_patch": diff({f"{slug}.py": before.encode()}, {f"{slug}.py": f"# Mine.\n{RIGHT}".encode()}),
        }
        for slug, before in {"sum_up": STUB, "flicker": STUB, "broken": STUB, "idle": OTHER}.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def by_slug(content: dict[str, Any]) -> dict[str, Any]:
    return {row["instance_id"].removeprefix("aider_python_"): row for row in content["instances"]}


@pytest.mark.usefixtures("bwrap")
def test_later_scores_are_shown_raw_and_calibrated(run: Run, home: Path, tmp_path: Path, bench: Path) -> None:
    score = ("report.py", predictions(tmp_path / "preds.jsonl"), "-b", bench, "--sandbox", "bwrap")
    before = run(*score)
    assert f"without 1 void here (never calibrated: report.py --calibrate -b {bench})\n" in before.stdout

    done = run("report.py", "--calibrate", "-b", bench, "--sandbox", "bwrap")
    assert done.returncode == 0, done.stderr
    content = results(home, "calibrate--bench")
    found = by_slug(content)
    assert {slug: row["worth"] for slug, row in found.items()} == WORTH
    assert (found["sum_up"]["gold_passed"], found["sum_up"]["advice"]) == (3, "")
    assert found["sum_up"]["proof"].startswith("canary")
    assert found["sum_up"]["canaries"][0]["path"] == "sum_up_test.py"
    assert found["flicker"]["gold_passed"] == 1
    assert all(len(set(statuses)) > 1 for statuses in found["flicker"]["differing"].values())
    assert content["totals"]["selected"] == 4
    assert "its reference flickers here: 1 of 3 runs passed (flicker_test::test_sums[" in done.stdout
    logs = home / "logs" / "calibrate--bench"
    assert {path.name for path in logs.glob("aider_python_flicker.*")} == {
        f"aider_python_flicker.{label}.eval.log" for label in ("gold-1", "gold-2", "gold-3", "null")
    }

    after = run(*score)
    (path,) = home.glob("predictions/preds-*/results.json")
    content = json.loads(path.read_text())
    assert sorted(content["void"]) == ["aider_python_broken", "aider_python_flicker", "aider_python_idle"]
    assert content["void"]["aider_python_flicker"].startswith("its reference flickers here: 1 of 3 runs passed (")
    assert content["void"]["aider_python_broken"].startswith("its reference fails here: ")
    assert content["void"]["aider_python_idle"] == "its untouched stub passes"
    assert (content["rate"]["of"], content["totals"]["calibrated"]) == (4, 4)
    assert (content["rate_calibrated"]["resolved"], content["rate_calibrated"]["of"]) == (1, 1)
    assert "of 1, without 3 void here" in after.stdout
    assert "never" not in after.stdout

    refused = run("report.py", "calibrate--bench")
    assert refused.returncode == 2
    assert "there are no predictions in it to score" in refused.stderr


@pytest.mark.usefixtures("bwrap")
def test_a_calibration_that_was_interrupted_goes_on_and_a_finished_one_is_done_again(
    run: Run, home: Path, tmp_path: Path
) -> None:
    for number in range(7):
        write_exercise(tmp_path / "bench", f"sum-{number}")
    flags = ["--calibrate", "-b", str(tmp_path / "bench"), "--sandbox", "bwrap", "--test-jobs", "1"]
    command = [sys.executable, str(PROJECT / "report.py"), *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stderr
    for line in process.stderr:
        if line.startswith("calibrate 1/"):
            os.kill(process.pid, signal.SIGINT)
            break
    process.stderr.read()
    process.stderr.close()
    assert process.wait(300) == 130
    logs = home / "logs" / "calibrate--bench"
    finished = {path: path.stat().st_mtime_ns for path in logs.glob("*.eval.log")}
    assert 0 < len(finished) < 7 * 4

    again = run("report.py", *flags)
    assert again.returncode == 0, again.stderr
    assert f"Going on with what was not finished: {len(finished) // 4} of 7 tasks are done" in again.stderr
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert results(home, "calibrate--bench")["totals"]["sound"] == 7

    anew = run("report.py", *flags, "-t", "sum-1")
    assert anew.returncode == 0, anew.stderr
    assert "Going on" not in anew.stderr
    (path,) = logs.glob("*sum_1.gold-1.*")
    assert path.stat().st_mtime_ns > finished.get(path, 0)


def test_repositories_are_calibrated_by_the_tests_they_require(run: Run, home: Path, tmp_path: Path) -> None:
    ready_with_repository()
    done = run("report.py", "--calibrate", "-b", write_rows(tmp_path))
    assert done.returncode == 0, done.stderr
    (row,) = results(home, "calibrate--calc")["instances"]
    assert (row["instance_id"], row["worth"], row["gold_passed"]) == (name(1), "sound", 3)
    assert row["stub"]["outcome"] == "tests_failed"
    gold = run("report.py", "--gold", "-b", write_rows(tmp_path))
    assert gold.returncode == 0, gold.stderr
    content = results(home, "gold--calc")
    assert ([each["cached"] for each in content["instances"]], content["totals"]["calibrated"]) == ([True], 1)
