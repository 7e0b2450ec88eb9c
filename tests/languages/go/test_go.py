"""Go: what its runner says, and what a patch may add."""

from __future__ import annotations

import json

from retrial.languages.go import results as reader
from retrial.types import Execution, Status


def said(*events: dict[str, object], printed: str = "") -> Execution:
    text = printed + "".join(json.dumps({"Package": "p", **event}) + "\n" for event in events)
    return Execution(exit_code=1, stdout=text, stderr="", seconds=0.1, reports={"go.json": text.encode()})


def test_each_test_and_subtest_has_its_own_status() -> None:
    execution = said(
        {"Action": "run", "Test": "TestA"},
        {"Action": "run", "Test": "TestA/one"},
        {"Action": "fail", "Test": "TestA/one"},
        {"Action": "fail", "Test": "TestA"},
        {"Action": "skip", "Test": "TestB"},
        {"Action": "fail"},
    )
    assert reader.read(execution) == {
        "p::TestA": Status.FAILED,
        "p::TestA/one": Status.FAILED,
        "p::TestB": Status.SKIPPED,
    }


def test_a_test_that_took_the_process_with_it_did_not_pass() -> None:
    assert reader.read(said({"Action": "run", "Test": "TestA"}, {"Action": "pass"})) == {"p::TestA": Status.ERROR}


def test_of_two_endings_a_failure_counts_and_two_passes_are_none() -> None:
    twice: list[dict[str, object]] = [{"Action": "pass", "Test": "TestA"}] * 2
    assert reader.read(said(*twice)) == {"p::TestA": Status.ERROR}
    failure: dict[str, object] = {"Action": "fail", "Test": "TestA"}
    for events in ([*twice, failure], [failure, *twice]):
        assert reader.read(said(*events)) == {"p::TestA": Status.FAILED}


def test_without_a_report_nothing_is_read() -> None:
    assert "no report" in str(reader.read(Execution(exit_code=0, stdout="", stderr="", seconds=0.1)))


def test_lines_that_are_no_events_are_left_alone() -> None:
    execution = said({"Action": "pass", "Test": "TestA"}, printed='{"Action":\n[]\nhello\n')
    assert reader.read(execution) == {"p::TestA": Status.PASSED}
    assert reader.text(execution.stdout) == '{"Action":\n[]\nhello\n'


def test_people_read_what_failed_and_when_the_tests_began() -> None:
    execution = said(
        {"Action": "build-output", "Output": "# p\n"},
        {"Action": "run", "Test": "TestA"},
        {"Action": "output", "Test": "TestA", "Output": "=== RUN   TestA\n"},
        {"Action": "output", "Test": "TestA", "Output": "    --- PASS: TestA/one (0.00s)\n"},
        {"Action": "output", "Test": "TestA", "Output": "--- FAIL: TestA (0.00s)\n"},
        printed="== build\n",
    )
    assert reader.text(execution.stdout) == "== build\n# p\n== test\n--- FAIL: TestA (0.00s)\n"
