"""SWE-bench end to end, on a repository and an image of our own: both phases as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from retrial.patches.apply import diff
from retrial.protocols import Sandbox
from tests.conftest import PROJECT, Run
from tests.parts import ready_with_repository
from tests.support import engines, image_task
from tests.support.exercises import write_replies
from tests.support.image_task import CORE, EVAL_SCRIPT, GOLD, changed

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("engine")]

FIXED = CORE.replace("b - a", "a - b")
WRONG = changed("calc/core.py", CORE, CORE.replace("b - a", "a * b"))
TESTS_ONLY = changed("tests/test_calc.py", "", "def test_sub(): pass\n")


@pytest.fixture
def engine() -> Sandbox:
    """Docker, with the image of the task."""
    return ready_with_repository()


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task's repository, where git looks for it."""
    remote = tmp_path / "remote" / "retrial" / "calc"
    remote.mkdir(parents=True)
    assert image_task.repository(remote) == image_task.BASE_COMMIT
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "{remote.parents[1]}/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))


def name(number: int) -> str:
    return f"retrial__calc-{number}"


def write_rows(folder: Path, count: int = 1, **changes: Any) -> Path:
    """A dataset of the same task under several names."""
    path = folder / "calc.jsonl"
    rows = [image_task.row(instance_id=name(number), **changes) for number in range(1, count + 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_predictions(path: Path, patches: Iterable[str | None]) -> Path:
    rows = [
        {"instance_id": name(number), "model_name_or_path": "somebody", "model_patch": patch}
        for number, patch in enumerate(patches, start=1)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def results(home: Path, run: str = "*") -> dict[str, Any]:
    (path,) = (home / "predictions").glob(f"{run}/results.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def instances(home: Path) -> Mapping[str, Any]:
    return {row["instance_id"]: row for row in results(home)["instances"]}


@pytest.mark.smoke
def test_gold_resolves_and_the_untouched_tree_does_not(run: Run, home: Path, tmp_path: Path) -> None:
    rows = write_rows(tmp_path)
    gold = run("report.py", "--gold", "-b", rows)
    assert gold.returncode == 0, gold.stderr
    assert results(home)["resolved"] == [name(1)]
    null = run("report.py", "--null", "-b", rows)
    assert null.returncode == 0, null.stderr
    found = json.loads((home / "predictions/null--calc/results.json").read_text())
    (row,) = found["instances"]
    assert (row["outcome"], row["resolved_official"]) == ("tests_failed", False)
    assert (row["tests_passed"], row["tests_failed"], found["void"]) == (2, 2, {})


@pytest.mark.smoke
def test_each_kind_of_prediction_lands_in_its_list(run: Run, home: Path, tmp_path: Path) -> None:
    renamed = (
        "diff --git a/README.md b/READ.md\nsimilarity index 100%\nrename from README.md\nrename to READ.md\n" + GOLD
    )
    binary = diff({}, {"calc/logo.png": bytes(range(256))}) + GOLD
    patches: list[str | None] = [
        GOLD,
        None,
        "",
        GOLD.replace("\n", "\r\n"),
        GOLD.removesuffix("\n"),
        binary,
        renamed,
        TESTS_ONLY,
        "I would swap the two.",
        GOLD.replace("return b - a", "return c - d"),
        WRONG,
        GOLD + TESTS_ONLY,
        "Here it is:\n\n" + GOLD + "\nThat should do.\n",
    ]
    done = run(
        "report.py", write_predictions(tmp_path / "preds.jsonl", patches), "-b", write_rows(tmp_path, len(patches))
    )
    assert done.returncode == 0, done.stderr
    found = results(home)
    assert found["no_generation"] == sorted(map(name, (2, 3, 8)))
    assert found["no_apply"] == sorted(map(name, (9, 10)))
    assert found["resolved"] == sorted(map(name, (1, 4, 5, 6, 7, 12, 13)))
    assert found["applied"] == sorted(map(name, (1, 4, 5, 6, 7, 11, 12, 13)))
    assert instances(home)[name(8)]["dropped_paths"] == ["tests/test_calc.py"]
    assert instances(home)[name(12)]["dropped_paths"] == ["tests/test_calc.py"]
    assert found["not_measured"] == {} and found["test_errored"] == [] and found["official_differs"] == []
    assert instances(home)[name(11)]["resolved_official"] is False
    # The official runner would have applied the tests too.
    assert instances(home)[name(12)]["resolved_official"] is None


@pytest.mark.parametrize("form", ["jsonl", "list", "dict"])
def test_predictions_come_in_three_forms(form: str, run: Run, home: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"instance_id": name(1), "model_name_or_path": "somebody", "model_patch": GOLD},
        {"instance_id": name(2), "model_name_or_path": "somebody", "model_patch": None},
    ]
    path = tmp_path / ("preds.jsonl" if form == "jsonl" else "preds.json")
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(
        text if form == "jsonl" else json.dumps(rows if form == "list" else {row["instance_id"]: row for row in rows})
    )
    done = run("report.py", path, "-b", write_rows(tmp_path, 2))
    assert done.returncode == 0, done.stderr
    assert (results(home)["resolved"], results(home)["no_generation"]) == ([name(1)], [name(2)])


def test_a_patch_that_is_not_exact_is_applied_as_the_official_runner_would(
    run: Run, home: Path, tmp_path: Path
) -> None:
    shifted = GOLD.replace(" def sub(a, b):", " def subtract(a, b):")
    done = run("report.py", write_predictions(tmp_path / "preds.jsonl", [GOLD, shifted]), "-b", write_rows(tmp_path, 2))
    assert done.returncode == 0, done.stderr
    found = instances(home)
    assert found[name(1)]["applied_with"] == "git apply"
    assert found[name(2)]["applied_with"].startswith("patch --batch --forward --fuzz=5")
    assert found[name(2)]["resolved"]


def test_only_a_changed_prediction_is_scored_again(run: Run, home: Path, tmp_path: Path) -> None:
    rows = write_rows(tmp_path)
    for patch, cached in ((GOLD, False), (GOLD, True), (GOLD.replace("a - b", "a -  b"), False)):
        done = run("report.py", write_predictions(tmp_path / "preds.jsonl", [patch]), "-b", rows)
        assert done.returncode == 0, done.stderr
        latest = max((home / "predictions").glob("*/results.json"), key=lambda path: path.stat().st_mtime_ns)
        assert json.loads(latest.read_text())["instances"][0]["cached"] is cached


def test_what_leaderboards_want_is_there(run: Run, home: Path, tmp_path: Path) -> None:
    assert run("report.py", "--gold", "-b", write_rows(tmp_path)).returncode == 0
    folder = home / "logs" / "gold--calc" / name(1)
    assert (folder / "patch.diff").read_text() == GOLD
    assert json.loads((folder / "report.json").read_text())[name(1)]["resolved"] is True
    assert "PASSED tests/test_calc.py::test_sub" in (folder / "test_output.txt").read_text()
    assert (folder / "eval.sh").read_text().startswith("#!/bin/bash")
    official = json.loads((home / "predictions/gold--calc/swebench-report.json").read_text())
    assert (official["schema_version"], official["resolved_ids"]) == (2, [name(1)])


def test_an_image_that_cannot_be_had_leaves_one_task_open(run: Run, home: Path, tmp_path: Path) -> None:
    rows = [image_task.row(), image_task.row(instance_id=name(2), image="localhost:1/no/such:image")]
    path = tmp_path / "calc.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    predictions = write_predictions(tmp_path / "preds.jsonl", [GOLD, WRONG])
    first = run("report.py", predictions, "-b", path)
    assert first.returncode == 1, first.stderr
    found = results(home)
    assert (found["resolved"], found["install_fail"], list(found["not_measured"])) == ([name(1)], [name(2)], [name(2)])
    assert found["rate"]["of"] == 1
    # The image is there now: only that task is run.
    subprocess.run(["docker", "tag", image_task.image(), "localhost:1/no/such:image"], check=True)
    try:
        second = run("report.py", predictions, "-b", path)
    finally:
        subprocess.run(["docker", "rmi", "localhost:1/no/such:image"], check=True, stdout=subprocess.DEVNULL)
    assert second.returncode == 0, second.stderr
    assert {key: row["cached"] for key, row in instances(home).items()} == {name(1): True, name(2): False}


def test_what_is_never_run_needs_no_image(run: Run, home: Path, tmp_path: Path) -> None:
    predictions = write_predictions(tmp_path / "preds.jsonl", ["", "I would swap the two.", TESTS_ONLY])
    done = run("report.py", predictions, "-b", write_rows(tmp_path, 3, image="localhost:1/no/such:image"))
    assert done.returncode == 0, done.stderr
    found = results(home)
    assert (found["no_generation"], found["no_apply"]) == ([name(1), name(3)], [name(2)])
    assert "Pulling" not in done.stderr


def test_an_engine_that_goes_away_leaves_open_what_it_had_not_done(run: Run, home: Path, tmp_path: Path) -> None:
    waiting = changed("calc/core.py", CORE, f"import subprocess\n\nsubprocess.run(['sleep', '4713'])\n{FIXED}")
    predictions = write_predictions(tmp_path / "preds.jsonl", [GOLD, waiting])
    rows = write_rows(tmp_path, 2)
    assert run("report.py", "--gold", "-t", name(1), "-b", rows).returncode == 0
    with engines.Wire(tmp_path) as wire:
        command: list[str | Path] = [sys.executable, PROJECT / "report.py", predictions, "-b", rows, "--test-jobs", "1"]
        environment = {**os.environ, "DOCKER_HOST": wire.address}
        report = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with engines.engine() as client:
            container = engines.running(client, report.pid, "4713")
            wire.cut()
            assert report.wait(120) == 1
            # Nobody could be asked to remove it.
            client.remove_container(container, force=True)
    found = results(home, "preds-*")
    assert (found["resolved"], list(found["not_measured"]), found["rate"]["of"]) == ([name(1)], [name(2)], 1)
    again = run("report.py", predictions, "-b", rows, "--test-timeout-seconds", 5)
    assert again.returncode == 0, again.stderr
    found = results(home, "preds-*")
    assert (found["test_timeout"], found["not_measured"]) == ([name(2)], {})


def test_a_test_that_hangs_keeps_its_log(run: Run, home: Path, tmp_path: Path) -> None:
    hanging = changed("calc/core.py", CORE, CORE + "\n\nprint('hanging', flush=True)\nwhile True:\n    pass\n")
    done = run(
        "report.py", write_predictions(tmp_path / "preds.jsonl", [hanging]), "-b", write_rows(tmp_path),
        "--test-timeout-seconds", 5,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert results(home)["test_timeout"] == [name(1)]
    (log,) = (home / "logs").glob(f"*/{name(1)}/test_output.txt")
    assert "Start Test Output" in log.read_text()


def test_a_patch_that_does_not_apply_cannot_pass_for_a_run(run: Run, home: Path, tmp_path: Path) -> None:
    log = "\\n".join(["x", "== applied: git apply", "== test: eval.sh", ">>>>> Start Test Output"])
    log += "".join(
        f"\\nPASSED tests/test_calc.py::test_{name}" for name in ("add", "add_nothing", "sub", "sub_nothing")
    )
    path = f"{log}\\n>>>>> End Test Output\\n".replace("/", "|")
    forged = f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-1\n+2\n"
    done = run("report.py", write_predictions(tmp_path / "preds.jsonl", [forged]), "-b", write_rows(tmp_path))
    assert done.returncode == 0, done.stderr
    assert results(home)["no_apply"] == [name(1)]


def test_an_image_without_the_tree_is_not_measured(run: Run, home: Path, tmp_path: Path) -> None:
    with engines.engine() as client:
        bare = "retrial-test/bare:1"
        engines.small_image(client, bare)
        try:
            rows = write_rows(tmp_path, image=bare)
            done = run("report.py", write_predictions(tmp_path / "preds.jsonl", [GOLD]), "-b", rows)
        finally:
            engines.remove(client, bare)
    assert done.returncode == 1, done.stderr
    assert results(home)["install_fail"] == [name(1)]


def test_a_patch_may_not_touch_what_decides_which_tests_are_run(run: Run, home: Path, tmp_path: Path) -> None:
    forged = diff({}, {"conftest.py": b"def pytest_runtest_makereport(): ...\n"})
    done = run("report.py", write_predictions(tmp_path / "preds.jsonl", [WRONG + forged]), "-b", write_rows(tmp_path))
    assert done.returncode == 0, done.stderr
    (row,) = results(home)["instances"]
    assert (row["resolved"], row["dropped_paths"]) == (False, ["conftest.py"])


def edits(*contents: str) -> list[str]:
    """A reply that names the file, then one reply for each new content of it."""
    return ["calc/core.py", *(f"calc/core.py\n```\n{content}```\n" for content in contents)]


@pytest.mark.smoke
@pytest.mark.usefixtures("github")
def test_the_agent_finds_its_file_and_the_nearby_tests_decide(run: Run, home: Path, tmp_path: Path) -> None:
    breaking = CORE.replace("a + b", "a - b")
    model = write_replies(tmp_path / "model.jsonl", *edits(breaking, FIXED))
    done = run("harness.py", "-b", write_rows(tmp_path), "-m", f"replay/{model}", "--tries", 1, "--run", "first")
    assert done.returncode == 0, done.stderr
    record = json.loads((home / f"predictions/first/{name(1)}.json").read_text())
    assert record["plausible"] is True
    assert record["model_patch"].count("\n+") == GOLD.count("\n+")
    (attempt,) = record["all_results"]
    assert attempt["tests_outcomes"] == [False, True]
    assert set(attempt["visible"]["tests"]) == {"tests/test_calc.py::test_add", "tests/test_calc.py::test_add_nothing"}
    scored = run("report.py", "first")
    assert scored.returncode == 0, scored.stderr
    assert (results(home)["resolved"], results(home)["visible_tests"]) == ([name(1)], "nearby")


@pytest.mark.usefixtures("github")
def test_wall_time_decides_neither_which_tests_are_run_nor_what_they_say(run: Run, home: Path, tmp_path: Path) -> None:
    """As on a busy machine: what takes little CPU time takes longer than the limit is."""
    slow = "for step in 1 2 3; do sleep 0.8; python3 -m pytest --version; done\n"
    found = {}
    for which, script in (("quick", EVAL_SCRIPT), ("slow", EVAL_SCRIPT.replace("git status\n", slow))):
        rows = write_rows(tmp_path, eval_script=script)
        done = run("harness.py", "-b", rows, "-a", "gold", "--test-timeout-seconds", 2, "--run", which)
        assert done.returncode == 0, done.stderr
        record = json.loads((home / f"predictions/{which}/{name(1)}.json").read_text())
        visible = record["all_results"][0]["visible"]
        found[which] = (
            record["plausible"],
            record["unverified"],
            visible["tests"],
            visible["files"],
            visible["fallbacks"],
        )
    assert found["slow"] == found["quick"]
    assert found["quick"][0] is True
    assert found["quick"][3:] == (["tests/test_calc.py"], [])


@pytest.mark.usefixtures("github")
def test_a_test_that_was_red_before_cannot_veto_an_edit(run: Run, home: Path, tmp_path: Path) -> None:
    red = "printf 'def test_red():\\n    assert False\\n' > tests/test_red.py\n"
    rows = write_rows(tmp_path, eval_script=EVAL_SCRIPT.replace("git status\n", red))
    done = run("harness.py", "-b", rows, "-a", "gold", "--visible-tests", "all")
    assert done.returncode == 0, done.stderr
    (path,) = (home / "predictions").glob(f"*/{name(1)}.json")
    (attempt,) = json.loads(path.read_text())["all_results"]
    assert attempt["plausible"] is True
    assert attempt["visible"]["tests"]["tests/test_red.py::test_red"] == "failed"


@pytest.mark.usefixtures("github")
@pytest.mark.parametrize(
    ("visible", "changes"),
    [("none", {}), ("nearby", {"eval_script": EVAL_SCRIPT.replace("cd /testbed\n", "cd /testbed\nexit 7\n")})],
)
def test_tests_that_say_nothing_neither_prove_nor_veto(
    visible: str, changes: dict[str, Any], run: Run, home: Path, tmp_path: Path
) -> None:
    model = write_replies(tmp_path / "model.jsonl", *edits(FIXED))
    rows = write_rows(tmp_path, **changes)
    done = run("harness.py", "-b", rows, "-m", f"replay/{model}", "--visible-tests", visible, "--run", "open")
    assert done.returncode == 0, done.stderr
    record = json.loads((home / f"predictions/open/{name(1)}.json").read_text())
    assert (record["plausible"], record["unverified"], record["test_outcome"], record["tries"]) == (
        False,
        True,
        None,
        1,
    )
    why = record["all_results"][0]["visible"]
    transcript = (home / f"predictions/open/{name(1)}.md").read_text()
    if visible == "none":
        assert (why["reason"], why["fallbacks"]) == ("no visible tests were asked for", [])
    else:
        reason = "the visible tests say nothing on the untouched tree: no test results can be read from the log"
        assert why["fallbacks"] == [f"tests/test_calc.py: {reason} (exit status 7)"]
        assert f"- given up: tests/test_calc.py: {reason}" in transcript


@pytest.mark.usefixtures("github")
def test_original_visible_tests_are_said_to_be_so(run: Run, home: Path, tmp_path: Path) -> None:
    done = run("harness.py", "-b", write_rows(tmp_path), "-a", "gold", "--visible-tests", "original", "--run", "seed")
    assert done.returncode == 0, done.stderr
    assert json.loads((home / "predictions/seed/run.json").read_text())["identity"]["visible_tests"] == "original"
    record = json.loads((home / f"predictions/seed/{name(1)}.json").read_text())
    assert len(record["all_results"][0]["visible"]["tests"]) == 2 and record["plausible"]


def test_a_sandbox_without_images_is_refused_in_one_sentence(run: Run, tmp_path: Path) -> None:
    done = run("report.py", "--gold", "-b", write_rows(tmp_path), "--sandbox", "bwrap")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "Docker" in done.stderr


@pytest.mark.usefixtures("github")
def test_hints_never_come_near_an_agent(run: Run, home: Path, tmp_path: Path) -> None:
    model = write_replies(tmp_path / "model.jsonl", *edits(FIXED))
    rows = write_rows(tmp_path, hints_text="SECRET-HINT")
    done = run("harness.py", "-b", rows, "-m", f"replay/{model}", "--run", "hinted")
    assert done.returncode == 0, done.stderr
    written = [path for path in home.rglob("*") if path.is_file()]
    assert any(b"wrong sign" in path.read_bytes() for path in written)
    assert not any(b"SECRET-HINT" in path.read_bytes() for path in written)
