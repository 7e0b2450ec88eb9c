"""A verdict by SWE-bench's own grading, and by a stricter reading of the same log where that can be fooled."""

from __future__ import annotations

from collections.abc import Mapping

from retrial import image_trees, official
from retrial.types import Check, Execution, Outcome, Required, Status, Verdict
from retrial.words import some

TOLD = 45
"""Lines of a log."""
TRACED = ("+ retrial_status=", "+ : ")
"""What the shell says of the script's own last commands."""
PASSING = (Status.PASSED, Status.XFAILED)
FAILING = (Status.FAILED, Status.ERROR)


def judge(check: Check, required: Required, execution: Execution) -> Verdict:
    """Pure: the same execution is always the same verdict."""
    seen = image_trees.read(execution.stdout)
    graded = official.grade(required, seen.log) if seen.started else None
    tests = graded.tests if graded else {}
    outcome, reason = _outcome(check, required, execution, seen, graded)
    return Verdict(
        outcome=outcome,
        reason=reason,
        tests=tests,
        exit_code=execution.exit_code,
        seconds=execution.seconds,
        proof="log" if outcome is Outcome.RESOLVED else "",
        stdout=execution.stdout,
        stderr=execution.stderr,
        telling="" if outcome is Outcome.RESOLVED else _telling(reason, seen.log),
        applied=seen.applied,
        official=_official(execution, seen, graded),
    )


def _official(execution: Execution, seen: image_trees.Transcript, graded: official.Grade | None) -> bool | None:
    """None where the official runner would have run something else than we did."""
    if seen.applied.endswith(image_trees.CONFLICT):
        return None
    # A run that came to no end has no official verdict but "not resolved".
    return bool(graded and graded.resolved and not execution.timed_out)


def _outcome(
    check: Check,
    required: Required,
    execution: Execution,
    seen: image_trees.Transcript,
    graded: official.Grade | None,
) -> tuple[Outcome, str]:
    if seen.refused:
        return Outcome.PATCH_DID_NOT_APPLY, f"the patch does not apply: {seen.refused.removeprefix('error: ')}"
    if seen.broken:
        return Outcome.INSTALL_FAILED, seen.broken
    if image_trees.NOT_INSTALLED in seen.log.partition(official.START)[0].splitlines():
        return Outcome.INSTALL_FAILED, "the changed package could not be installed without a network: use --network"
    if execution.timed_out:
        return Outcome.TIMED_OUT, f"the tests did not end within {check.timeout:g} s"
    if execution.oom:
        return Outcome.BUILD_FAILED, "the tests ran out of memory"
    if execution.exit_code is None:
        return Outcome.BUILD_FAILED, "the test command was killed"
    if graded is None:
        return Outcome.BUILD_FAILED, f"the tests were not started (exit status {execution.exit_code})"
    if execution.truncated:
        return Outcome.BUILD_FAILED, f"more than {check.limits.output_bytes:,} bytes were printed, and results lost"
    if not graded.found:
        return Outcome.BUILD_FAILED, f"no test results can be read from the log (exit status {execution.exit_code})"
    return _compare(required, execution.exit_code, graded)


def _compare(required: Required, exit_code: int, graded: official.Grade) -> tuple[Outcome, str]:
    wanted = (*required.fail_to_pass, *required.pass_to_pass)
    if not graded.resolved:
        bad = not_passed(required, graded.tests)
        return Outcome.TESTS_FAILED, f"{len(bad)} of {len(wanted)} required tests did not pass: {some(bad)}"
    if doubtful := _doubtful(required, graded.tests):
        return Outcome.TESTS_FAILED, f"a required test stands for several, and not all of them passed: {doubtful}"
    if exit_code and not any(status in FAILING for status in graded.tests.values()):
        return Outcome.BUILD_FAILED, f"no test failed, but the test command ended with status {exit_code}"
    return Outcome.RESOLVED, ""


def not_passed(required: Required, tests: Mapping[str, Status]) -> list[str]:
    """For people alone; the verdict is the official one."""
    allowed: dict[str, tuple[Status, ...]] = dict.fromkeys(required.pass_to_pass, (*PASSING, Status.SKIPPED))
    allowed |= dict.fromkeys(required.fail_to_pass, PASSING)
    if required.eval_type == "fail_only":
        return sorted(test for test in allowed if tests.get(test) is Status.FAILED)
    return sorted(
        test
        for test, good in allowed.items()
        if not (found := [tests[name] for name in _meant(test, tests)]) or not all(each in good for each in found)
    )


def _doubtful(required: Required, tests: Mapping[str, Status]) -> str:
    """A name that was cut off in the dataset stands for all tests that begin so; one that was skipped hides nothing."""
    cut = [test for test in (*required.fail_to_pass, *required.pass_to_pass) if test not in tests]
    for test in cut if required.eval_type == "pass_and_fail" else ():
        found = [tests[name] for name in _meant(test, tests)]
        if any(status in FAILING for status in found):
            return test
    return ""


def _meant(test: str, tests: Mapping[str, Status]) -> list[str]:
    if test in tests or test.count("[") <= test.count("]"):
        return [test] if test in tests else []
    return [name for name in tests if name.startswith(test)]


def _telling(reason: str, log: str) -> str:
    """What went wrong: which tests, and the end of what they printed, without those that passed."""
    # The first two lines are the rest of the marker's and the shell's trace of the command.
    printed = log.partition(official.START)[2].partition(official.END)[0].splitlines()[2:]
    lines = [
        line for line in printed if not line.startswith(("PASSED ", *TRACED)) and not line.endswith((" ok", " PASSED"))
    ]
    return "\n".join([reason, *lines[-TOLD:]])
