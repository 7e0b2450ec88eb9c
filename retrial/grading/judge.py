"""What an execution proves. Pure: the same execution is always the same verdict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from retrial import registry
from retrial.checks import Check
from retrial.language import ResultParser
from retrial.protocols import Grader
from retrial.system.console import first_few
from retrial.types import Execution, Outcome, Status, Verdict

STAGE = re.compile(r"^== (lint|build|test)$", re.MULTILINE)
"""What scripts print as they go on."""
TELLING_LINES = 3
TELLING_CHARACTERS = 300
EXIT_STATUS = "grading.exit_status"


@dataclass(frozen=True, slots=True)
class Judgement:
    outcome: Outcome
    reason: str = ""
    rule: str = ""
    """That was broken, where something was tampered with."""


def own_grader(check: Check) -> Grader | None:
    """The grader that the check names; None where the rules of this module hold."""
    found: Grader | None = registry.load(check.grader).grader(check.grader_data) if check.grader else None
    return found


def judge(check: Check, execution: Execution) -> Verdict:
    if grader := own_grader(check):
        return grader.judge(check, execution)
    reader: ResultParser = registry.load(check.result_parser)
    found = reader.read(execution)
    whole = replace(execution, stdout=reader.text(execution.stdout))
    results, unread = ({}, found) if isinstance(found, str) else (found, "")
    tests, canaries = apart(results, check)
    finding = _finding(check, _without_canaries(check, reader, whole), tests, canaries, unread)
    resolved = finding.outcome is Outcome.RESOLVED
    failed = reader.asserted(execution, results) if check.is_reference_run and not unread else frozenset[str]()
    asserted = tuple(sorted(test for test in failed if any(name in test for name in check.planted)))
    return Verdict(
        outcome=finding.outcome,
        reason=finding.reason,
        rule=finding.rule,
        tests=tests,
        exit_code=0 if resolved else execution.exit_code,
        seconds=execution.seconds,
        cpu_seconds=execution.cpu_seconds,
        proof=proof(check) if resolved else "",
        canary=", ".join(check.planted),
        proved=tuple(name for name in check.planted if any(name in id for id in asserted)),
        proved_ids=asserted,
        changed=execution.changed,
        stdout=whole.stdout,
        stderr=whole.stderr,
    )


def apart(found: Mapping[str, Status], check: Check) -> tuple[dict[str, Status], dict[str, Status | None]]:
    """The task's own tests, and what became of each canary; None: nothing was reported of it.

    An id that merely has a canary's name in it is none of its: one that has the names of all tests in it, reported as
    failed by whoever does not know which of them are canaries, would do for all of them.
    """
    if check.is_reference_run:
        own = {test: status for test, status in found.items() if not any(name in test for name in check.planted)}
        failed = {name for name in check.planted for test in found if name in test and found[test] is Status.FAILED}
        return own, {name: Status.FAILED if name in failed else None for name in check.planted}
    # Its other results, such as those of its cases, begin like the one that the reference failed.
    begin = tuple(id[: id.index(name) + len(name)] for name, id in zip(check.planted, check.planted_ids, strict=True))
    own = {test: status for test, status in found.items() if not test.startswith(begin)}
    return own, {name: found.get(id) for name, id in zip(check.planted, check.planted_ids, strict=True)}


def _without_canaries(check: Check, reader: ResultParser, execution: Execution) -> Execution:
    """For reasons: what went wrong is never that a canary failed."""
    stdout, stderr = execution.stdout, execution.stderr
    for name in check.planted:
        stdout, stderr = reader.without(stdout, name), reader.without(stderr, name)
    return replace(execution, stdout=stdout, stderr=stderr)


def proof(check: Check) -> str:
    if check.result_parser == EXIT_STATUS:
        return "status"
    if check.expected is None:
        return ""
    if not check.canaries:
        return "report"
    return "canary" if all(canary.strong for canary in check.canaries) else "canary-weak"


def _finding(
    check: Check,
    execution: Execution,
    tests: Mapping[str, Status],
    canaries: Mapping[str, Status | None],
    unread: str,
) -> Judgement:
    building = (STAGE.findall(execution.stdout) or ["test"])[-1] != "test"
    if execution.timed_out:
        stage = "build" if building else "tests"
        more = check.seconds - check.timeout
        spent = f", nor in {more:g} s more for canaries" if more else ""
        return Judgement(Outcome.TIMED_OUT, f"the {stage} did not end within {check.timeout:g} s{spent}")
    if execution.oom:
        return Judgement(Outcome.BUILD_FAILED, f"the {'build' if building else 'tests'} ran out of memory")
    told = telling(check.error_line_pattern, execution)
    if execution.exit_code is None:
        return Judgement(Outcome.BUILD_FAILED, f"the test command was killed{told}")
    if building and not tests and execution.exit_code:
        return Judgement(Outcome.BUILD_FAILED, f"the build failed with status {execution.exit_code}{told}")
    if unread and execution.truncated:
        unread = "so much was printed that the report was lost"
    if unread:
        return Judgement(Outcome.BUILD_FAILED, f"{unread} (exit status {execution.exit_code}){told}")
    # Where only canaries were reported, the run ended in one of them, before any of the task's own tests.
    early = not tests and check.expected and any(canaries.values())
    return _compare(check, execution, tests, canaries) if early else _tested(check, execution, tests, canaries, told)


def _tested(
    check: Check, execution: Execution, tests: Mapping[str, Status], canaries: Mapping[str, Status | None], told: str
) -> Judgement:
    """There is a report that can be read."""
    if not tests:
        return Judgement(Outcome.BUILD_FAILED, f"no tests were found{told}")
    if all(status in (Status.SKIPPED, Status.XFAILED) for status in tests.values()):
        return Judgement(Outcome.TESTS_FAILED, f"all {len(tests)} tests were skipped")
    if all(status is Status.ERROR for status in tests.values()):
        return Judgement(Outcome.BUILD_FAILED, f"the tests could not be loaded{told}")
    return _compare(check, execution, tests, canaries)


def telling(pattern: str, execution: Execution) -> str:
    """The first lines of output that say what went wrong, to be put behind a reason."""
    if not pattern:
        return ""
    lines = [line.strip() for text in (execution.stderr, execution.stdout) for line in text.splitlines()]
    # Only so far into a line: it may be as long as the job liked.
    found = [line for line in lines if re.search(pattern, line[:TELLING_CHARACTERS])]
    return f": {' / '.join(dict.fromkeys(found[:TELLING_LINES]))[:TELLING_CHARACTERS]}" if found else ""


def _compare(
    check: Check, execution: Execution, tests: Mapping[str, Status], canaries: Mapping[str, Status | None]
) -> Judgement:
    expected = check.expected
    bad = sorted(test for test, status in tests.items() if not _accepted(check, test, status))
    missing = sorted(set(expected or ()) - set(tests))
    unknown = sorted(set(tests) - set(expected)) if expected is not None else []
    if not check.is_reference_run and execution.changed:
        return Judgement(
            Outcome.TAMPERED, f"the run changed files of its tests: {first_few(execution.changed)}", "sealed"
        )
    if execution.exit_code == 0 and (bad or missing):
        # A runner that saw a failure, or did not run everything, does not end with 0 by itself.
        unskipped = [test for test in bad if tests[test] not in (Status.SKIPPED, Status.XFAILED)]
        if unskipped or missing:
            said = f"exit status 0 though {first_few(unskipped or missing)} did not pass"
            return Judgement(Outcome.TAMPERED, said, "status")
    if bad:
        return Judgement(Outcome.TESTS_FAILED, f"{len(bad)} of {len(tests)} tests did not pass: {first_few(bad)}")
    if missing:
        said = f"{len(missing)} of {len(expected or ())} tests did not run: {first_few(missing)}"
        return Judgement(Outcome.TESTS_FAILED, said)
    if unknown:
        said = f"tests were reported that the reference does not have: {first_few(unknown)}"
        return Judgement(Outcome.TAMPERED, said, "unknown-tests")
    return _canary(check, execution, canaries)


def _canary(check: Check, execution: Execution, canaries: Mapping[str, Status | None]) -> Judgement:
    """All of the task's own tests passed; whether that can be believed is told by those that had to fail."""
    failed = [name for name, status in canaries.items() if status is Status.FAILED]
    for name, status in canaries.items() if not check.is_reference_run else ():
        if status is not Status.FAILED:
            became = f"was reported as {status}" if status else "was not reported at all"
            return Judgement(Outcome.TAMPERED, f"the canary '{name}', a test that must fail, {became}", "canary")
    wanted = check.failure_exit_codes if failed else (0,)
    if execution.exit_code in wanted:
        return Judgement(Outcome.RESOLVED)
    if execution.exit_code == 0:
        said = f"exit status 0 though the canary '{failed[0]}', a test that must fail, failed"
        return Judgement(Outcome.TAMPERED, said, "canary-status")
    ended = f"all tests passed, but the test command ended with status {execution.exit_code}"
    return Judgement(Outcome.BUILD_FAILED, ended + telling(check.error_line_pattern, execution))


def _accepted(check: Check, test: str, status: Status) -> bool:
    """Passed; skipped or xfailed only where the reference was, or where that is not known yet."""
    if status in (Status.SKIPPED, Status.XFAILED) and check.allow_skips and check.expected is None:
        return True
    return status is Status.PASSED or (check.expected is not None and check.expected.get(test) is status)
