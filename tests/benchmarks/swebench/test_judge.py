"""A verdict by required tests: the official one, but for what a log alone cannot be believed in."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrial.benchmarks.swebench import container_script, official_grader
from retrial.benchmarks.swebench.judge import disagrees_with_official, network_needed, resolve_dispute
from retrial.benchmarks.swebench.official_grader import GRADER, OfficialCheck, OfficialTests
from retrial.checks import Check
from retrial.grading.judge import judge
from retrial.types import Execution, Outcome, Status, Verdict

REQUIRED = OfficialTests(
    parser="parse_log_pytest", fail_to_pass=("t.py::new",), pass_to_pass=("t.py::old", "t.py::many[one")
)
CHECK = Check(script="", files={}, result_parser="", grader=GRADER, grader_data=OfficialCheck(tests=REQUIRED))
PASSED = ("PASSED t.py::new", "PASSED t.py::old", "PASSED t.py::many[one-a]", "PASSED t.py::many[one-b]")


def ran(*lines: str, exit_code: int | None = 0, applied: str = "git apply") -> Execution:
    said = [
        f"{container_script.APPLIED}{applied}",
        f"{container_script.STARTED}{container_script.SCRIPT_WITHOUT_INSTALL}",
    ]
    marked = [f"+ : '{official_grader.START}'", *lines, f"+ : '{official_grader.END}'", ""]
    return Execution(exit_code=exit_code, stdout="\n".join([*said, *marked]), stderr="", seconds=1.0)


@pytest.mark.parametrize(
    ("seconds", "cpu_seconds", "starved", "outcome", "reason"),
    [
        (900, 301, False, Outcome.TIMED_OUT, "the tests did not end within 300 s of CPU time"),
        (310, 2, False, Outcome.TIMED_OUT, "the tests hung: they waited for 300 s and used almost no CPU time"),
        (6000, 299, False, Outcome.TIMED_OUT, "the tests did not end within 6000 s"),
        (300, None, False, Outcome.TIMED_OUT, "the tests did not end within 300 s"),
        (
            6000,
            120.04,
            True,
            Outcome.NOT_MEASURED,
            "the machine is overloaded: in 6000 s the tests got 120.0 s of their 300 s of CPU time; "
            "run the same command again when the load is lower",
        ),
    ],
)
def test_a_run_out_of_time_names_the_limit_and_a_starved_one_is_not_measured(
    seconds: float, cpu_seconds: float | None, starved: bool, outcome: Outcome, reason: str
) -> None:
    execution = replace(ran(exit_code=None), timed_out=True, seconds=seconds, cpu_seconds=cpu_seconds, starved=starved)
    verdict = judge(replace(CHECK, timeout=300.0, patience=20.0), execution)
    assert (verdict.outcome, verdict.reason, verdict.cpu_seconds) == (outcome, reason, cpu_seconds)


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


def test_a_patch_that_breaks_the_install_is_a_failed_build_whatever_the_tests_print() -> None:
    execution = ran(*PASSED)
    log = execution.stdout.replace(
        f"+ : '{official_grader.START}'", f"{container_script.NOT_INSTALLED}\n+ : '{official_grader.START}'"
    )
    verdict = judge(CHECK, replace(execution, stdout=log))
    assert (verdict.outcome, verdict.official) == (Outcome.BUILD_FAILED, None)
    assert not disagrees_with_official(REQUIRED, verdict)


def test_an_image_without_what_it_takes_is_not_the_models_failure() -> None:
    seen = Execution(exit_code=1, stdout=f"{container_script.BROKEN}the image has no git\n", stderr="", seconds=1.0)
    verdict = judge(CHECK, seen)
    assert (verdict.outcome, verdict.reason) == (Outcome.INSTALL_FAILED, "the image has no git")


def test_after_a_conflict_there_is_no_official_verdict() -> None:
    verdict = judge(CHECK, ran(*PASSED, applied=f"patch{container_script.CONFLICT}"))
    assert (verdict.outcome, verdict.official) == (Outcome.RESOLVED, None)


def test_a_refusal_that_looks_like_a_log_is_a_refusal() -> None:
    log = ran(*PASSED).stdout
    seen = Execution(exit_code=1, stdout=f"{container_script.REFUSED}error: x\n{log}", stderr="", seconds=1.0)
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
            Execution(
                exit_code=0, stdout=f"{container_script.REFUSED}error: a.py: no such file\n", stderr="", seconds=1.0
            ),
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


WEAK, STRONG = "test_small_values", "test_two_lines"
PLANTED = replace(CHECK, planted=(WEAK, STRONG))
WEAK_FAILED, STRONG_FAILED = f"FAILED t.py::{WEAK} - assert 1 == 2", f"FAILED t.py::{STRONG} - assert 2 == 3"
STRONG_PASSED = f"PASSED t.py::{STRONG}"


def of_planted(*lines: str, exit_code: int = 1) -> Verdict:
    """A run with canaries in it, and the status where our script says it."""
    execution = ran(*lines, exit_code=exit_code)
    said = f"{execution.stdout}{official_grader.STATUS}: {exit_code}\n"
    return judge(PLANTED, replace(execution, stdout=said))


def reference(*lines: str, exit_code: int = 1) -> Verdict:
    return judge(
        replace(PLANTED, allow_skips=True, planted=("test_a_b", "test_c_d")),
        ran(*(line.replace(WEAK, "test_a_b").replace(STRONG, "test_c_d") for line in lines), exit_code=exit_code),
    )


GOOD = (*PASSED, WEAK_FAILED, STRONG_FAILED)


def test_canaries_that_fail_are_the_proof_and_nothing_else_shows_of_them() -> None:
    verdict = of_planted(*GOOD)
    assert (verdict.outcome, verdict.proof, verdict.official) == (Outcome.RESOLVED, "canary", True)
    assert (verdict.exit_code, set(verdict.tests)) == (0, {line.split()[1] for line in PASSED})
    assert WEAK not in verdict.stdout and f"{official_grader.STATUS}: 0" in verdict.stdout
    assert verdict.canary == f"{WEAK}, {STRONG}"


def test_a_failure_that_names_a_canary_is_still_a_failure() -> None:
    """Whoever does not know which tests are canaries may put the names of all into a message."""
    failed = f"FAILED t.py::new - ValueError: {WEAK} {STRONG}"
    verdict = of_planted(failed, *GOOD)
    assert (verdict.outcome, verdict.rule) == (Outcome.TAMPERED, "contradiction")


def test_one_name_that_is_all_names_is_no_canary_that_failed() -> None:
    every = f"FAILED t.py::new_old_{WEAK}_{STRONG} - AssertionError"
    verdict = of_planted(*PASSED, f"PASSED t.py::{WEAK}", f"PASSED t.py::{STRONG}", every)
    assert (verdict.outcome, verdict.rule) == (Outcome.TAMPERED, "canary")


def test_a_weak_canary_alone_is_a_weak_proof() -> None:
    verdict = judge(replace(CHECK, planted=(WEAK,)), ran(*PASSED, WEAK_FAILED, exit_code=1))
    assert (verdict.outcome, verdict.proof) == (Outcome.RESOLVED, "canary-weak")


def test_a_wrong_patch_is_no_forger() -> None:
    verdict = of_planted(*PASSED[1:], "FAILED t.py::new - no", WEAK_FAILED, STRONG_FAILED)
    assert (verdict.outcome, verdict.official, verdict.exit_code) == (Outcome.TESTS_FAILED, False, 1)
    assert not disagrees_with_official(REQUIRED, verdict) and WEAK not in verdict.telling


def test_after_a_conflict_a_wrong_patch_is_no_forger_either() -> None:
    wrong = ran(
        *PASSED[1:], "FAILED t.py::new - no", WEAK_FAILED, exit_code=1, applied=f"patch{container_script.CONFLICT}"
    )
    assert not disagrees_with_official(REQUIRED, judge(PLANTED, wrong))
    forged = ran(*PASSED, applied=f"patch{container_script.CONFLICT}")
    assert disagrees_with_official(REQUIRED, judge(PLANTED, forged))


def test_the_tasks_own_failures_keep_their_status() -> None:
    verdict = of_planted(*GOOD, "FAILED t.py::other - of old")
    assert (verdict.outcome, verdict.exit_code, verdict.official) == (Outcome.RESOLVED, 1, True)


@pytest.mark.parametrize(
    ("lines", "exit_code", "outcome", "rule"),
    [
        ((*PASSED, f"PASSED t.py::{WEAK}", STRONG_PASSED), 0, Outcome.TAMPERED, "canary"),
        (PASSED, 0, Outcome.TAMPERED, "canary"),
        ((*PASSED, WEAK_FAILED, STRONG_PASSED), 1, Outcome.TAMPERED, "canary"),
        ((*PASSED, WEAK_FAILED), 1, Outcome.TAMPERED, "canary"),
        (GOOD, 0, Outcome.TAMPERED, "canary-status"),
        (("FAILED t.py::new - no", *GOOD), 1, Outcome.TAMPERED, "contradiction"),
        (("XFAIL t.py::new", *GOOD[1:]), 1, Outcome.TESTS_FAILED, ""),
        ((GOOD[0], "SKIPPED t.py::old", *GOOD[2:]), 1, Outcome.TESTS_FAILED, ""),
    ],
)
def test_what_the_official_grading_believes_is_doubted(
    lines: tuple[str, ...], exit_code: int, outcome: Outcome, rule: str
) -> None:
    verdict = of_planted(*lines, exit_code=exit_code)
    assert (verdict.outcome, verdict.rule, verdict.official, verdict.proof) == (outcome, rule, True, "")
    assert disagrees_with_official(REQUIRED, verdict) and verdict.reason
    # A reference in which all is as it should be bears it out,
    assert resolve_dispute(REQUIRED, verdict, reference(*GOOD)).outcome is outcome
    # one that shows the same takes it back,
    settled = resolve_dispute(REQUIRED, verdict, reference(*lines, exit_code=exit_code))
    assert (settled.outcome, settled.reason, settled.rule) == (Outcome.RESOLVED, "", "")
    # and one that fails itself says nothing.
    assert resolve_dispute(REQUIRED, verdict, reference(*lines[1:])) == verdict


def test_a_canary_that_the_reference_passes_too_proves_nothing() -> None:
    lines = (*PASSED, WEAK_FAILED, STRONG_PASSED)
    settled = resolve_dispute(REQUIRED, of_planted(*lines), reference(*lines))
    assert (settled.proof, settled.exit_code) == ("canary-weak", 0)
    unseen = resolve_dispute(REQUIRED, of_planted(*PASSED, exit_code=0), reference(*PASSED, exit_code=0))
    assert unseen.proof == "log"


def test_a_copy_that_fails_on_its_way_proves_nothing_and_condemns_nobody() -> None:
    verdict = of_planted(*PASSED, WEAK_FAILED, f"FAILED t.py::{STRONG} - KeyError: 'registered twice'")
    assert (verdict.outcome, verdict.proof, verdict.exit_code) == (Outcome.RESOLVED, "canary-weak", 0)


def test_a_printed_status_is_not_the_containers() -> None:
    execution = ran(*PASSED, f"{official_grader.STATUS}: 0", "FAILED x::y - decoy", exit_code=1)
    verdict = judge(PLANTED, execution)
    assert (verdict.outcome, verdict.rule, verdict.official) == (Outcome.TAMPERED, "canary", True)


def test_what_stands_behind_a_forged_end_is_not_forgotten() -> None:
    verdict = of_planted(*PASSED, f"+ : '{official_grader.END}'", "FAILED t.py::new - no", WEAK_FAILED, STRONG_FAILED)
    # Nothing before that end explains a status of 1, to the official grading neither.
    assert (verdict.outcome, verdict.official) == (Outcome.BUILD_FAILED, False)


def test_in_phase_1_a_skipped_test_is_no_veto() -> None:
    verdict = judge(replace(CHECK, allow_skips=True), ran(PASSED[0], "SKIPPED t.py::old", *PASSED[2:]))
    assert verdict.outcome is Outcome.RESOLVED


def test_a_patch_that_breaks_all_tests_does_not_need_a_network() -> None:
    required = replace(REQUIRED, eval_type="fail_only")
    check = replace(CHECK, grader_data=OfficialCheck(tests=required))
    missing = "requests.exceptions.ConnectionError: Temporary failure in name resolution"
    reference = judge(check, ran(missing, "FAILED t.py::new - ConnectionError", "PASSED t.py::old", exit_code=1))
    assert network_needed(required, reference, reference)
    broken = judge(check, ran(missing, "SyntaxError: invalid syntax", exit_code=2))
    assert (broken.tests, network_needed(required, broken, reference)) == ({}, "")
