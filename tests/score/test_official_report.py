"""Official files: the schema-2 run report, and what leaderboards want of each instance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retrial.benchmarks.swebench import container_script, official_grader
from retrial.benchmarks.swebench.official_grader import OfficialTests
from retrial.score import official_report
from retrial.score.predictions_file import Submission
from retrial.score.save import scored_row
from retrial.score.scorer import Scored, verdict_of
from retrial.store.runs import Run
from retrial.types import Outcome
from tests.conftest import PROJECT
from tests.support.rows import CHECK, FAILED, PASSED, TREE, edit, graded, output, row, task

BOTH = (
    "submitted",
    "completed",
    "resolved",
    "unresolved",
    "infra_failure",
    "ambiguous_failure",
    "empty_patch",
    "error",
)
COUNTS = (*BOTH, "total")
LISTS = (*BOTH, "incomplete")
REFUSED = f"{container_script.REFUSED}error: a.py: patch does not apply\n"


def not_measured(instance_id: str, why: str) -> Scored:
    submission = Submission(instance_id=instance_id, model_name_or_path="me", patch=edit())
    return Scored(submission=submission, task=task(instance_id, TREE), verdict=verdict_of(RuntimeError(why)))


def rows() -> tuple[Scored, ...]:
    return (
        graded("good", output(*PASSED), exit_code=0),
        graded("wrong", output(*FAILED)),
        graded("starved", output("Cannot allocate memory")),
        graded("lost", output("ModuleNotFoundError: no module named x")),
        graded("late", output(*PASSED).partition("PASSED")[0], exit_code=None, timed_out=True),
        graded("refused", REFUSED, exit_code=0),
        row("nothing", Outcome.PATCH_EMPTY, "", tree=TREE, check=CHECK),
        not_measured("away", "Cannot connect to the Docker daemon"),
    )


def report(scored: tuple[Scored, ...] = rows()) -> dict[str, Any]:
    submitted = {each.task.instance_id for each in scored} | {"skipped"}
    found = official_report.run_report(submitted | {"never"}, submitted, tuple(map(scored_row, scored)))
    assert found is not None
    return found


def test_every_official_field_is_there_and_counts_are_those_of_the_lists() -> None:
    found = report()
    expected = {*(f"{name}_instances" for name in COUNTS), *(f"{name}_ids" for name in LISTS)}
    assert set(found) == expected | {"failure_reasons", "schema_version"}
    assert found["schema_version"] == 2
    for name in LISTS:
        ids = found[f"{name}_ids"]
        assert isinstance(ids, list) and ids == sorted(ids)
        assert name == "incomplete" or found[f"{name}_instances"] == len(ids)
    assert found["total_instances"] == 10


def test_every_instance_is_in_the_list_it_belongs_to() -> None:
    found = report()
    assert {name: found[f"{name}_ids"] for name in LISTS if name != "submitted"} == {
        "completed": ["good", "lost", "starved", "wrong"],
        "resolved": ["good"],
        "unresolved": ["lost", "starved", "wrong"],
        "incomplete": ["never"],
        "empty_patch": ["nothing"],
        "error": ["away", "late", "refused", "skipped"],
        "infra_failure": ["away", "starved"],
        "ambiguous_failure": ["late", "lost"],
    }
    assert found["failure_reasons"] == {
        "away": "container_unavailable",
        "late": "tests_timed_out",
        "lost": "missing_module",
        "starved": "out_of_memory",
    }


def test_what_is_resolved_is_what_the_official_grading_says() -> None:
    odd = graded("odd", output(*PASSED), exit_code=3)
    assert not odd.verdict.resolved
    assert report((odd,))["resolved_ids"] == ["odd"]


def test_a_benchmark_without_official_grading_has_no_report() -> None:
    assert scored_row(row("one", Outcome.RESOLVED)).standing is None


def test_an_instance_that_was_run_has_all_four_files() -> None:
    scored = graded("good", output(*PASSED), exit_code=0)
    found = official_report.files(scored)
    assert found["patch.diff"].decode() == scored.submission.patch
    assert found["eval.sh"] == CHECK.files["lean.sh"]
    log = found["test_output.txt"].decode()
    assert log.startswith(f"+ : '{official_grader.START}'") and log.endswith(f"+ : '{official_grader.END}'\n")
    content = json.loads(found["report.json"])
    assert content["good"]["resolved"] is True
    assert content["good"]["tests_status"]["FAIL_TO_PASS"]["success"] == ["t.py::new"]


@pytest.mark.parametrize(
    ("instance_id", "names"),
    [
        ("wrong", {"patch.diff", "test_output.txt", "eval.sh", "report.json"}),
        ("late", {"patch.diff", "test_output.txt", "eval.sh"}),
        ("refused", {"patch.diff"}),
        ("nothing", set()),
        ("away", {"patch.diff"}),
    ],
)
def test_nothing_is_reported_of_what_did_not_happen(instance_id: str, names: set[str]) -> None:
    (scored,) = (each for each in rows() if each.task.instance_id == instance_id)
    assert set(official_report.files(scored)) == names


def test_an_earlier_verdict_leaves_no_files_behind(tmp_path: Path) -> None:
    run = Run(tmp_path, "R")
    run.write_official("one", official_report.files(graded("one", output(*PASSED), exit_code=0)))
    run.write_official("one", official_report.files(graded("one", REFUSED, exit_code=0)))
    assert [path.name for path in (tmp_path / "logs/R/one").iterdir()] == ["patch.diff"]


def test_a_patch_with_half_a_character_can_be_read_afterwards() -> None:
    scored = row("one", Outcome.PATCH_DID_NOT_APPLY, "half \ud800\n", tree=TREE, check=CHECK)
    assert official_report.files(scored) == {"patch.diff": b"half ?\n"}


def test_bytes_that_are_no_utf8_stay_what_they_are() -> None:
    scored = row(
        "one", Outcome.PATCH_DID_NOT_APPLY, b"caf\xe9\n".decode("utf-8", "surrogateescape"), tree=TREE, check=CHECK
    )
    assert official_report.files(scored) == {"patch.diff": b"caf\xe9\n"}


def test_the_run_report_is_taken_for_no_prediction(tmp_path: Path) -> None:
    run = Run(tmp_path, "R")
    run.write_official_report(report())
    assert json.loads((tmp_path / "predictions/R/swebench-report.json").read_text())["schema_version"] == 2
    assert list(run.predictions()) == []
    run.write_official_report(None)
    assert not (tmp_path / "predictions/R/swebench-report.json").exists()


OFFICIAL = """
import json, sys
from types import ModuleType

# Only asked about images that are left over, with an engine; it would bring all dependencies along.
for name in ("swebench.image_builder", "swebench.image_builder.docker_utils"):
    sys.modules[name] = ModuleType(name)
sys.modules["swebench.image_builder.docker_utils"].list_images = None

from retrial.benchmarks.swebench import official_grader

given = json.load(sys.stdin)
dataset = [{"instance_id": instance_id} for instance_id in given["dataset"]]
official_grader._module("reporting").make_run_report(given["predictions"], dataset, "R")
"""


def test_the_official_runner_makes_the_same_report_of_the_files_we_leave(tmp_path: Path) -> None:
    ours = report()
    run = Run(tmp_path / "home", "R")
    for each in rows():
        run.write_official(each.task.instance_id, official_report.files(each))
    (tmp_path / "logs/run_evaluation/R").mkdir(parents=True)
    (tmp_path / "logs/run_evaluation/R/me").symlink_to(run.logs)
    patches = {each.task.instance_id: each.submission.patch for each in rows()} | {"skipped": edit()}
    predictions = {
        key: {"instance_id": key, "model_name_or_path": "me", "model_patch": patch} for key, patch in patches.items()
    }
    subprocess.run(
        [sys.executable, "-c", OFFICIAL],
        input=json.dumps({"predictions": predictions, "dataset": [*patches, "never"]}),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        text=True,
        check=True,
    )
    theirs = json.loads((tmp_path / "me.R.json").read_text())
    assert set(theirs) == set(ours)
    # Of these it reads its own log of the run, which we do not write.
    unknown = {"away", "late"}
    about_failures = [name for name in ours if "failure" in name]
    assert {name: ours[name] for name in ours if name not in about_failures} == {
        name: theirs[name] for name in theirs if name not in about_failures
    }
    assert theirs["failure_reasons"] == {
        key: reason for key, reason in ours["failure_reasons"].items() if key not in unknown
    }
    for name in ("infra_failure_ids", "ambiguous_failure_ids"):
        assert theirs[name] == [key for key in ours[name] if key not in unknown]


def test_an_eval_type_of_its_own_is_graded_as_such() -> None:
    required = OfficialTests(parser="parse_log_pytest", fail_to_pass=("t.py::new",), eval_type="fail_only")
    report = official_grader.report("a", required, "patch", output("PASSED t.py::old"))
    assert report is not None and report["a"]["resolved"] is True


def test_a_run_in_which_nothing_was_measured_has_a_report_and_its_patches_too() -> None:
    scored = not_measured("one", "no such image")
    report = official_report.run_report({"one"}, {"one"}, (scored_row(scored),))
    assert report is not None and (report["error_ids"], report["completed_ids"]) == (["one"], [])
    assert set(official_report.files(scored)) == {"patch.diff"}
