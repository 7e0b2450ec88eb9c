"""Three shards of the bundled tasks, as users and queues start them, are one run again."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.support.exercises import write_exercise
from tests.support.programs import read, report

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

FLAGS = ("-b", "demo-python", "-a", "gold", "-n", 4, "--sandbox", "bwrap")
OF_ONE_RUN = ("run", "shards", "provenance", "aider", "time")
"""What of results.json says which run it was, and when."""
OF_ONE_TASK = ("dname", "cached", "seconds", "model_seconds", "stdout")
"""What of a row does, and what a clock said."""


def shard(run: Run, text: str, *more: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run("harness.py", *FLAGS, "--run", "cut", "--shard", text, *more)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def comparable(content: dict[str, Any]) -> dict[str, Any]:
    rows = [{key: value for key, value in row.items() if key not in OF_ONE_TASK} for row in content["instances"]]
    return {**{key: value for key, value in content.items() if key not in OF_ONE_RUN}, "instances": rows}


@pytest.mark.smoke
def test_all_shards_are_the_whole_again(run: Run, home: Path) -> None:
    for number in (3, 1, 2):
        shard(run, f"{number}/3")
    done = report(run, "cut")
    assert "note: " not in done.stderr
    assert run("harness.py", *FLAGS, "--run", "whole").returncode == 0
    report(run, "whole")
    folders = [home / "predictions" / name for name in ("cut", "whole")]
    assert len({(folder / "all_preds.jsonl").read_bytes() for folder in folders}) == 1
    assert comparable(read(home, "cut")) == comparable(read(home, "whole"))
    content = read(home, "cut")
    assert {row["dname"] for row in content["instances"]} == set(content["provenance"]["sources"])
    assert content["shards"] == {"of": 3, "given": [1, 2, 3], "missing": [], "overlapping": []}
    known = content["provenance"]["source_runs"]["cut--3-of-3"]
    assert "--shard 3/3" in known["command"] and known["sandbox"] and known["host"]


def test_a_missing_and_a_doubled_shard_are_said_and_what_is_missing_is_not_measured(
    run: Run, home: Path, tmp_path: Path
) -> None:
    for number in (1, 2):
        shard(run, f"{number}/3")
    elsewhere = tmp_path / "node7" / "predictions" / "cut--2-of-3"
    shutil.copytree(home / "predictions/cut--2-of-3", elsewhere)
    done = report(run, "cut--1-of-3", "cut--2-of-3", elsewhere, code=1)
    assert "note: given more than once of the 3 shards of 'cut': 2" in done.stderr
    assert (
        "note: missing of the 3 shards of 'cut': 3, with 1 task, not measured but where another run has it"
        in done.stderr
    )
    content = read(home, "cut")
    ((missing, why),) = content["not_measured"].items()
    assert why == "shard 3 of 3 is missing: run it, or name it too"
    assert (content["shards"]["given"], content["shards"]["missing"]) == ([1, 2, 2], [3])
    assert (content["totals"]["selected"], content["rate"]["of"]) == (4, 3)
    # Scored again by its name, then whole.
    assert report(run, "cut", code=1).stdout == done.stdout
    shard(run, "3/3")
    report(run, *(f"cut--{number}-of-3" for number in (1, 2, 3)))
    assert missing in read(home, "cut")["resolved"]


def test_more_shards_than_tasks_and_the_same_command_again(run: Run, home: Path) -> None:
    done = shard(run, "6/6")
    assert "0 tasks" in done.stderr and "there are fewer tasks than shards, and it has none" in done.stderr
    stored = json.loads((home / "predictions/cut--6-of-6/run.json").read_text())
    assert stored["selected"] == [] and stored["shard"]["tasks"] == 4
    report(run, "cut--6-of-6")
    shard(run, "2/6")
    assert "1 done before" in shard(run, "2/6").stderr
    assert "'cut--2-of-6' is one of 6 shards: 'report.py cut' makes one" in report(run).stderr
    report(run, "cut--2-of-6", "cut--6-of-6", code=1)
    assert read(home, "cut")["shards"]["missing"] == [1, 3, 4]


def test_what_cannot_be_is_said_before_anything_is_done(run: Run, home: Path) -> None:
    shard(run, "1/3", "--dry-run")
    assert not (home / "predictions").exists() or not any((home / "predictions").iterdir())
    assert "--shard takes I/N" in shard(run, "4/3", code=2).stderr
    grid = run("harness.py", "-m", "replay/none", "--grid", "--shard", "1/2")
    assert (grid.returncode, "--grid does not go with --shard" in grid.stderr) == (2, True)
    shard(run, "1/3")
    assert re.search(r"selection: 4 tasks \(\w+\) then, 3 tasks", shard(run, "1/3", "-n", 3, code=2).stderr)


def test_a_dry_run_shows_the_tasks_of_the_shard(run: Run, home: Path) -> None:
    whole = run("harness.py", *FLAGS, "--dry-run").stdout
    listed = [re.findall(r"^  (\S+)", shard(run, f"{number}/2", "--dry-run").stdout, re.M) for number in (1, 2)]
    assert sorted(listed[0] + listed[1]) == re.findall(r"^  (\S+)", whole, re.M)
    assert listed[0] and listed[1]


def test_a_recorded_run_is_played_again_in_shards(run: Run, home: Path, tmp_path: Path) -> None:
    from tests.support.exercises import RIGHT, reply, write_replies

    for slug in ("add-one", "add-two"):
        write_exercise(tmp_path / "bench", slug)
    lines = [{"match": f"{name}.py", "text": reply(RIGHT, f"{name}.py")} for name in ("add_one", "add_two")]
    model = f"replay/{write_replies(tmp_path / 'replies.jsonl', *lines)}"
    flags = ("--sandbox", "bwrap")
    assert run("harness.py", "-b", tmp_path / "bench", "-m", model, "--run", "old", *flags).returncode == 0
    for number in (1, 2):
        done = run("harness.py", "-m", "replay:old", "--shard", f"{number}/2", *flags)
        assert done.returncode == 0, done.stderr
    report(run, "replay--old")
    assert len(read(home, "replay--old")["resolved"]) == 2
