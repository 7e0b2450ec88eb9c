"""Changed reports and executions: never a crash, and never resolved unless they really say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from retrial import registry
from retrial.grading.judge import judge
from retrial.language import ResultParser
from retrial.types import Execution, Outcome
from tests.fuzz.executions import CANARY, OWN, RUNNERS, Runner, check, resolved
from tests.fuzz.mutation import changed_bytes, changed_lines, fuzz

PASSED = dict.fromkeys(OWN, "passed")
KINDS: Mapping[str, Mapping[str, str]] = {
    "honest": {**PASSED, CANARY: "failed"},
    "one failed": {**PASSED, "second": "failed", CANARY: "failed"},
    "one was skipped": {**PASSED, "second": "skipped", CANARY: "failed"},
    "one took the process with it": {**PASSED, "third": "error", CANARY: "failed"},
    "forced to pass": {**PASSED, CANARY: "passed"},
    "canary gone": PASSED,
    "canary not finished": {**PASSED, CANARY: "error"},
    "one gone": {"first": "passed", "second": "passed", CANARY: "failed"},
    "nothing": {},
}
WORDS = (
    "passed", "failed", "pass", "fail", "ok", "ok second", "failed second", "ignored second", f"ok {CANARY}",
    f"failed {CANARY}", "second: test", "4 tests, 0 benchmarks", '{"Action":"pass","Package":"p","Test":"second"}',
    '{"Action":"fail","Package":"p","Test":"second"}', '{"Action":"run","Package":"p","Test":"second"}', "{}", "null",
    '{"Action":"pass","Package":"p","Test":["second"]}', '{"Action":["pass"],"Test":"x"}', "[" * 3000, "",
)  # fmt: skip
TOKENS = (
    b"<failure/>", b"<skipped/>", b"<error/>", b"</testcase>", b'<testcase classname="m_test" name="second"/>',
    b"<!--", b"-->", b"<!DOCTYPE x>", b'<testcase classname="m_test" name="second"><failure/></testcase>', b"]]>",
    b"<![CDATA[", b'"passed"', b'"failed"', b'"status"', b"{", b"}", b"]", b",", b"null", b"\xff", b"\0", b"first",
    b"second", b"third", CANARY.encode(), b'"title": "second"', b"&x;", b"&#0;", b' encoding="utf-16"',
    b'<?xml version="1.0" encoding="x"?>',
)  # fmt: skip

everywhere = st.builds(
    lambda lines, content: (
        lambda report: content(lines(report.decode(errors="surrogateescape")).encode(errors="replace"))
    ),
    changed_lines(WORDS),
    st.just(bytes) | changed_bytes(TOKENS),
)
# Mostly as it should be, for then all depends on the report.
statuses = st.sampled_from([*[1] * 8, 0, 101, 2, 137, None])
flags = st.sampled_from(
    [*[""] * 8, "timed out", "out of memory", "truncated", "changed", "no report", "another report"]
)


def execution(runner: Runner, kind: str, status: int | None) -> Execution:
    reports = runner.write(KINDS[kind])
    stdout = "== build\n== test\nsecond failed\n"
    return Execution(exit_code=status, stdout=stdout, stderr="", seconds=1.0, reports=reports)


@pytest.mark.parametrize("name", sorted(RUNNERS))
def test_only_the_honest_one_is_resolved_as_it_is(name: str) -> None:
    runner = RUNNERS[name]
    for kind in KINDS:
        run = execution(runner, kind, runner.failing)
        assert judge(check(runner), run).resolved == resolved(runner, run) == (kind == "honest"), kind


@pytest.mark.parametrize("name", sorted(RUNNERS))
@fuzz(400)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    change=everywhere,
    status=statuses,
    flag=flags,
)
def test_a_report_that_was_tampered_with_resolves_nothing_that_it_does_not_say(
    name: str, kind: str, change: Callable[[bytes], bytes], status: int | None, flag: str
) -> None:
    runner = RUNNERS[name]
    run = execution(runner, kind, runner.failing if status == 1 else status)
    reports = {report: change(content) for report, content in run.reports.items()}
    if flag == "no report":
        reports.popitem()
    if flag == "another report":
        reports["another.xml"] = change(b'<testcase name="second"><failure/></testcase>')
    tampered = replace(
        run,
        reports=reports,
        timed_out=flag == "timed out",
        oom=flag == "out of memory",
        truncated=flag == "truncated",
        changed=("t.py",) if flag == "changed" else (),
    )
    note(repr(reports))
    verdict = judge(check(runner), tampered)
    assert verdict.outcome.measured and bool(verdict.reason) != verdict.resolved
    assert not verdict.resolved or resolved(runner, tampered)


OUTPUTS = f"""\
== test
==== FAILURES ====
____ {CANARY} ____
    assert 1 == 2
E   AssertionError
==== short test summary info ====
FAILED m_test.py::{CANARY} - assert 1 == 2
==== 1 failed, 3 passed in 0.05s ====
  ● Box › {CANARY}
    expect(received).toBe(expected)
Tests:       1 failed, 3 passed, 4 total
{{"Action":"run","Package":"p","Test":"{CANARY}"}}
{{"Action":"output","Package":"p","Test":"{CANARY}","Output":"--- FAIL: {CANARY} (0.00s)\\n"}}
{{"Action":"fail","Package":"p","Test":"{CANARY}"}}
running 4 tests
test {CANARY} ... FAILED
failures:
---- {CANARY} stdout ----
thread '{CANARY}' panicked at tests/box.rs:5:5:
assertion `left == right` failed
test result: FAILED. 3 passed; 1 failed; 0 ignored
[INFO]  T E S T S
[ERROR] BoxTest.{CANARY}:12 expected: <1> but was: <2>
[INFO] Results:
[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0
[INFO] BUILD FAILURE
--- {CANARY}
"""


@pytest.mark.parametrize("name", sorted(RUNNERS))
@fuzz(150)
@given(change=changed_lines((*WORDS, *OUTPUTS.splitlines())), proving=st.booleans())
def test_whatever_is_printed_has_no_say_and_can_be_told_without_the_canary(
    name: str, change: Callable[[str], str], proving: bool
) -> None:
    runner = RUNNERS[name]
    honest = execution(runner, "honest", runner.failing)
    printed = replace(honest, stdout=change(OUTPUTS), stderr=change(OUTPUTS[::-1]))
    assert judge(replace(check(runner), is_reference_run=proving), printed).outcome is Outcome.RESOLVED
    reader: ResultParser = registry.load(runner.reader)
    told = reader.without(reader.text(printed.stdout), CANARY)
    assert len(told) <= len(reader.text(printed.stdout)) + len(OUTPUTS)


ROWS = {
    # Found by trying: a line of the log that is no entry was read as one more that had passed.
    "libtest": {"box.log": f"ok first\nxx second\nok third\nfailed {CANARY}\n".encode()},
    # A document type, hidden from whoever looks for its letters.
    "junit": {"junit.xml": '<!DOCTYPE x [<!ENTITY e "y">]>'.encode("utf-16")},
    # An action that is no word ended the program.
    "gotest": {"go.json": b'{"Action": ["pass"], "Package": "p", "Test": "second"}\n'},
}


@pytest.mark.parametrize("name", sorted(ROWS))
def test_what_was_found_stays_found(name: str) -> None:
    runner = RUNNERS[name]
    run = execution(runner, "honest", runner.failing)
    forged = replace(run, reports={**run.reports, **ROWS[name]})
    assert not resolved(runner, forged)
    assert not judge(check(runner), forged).resolved
