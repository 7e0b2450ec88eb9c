"""A verdict by required tests: the official one, but for what a log alone cannot be believed in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrial import image_trees, official
from retrial.judging import judge
from retrial.types import Check, Execution, Outcome, Required, Status

REQUIRED = Required(
    parser="parse_log_pytest", fail_to_pass=("t.py::new",), pass_to_pass=("t.py::old", "t.py::many[one")
)
CHECK = Check(script="", files={}, reader="", required=REQUIRED)
PASSED = ("PASSED t.py::new", "PASSED t.py::old", "PASSED t.py::many[one-a]", "PASSED t.py::many[one-b]")


def ran(*lines: str, exit_code: int | None = 0, applied: str = "git apply") -> Execution:
    said = [f"{image_trees.APPLIED}{applied}", f"{image_trees.STARTED}{image_trees.LEAN}"]
    marked = [f"+ : '{official.START}'", *lines, f"+ : '{official.END}'", ""]
    return Execution(exit_code=exit_code, stdout="\n".join([*said, *marked]), stderr="", seconds=1.0)


def test_all_required_tests_passed() -> None:
    verdict = judge(CHECK, ran(*PASSED, "FAILED t.py::other - of old", exit_code=1))
    assert (verdict.outcome, verdict.official, verdict.proof) == (Outcome.RESOLVED, True, "log")
    assert verdict.applied == "git apply"
    assert verdict.tests["t.py::other"] is Status.FAILED


def test_a_required_test_that_failed_is_named() -> None:
    verdict = judge(CHECK, ran(*PASSED[1:], "FAILED t.py::new - no", exit_code=1))
    assert (verdict.outcome, verdict.official) == (Outcome.TESTS_FAILED, False)
    assert verdict.reason == "1 of 3 required tests did not pass: t.py::new"


def test_a_name_that_was_cut_off_stands_for_all_that_begin_so() -> None:
    lines = (*PASSED[:2], "SKIPPED t.py::many[one-a]", "FAILED t.py::many[one-b] - no")
    verdict = judge(CHECK, ran(*lines, exit_code=1))
    assert verdict.outcome is Outcome.TESTS_FAILED
    # The official rule sees two candidates that agree in not having passed, and takes the first: skipped.
    assert verdict.official is True
    assert "t.py::many[one" in verdict.reason


def test_a_status_that_no_failure_explains_is_not_believed() -> None:
    verdict = judge(CHECK, ran(*PASSED, exit_code=3))
    assert (verdict.outcome, verdict.official) == (Outcome.BUILD_FAILED, True)
    assert verdict.reason == "no test failed, but the test command ended with status 3"


def test_a_package_that_could_not_be_installed_is_not_the_models_failure() -> None:
    execution = ran(*PASSED)
    log = execution.stdout.replace(f"+ : '{official.START}'", f"{image_trees.NOT_INSTALLED}\n+ : '{official.START}'")
    verdict = judge(CHECK, replace(execution, stdout=log))
    assert verdict.outcome is Outcome.INSTALL_FAILED and "--network" in verdict.reason


def test_an_image_without_what_it_takes_is_not_the_models_failure() -> None:
    seen = Execution(exit_code=1, stdout=f"{image_trees.BROKEN}the image has no git\n", stderr="", seconds=1.0)
    verdict = judge(CHECK, seen)
    assert (verdict.outcome, verdict.reason) == (Outcome.INSTALL_FAILED, "the image has no git")


def test_after_a_conflict_there_is_no_official_verdict() -> None:
    verdict = judge(CHECK, ran(*PASSED, applied=f"patch{image_trees.CONFLICT}"))
    assert (verdict.outcome, verdict.official) == (Outcome.RESOLVED, None)


def test_a_refusal_that_looks_like_a_log_is_a_refusal() -> None:
    log = ran(*PASSED).stdout
    seen = Execution(exit_code=1, stdout=f"{image_trees.REFUSED}error: x\n{log}", stderr="", seconds=1.0)
    assert judge(CHECK, seen).outcome is Outcome.PATCH_DID_NOT_APPLY


def test_a_model_is_told_which_tests_broke_and_what_they_said() -> None:
    lines = ("+ pytest t.py", "- expected", "+ found", *PASSED[1:], "FAILED t.py::new - no", "+ retrial_status=1")
    told = judge(CHECK, ran(*lines, exit_code=1)).telling.splitlines()
    assert told[0] == "1 of 3 required tests did not pass: t.py::new"
    assert told[1:] == ["- expected", "+ found", "FAILED t.py::new - no"]


def test_results_printed_before_the_tests_started_do_not_count() -> None:
    execution = ran("PASSED t.py::old", exit_code=1)
    forged = replace(execution, stdout="\n".join([*PASSED, execution.stdout]))
    assert judge(CHECK, forged).outcome is Outcome.BUILD_FAILED


@pytest.mark.parametrize(
    ("execution", "outcome", "reason"),
    [
        (replace(ran(*PASSED), timed_out=True), Outcome.TIMED_OUT, "the tests did not end within 60 s"),
        (replace(ran(*PASSED), oom=True), Outcome.BUILD_FAILED, "the tests ran out of memory"),
        (ran(*PASSED, exit_code=None), Outcome.BUILD_FAILED, "the test command was killed"),
        (
            ran("ImportError", exit_code=2),
            Outcome.BUILD_FAILED,
            "no test results can be read from the log (exit status 2)",
        ),
        (
            replace(ran(*PASSED), truncated=True),
            Outcome.BUILD_FAILED,
            "more than 1,000,000 bytes were printed, and results lost",
        ),
        (
            Execution(exit_code=0, stdout=f"{image_trees.REFUSED}error: a.py: no such file\n", stderr="", seconds=1.0),
            Outcome.PATCH_DID_NOT_APPLY,
            "the patch does not apply: a.py: no such file",
        ),
        (
            Execution(exit_code=125, stdout="cd: no such folder\n", stderr="", seconds=1.0),
            Outcome.BUILD_FAILED,
            "the tests were not started (exit status 125)",
        ),
    ],
)
def test_a_run_that_came_to_nothing_says_why(execution: Execution, outcome: Outcome, reason: str) -> None:
    verdict = judge(CHECK, execution)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
