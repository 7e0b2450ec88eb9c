"""The cache that all runs share: a variable of the user's environment cannot change it, and `--fresh` repairs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.support.exercises import RIGHT, WRONG, reply, write_exercise, write_replies

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

CODE = "return a + b"
"""Of the right solution; also what an unlucky variable holds."""
SECRET = "s-5f1c09d2a77b4e99aa01"
TASK = "aider_python_sum_up"


def score(run: Run, home: Path, *arguments: object, **environment: str) -> dict[str, Any]:
    done = run("report.py", "--sandbox", "bwrap", *arguments, **environment)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    results = max((home / "predictions").glob("*/results.json"), key=lambda path: path.stat().st_mtime)
    (row,) = json.loads(results.read_text())["instances"]
    return {**row, "stderr": done.stderr}


def entries(tmp_path: Path, *folders: str) -> dict[Path, bytes]:
    found = [path for folder in folders for path in (tmp_path / "cache" / folder).rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in found}


def test_a_variable_that_looks_like_a_key_does_not_change_references_for_later_runs(
    run: Run, home: Path, tmp_path: Path
) -> None:
    bench = write_exercise(tmp_path / "bench")
    assert score(run, home, "--gold", "-b", bench, DEPLOY_TOKEN=CODE)["resolved"]
    (patch,) = entries(tmp_path, "patches").values()
    assert CODE.encode() in patch
    assert score(run, home, "--gold", "-b", bench)["resolved"]


def test_a_variable_that_looks_like_a_key_does_not_change_predictions(run: Run, home: Path, tmp_path: Path) -> None:
    bench, replies = write_exercise(tmp_path / "bench"), write_replies(tmp_path / "replies", reply(RIGHT))
    flags = ("-b", bench, "-m", f"replay/{replies}:whole", "--run", "it", "--sandbox", "bwrap")
    done = run("harness.py", *flags, DEPLOY_TOKEN=CODE)
    assert done.returncode == 0, done.stderr
    prediction = json.loads((home / "predictions" / "it" / f"{TASK}.json").read_text())
    assert CODE in prediction["model_patch"] and "masked" not in prediction
    assert "is named like a key" in done.stderr
    assert score(run, home, "it", DEPLOY_TOKEN=CODE)["resolved"]
    assert CODE in (home / "predictions" / "it" / "all_preds.jsonl").read_text()


def test_no_key_of_the_environment_is_in_the_cache_after_a_run(run: Run, home: Path, tmp_path: Path) -> None:
    bench, wrong = write_exercise(tmp_path / "bench"), WRONG + f"print('{SECRET}')\n"
    flags = ("-b", bench, "-m", f"replay/{write_replies(tmp_path / 'replies', reply(wrong))}:whole", "--run", "it")
    assert run("harness.py", *flags, "--sandbox", "bwrap", "--tries", 1, "--turns", 1, MY_SECRET=SECRET).returncode == 0
    assert score(run, home, "it", MY_SECRET=SECRET)["outcome"] == "tests_failed"
    found = entries(tmp_path, "patches", "prebuilt", "verdicts", "probes")
    assert found, "the reference's own"
    assert not [path for path, content in found.items() if SECRET.encode() in content]


def test_fresh_repairs_every_entry_that_it_uses(run: Run, home: Path, tmp_path: Path) -> None:
    from retrial.grading import verdict_cache

    bench = write_exercise(tmp_path / "bench")
    assert score(run, home, "--gold", "-b", bench)["resolved"]
    (path,) = entries(tmp_path, "patches")
    verdict_cache.write_entry(path, verdict_cache.read_entry(path).replace(CODE, "***"))
    assert not score(run, home, "--gold", "-b", bench)["resolved"]
    assert score(run, home, "--gold", "-b", bench, "--fresh")["resolved"]
    assert score(run, home, "--gold", "-b", bench)["resolved"]


def test_damaged_entries_are_named_and_made_again(run: Run, home: Path, tmp_path: Path) -> None:
    bench = write_exercise(tmp_path / "bench")
    assert score(run, home, "--gold", "-b", bench)["resolved"]
    before = entries(tmp_path, "patches", "verdicts")
    for path, content in before.items():
        path.write_bytes(content.replace(CODE.encode(), b"***").replace(b"resolved", b"tampered"))
    row = score(run, home, "--gold", "-b", bench)
    assert row["resolved"]
    assert len(before) >= 2 and all(str(path) in row["stderr"] for path in before)
    row = score(run, home, "--gold", "-b", bench)
    assert row["resolved"] and "damaged" not in row["stderr"]
