"""`judge`: what an execution proves. Pure, so every case is written out."""

from __future__ import annotations

import pytest

from retrial.checks import Check
from retrial.grading.judge import judge
from retrial.types import Execution, Outcome, Status

CHECK = Check(script="true", files={}, result_parser="languages.junit")
EXPECTED = {"m::test_a": Status.PASSED, "m::test_b": Status.PASSED}


def case(name: str, inner: str = "") -> str:
    return f'<testcase classname="m" name="{name}">{inner}</testcase>'


def report(*cases: str) -> dict[str, bytes]:
    return {"junit.xml": f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>".encode()}


def outcome(
    reports: dict[str, bytes],
    exit_code: int | None = 0,
    *,
    expected: dict[str, Status] | None = EXPECTED,
    timed_out: bool = False,
    oom: bool = False,
    optional: bool = False,
) -> Outcome:
    check = Check(script="true", files={}, result_parser="languages.junit", expected=expected, allow_skips=optional)
    execution = Execution(
        exit_code=exit_code, stdout="", stderr="", seconds=1, reports=reports, timed_out=timed_out, oom=oom
    )
    verdict = judge(check, execution)
    assert bool(verdict.reason) != verdict.resolved
    return verdict.outcome


A, B = case("test_a"), case("test_b")
B_FAILED = case("test_b", '<failure message="no"/>')
B_ERROR = case("test_b", '<error message="no"/>')
B_SKIPPED = case("test_b", '<skipped type="pytest.skip"/>')
B_XFAILED = case("test_b", '<skipped type="pytest.xfail"/>')


def test_all_expected_tests_passed_and_status_zero_is_resolved() -> None:
    assert outcome(report(A, B)) is Outcome.RESOLVED


def test_a_failed_test_is_a_failure() -> None:
    assert outcome(report(A, B_FAILED), 1) is Outcome.TESTS_FAILED
    assert outcome(report(A, B_ERROR), 1) is Outcome.TESTS_FAILED


def test_status_zero_with_a_failed_test_is_tampering() -> None:
    assert outcome(report(A, B_FAILED), 0) is Outcome.TAMPERED


def test_status_zero_with_a_missing_test_is_tampering() -> None:
    assert outcome(report(A), 0) is Outcome.TAMPERED


def test_a_test_that_the_reference_does_not_have_is_tampering() -> None:
    assert outcome(report(A, B, case("test_c")), 0) is Outcome.TAMPERED


@pytest.mark.parametrize("inner", [B_SKIPPED, B_XFAILED])
def test_a_skipped_test_is_not_a_pass(inner: str) -> None:
    assert outcome(report(A, inner), 0) is Outcome.TESTS_FAILED


def test_a_skip_is_accepted_where_the_reference_skipped() -> None:
    assert outcome(report(A, B_SKIPPED), 0, expected={**EXPECTED, "m::test_b": Status.SKIPPED}) is Outcome.RESOLVED


def test_as_long_as_the_reference_is_unknown_an_optional_test_may_be_skipped() -> None:
    assert outcome(report(A, B_SKIPPED), 0, expected=None, optional=True) is Outcome.RESOLVED
    assert outcome(report(B_SKIPPED), 0, expected=None, optional=True) is Outcome.TESTS_FAILED
    assert outcome(report(A, B_SKIPPED), 0, expected=None) is Outcome.TESTS_FAILED
    assert outcome(report(A, B_SKIPPED), 0, optional=True) is Outcome.TESTS_FAILED


def test_passing_where_the_reference_skipped_is_fine() -> None:
    assert outcome(report(A, B), 0, expected={**EXPECTED, "m::test_b": Status.SKIPPED}) is Outcome.RESOLVED


def test_all_passed_with_a_bad_status_is_not_resolved() -> None:
    assert outcome(report(A, B), 1) is Outcome.BUILD_FAILED


@pytest.mark.parametrize("exit_code", [0, 1, 5])
def test_no_report_is_never_a_pass(exit_code: int) -> None:
    assert outcome({}, exit_code) is Outcome.BUILD_FAILED


def test_no_tests_are_never_a_pass() -> None:
    assert outcome(report(), 0, expected=None) is Outcome.BUILD_FAILED


def test_a_torn_report_is_never_a_pass() -> None:
    assert outcome({"junit.xml": b"<testsuites><testsuite>"}, 0) is Outcome.BUILD_FAILED


def test_a_report_in_an_unknown_encoding_is_never_a_pass() -> None:
    content = b'<?xml version="1.0" encoding="nosuch"?>' + report(A, B)["junit.xml"]
    assert outcome({"junit.xml": content}, 0) is Outcome.BUILD_FAILED


def test_a_report_with_a_document_type_is_not_read() -> None:
    assert outcome({"junit.xml": b"<!DOCTYPE x []>" + report(A, B)["junit.xml"]}, 0) is Outcome.BUILD_FAILED


def test_of_two_results_for_one_test_the_worse_counts() -> None:
    assert outcome(report(A, B_FAILED, B), 1) is Outcome.TESTS_FAILED


def test_code_that_cannot_be_loaded_is_a_failed_build() -> None:
    assert outcome(report(case("m", "<error/>")), 2, expected=None) is Outcome.BUILD_FAILED


def test_time_memory_and_kills_are_said_as_such() -> None:
    assert outcome({}, None, timed_out=True) is Outcome.TIMED_OUT
    assert outcome({}, 137, oom=True) is Outcome.BUILD_FAILED
    assert outcome({}, None) is Outcome.BUILD_FAILED


def test_the_same_execution_is_always_the_same_verdict() -> None:
    execution = Execution(exit_code=0, stdout="", stderr="", seconds=1, reports=report(A, B))
    assert judge(CHECK, execution) == judge(CHECK, execution)
