"""A verdict by SWE-bench's own grading, and by a stricter reading of the same log where that can be fooled.

Where the official grading says resolved and ours does not, the reference may settle it: whatever its own run here shows
too does not count against a patch. So an honest run is never called tampered for a quirk of its task or machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from retrial.benchmarks.swebench import canaries, container_script, official_grader
from retrial.benchmarks.swebench.canaries import FAILING
from retrial.benchmarks.swebench.official_grader import OfficialTests
from retrial.checks import Check
from retrial.grading.judge import Judgement
from retrial.system.console import first_few
from retrial.types import Execution, Outcome, Status, Verdict

TOLD = 45
"""Lines of a log."""
TRACED = ("+ retrial_status=", "+ : ")
"""What the shell says of the script's own last commands."""
PASSING = (Status.PASSED, Status.XFAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRun:
    """A run of a task's tests, as its log has it."""

    transcript: container_script.Transcript
    """Its log is as it would have been without canaries."""
    graded: official_grader.Grade | None
    """What the official grading says of that; None where the tests were never started."""
    tests: Mapping[str, Status]
    """The task's own, each by the worst that was said of it."""
    proved: tuple[str, ...] = ()
    """Canaries that failed as they must."""
    erred: tuple[str, ...] = ()
    """Canaries that failed in another way."""


def judge(check: Check, required: OfficialTests, execution: Execution) -> Verdict:
    """Pure: the same execution is always the same verdict."""
    seen = _see(check, required, execution)
    finding = _finding(check, required, execution, seen)
    run = Verdict(
        outcome=finding.outcome,
        tests=seen.tests,
        exit_code=execution.exit_code,
        seconds=execution.seconds,
        cpu_seconds=execution.cpu_seconds,
        proof="log",
        canary=", ".join(check.planted),
        proved=seen.proved,
        erred=seen.erred,
        stdout=container_script.written(seen.transcript) or execution.stdout,
        stderr=execution.stderr,
        applied=seen.transcript.applied,
        official=_official(check, execution, seen),
    )
    shown = _with(run, finding)
    if not shown.resolved:
        return shown
    # In phase 1 and of the reference itself nothing is known that it could be held against.
    return _with(shown, _explained(shown)) if check.allow_skips else resolve_dispute(required, shown)


def disagrees_with_official(required: OfficialTests, verdict: Verdict) -> bool:
    """All is well by the official rules, and not by ours."""
    if verdict.outcome not in (Outcome.TAMPERED, Outcome.TESTS_FAILED, Outcome.BUILD_FAILED):
        return False
    transcript = container_script.read(verdict.stdout)
    if verdict.official is None and not _not_installed(transcript):
        return official_grader.grade(required, transcript.log).resolved
    return bool(verdict.official)


def misses_network(check: Check, verdict: Verdict) -> bool:
    """Whether the log of an unresolved run says that there was no network, and there was none."""
    return not (check.network or verdict.resolved) and bool(_network_words(verdict))


def network_needed(required: OfficialTests, verdict: Verdict, reference: Verdict) -> str:
    """Why an unresolved run without a network says nothing of its patch; empty where it does.

    The log alone is no reason: a patch could print such words to have its failure left out. The reference must fail for
    want of a network too, in every required test that the patch fails.
    """
    words = _network_words(reference)
    if reference.resolved or not words or (reference.tests and not verdict.tests):
        return ""
    if set(not_passed(required, verdict.tests)) - set(not_passed(required, reference.tests)):
        return ""
    return f"its tests need a network; without one the reference fails the same tests ({words}): use --network"


def _network_words(verdict: Verdict) -> str:
    return official_grader.network_missing(container_script.read(verdict.stdout).log)


def resolve_dispute(required: OfficialTests, shown: Verdict, reference: Verdict | None = None) -> Verdict:
    """What is believed of a run in which all required tests seem to have passed.

    Without a `reference` (its run, with the same canaries) everything that should not be counts.
    """
    if reference is not None and not reference.resolved:
        return shown
    found = _with(shown, _trusted(required, shown, reference))
    if not found.resolved:
        return found
    own = any(status in FAILING for status in shown.tests.values())
    # Of the task's own tests: that a canary failed is as it should be.
    return replace(found, proof=_proof(shown), exit_code=shown.exit_code if own or not shown.proved else 0)


def _with(shown: Verdict, finding: Judgement) -> Verdict:
    resolved = finding.outcome is Outcome.RESOLVED
    proof, telling = (shown.proof, "") if resolved else ("", _telling(finding.reason, shown))
    return replace(
        shown, outcome=finding.outcome, reason=finding.reason, rule=finding.rule, proof=proof, telling=telling
    )


def _see(check: Check, required: OfficialTests, execution: Execution) -> ParsedRun:
    transcript = container_script.read(execution.stdout)
    if not transcript.started:
        return ParsedRun(transcript=transcript, graded=None, tests={})
    everything = official_grader.grade(required, transcript.log)
    found = canaries.split_log(transcript.log, check.planted)
    log, graded = found.rest, everything
    if check.planted:
        log = canaries.set_own_status(log, everything.tests, check)
        graded = official_grader.grade(required, log)
    proved, erred = canaries.list_failed(required, everything.tests, found)
    # Of the whole log: a failure of the task's own may name a canary, too.
    said = official_grader.failures(required, transcript.log)
    failed = {test: Status.FAILED for test in said if graded.tests.get(test) in PASSING}
    return ParsedRun(
        transcript=replace(transcript, log=log),
        graded=graded,
        tests={**graded.tests, **failed},
        proved=proved,
        erred=erred,
    )


def _official(check: Check, execution: Execution, seen: ParsedRun) -> bool | None:
    """None where the official runner would have run something else than we did."""
    if seen.transcript.applied.endswith(container_script.CONFLICT) or _not_installed(seen.transcript):
        return None
    # A run that came to no end has no official verdict but "not resolved".
    resolved = bool(seen.graded and seen.graded.resolved and not execution.timed_out)
    starved = not (resolved or check.network) and official_grader.network_missing(seen.transcript.log)
    return None if starved else resolved


def _not_installed(transcript: container_script.Transcript) -> bool:
    return container_script.NOT_INSTALLED in transcript.log.partition(official_grader.START)[0].splitlines()


def _finding(check: Check, required: OfficialTests, execution: Execution, seen: ParsedRun) -> Judgement:
    transcript, graded = seen.transcript, seen.graded
    if transcript.refused:
        said = f"the patch does not apply: {transcript.refused.removeprefix('error: ')}"
        return Judgement(Outcome.PATCH_DID_NOT_APPLY, said)
    if transcript.broken:
        return Judgement(Outcome.INSTALL_FAILED, transcript.broken)
    if _not_installed(transcript):
        # That the untouched one can be was tried before this run.
        return Judgement(Outcome.BUILD_FAILED, "the package installs without the patch, but not with it")
    if execution.timed_out:
        return _overtime(check, execution)
    if execution.oom:
        return Judgement(Outcome.BUILD_FAILED, "the tests ran out of memory")
    if execution.exit_code is None:
        return Judgement(Outcome.BUILD_FAILED, "the test command was killed")
    if graded is None:
        return Judgement(Outcome.BUILD_FAILED, f"the tests were not started (exit status {execution.exit_code})")
    if execution.truncated:
        said = f"more than {check.limits.output_bytes:,} bytes were printed, and results lost"
        return Judgement(Outcome.BUILD_FAILED, said)
    if not graded.found:
        said = f"no test results can be read from the log (exit status {execution.exit_code})"
        return Judgement(Outcome.BUILD_FAILED, said)
    return _compare(required, graded)


def _overtime(check: Check, execution: Execution) -> Judgement:
    """What a run that was ended by one of its limits says of the patch, and which limit that was."""
    limit, wall, used = check.timeout, check.patience * check.timeout, execution.cpu_seconds
    if execution.starved:
        said = f"the machine is overloaded: in {wall:g} s the tests got {used:.1f} s of their {limit:g} s of CPU time"
        return Judgement(Outcome.NOT_MEASURED, f"{said}; run the same command again when the load is lower")
    if check.patience > 1 and used is None:
        return Judgement(Outcome.TIMED_OUT, f"the tests did not end within {limit:g} s")
    if check.patience > 1 and used is not None and used >= limit:
        return Judgement(Outcome.TIMED_OUT, f"the tests did not end within {limit:g} s of CPU time")
    if check.patience > 1 and execution.seconds < wall:
        return Judgement(Outcome.TIMED_OUT, f"the tests hung: they waited for {limit:g} s and used almost no CPU time")
    return Judgement(Outcome.TIMED_OUT, f"the tests did not end within {wall:g} s")


def _compare(required: OfficialTests, graded: official_grader.Grade) -> Judgement:
    wanted = (*required.fail_to_pass, *required.pass_to_pass)
    if not graded.resolved:
        bad = not_passed(required, graded.tests)
        said = f"{len(bad)} of {len(wanted)} required tests did not pass: {first_few(bad)}"
        return Judgement(Outcome.TESTS_FAILED, said)
    if doubtful := _doubtful(required, graded.tests):
        said = f"a required test stands for several, and not all of them passed: {doubtful}"
        return Judgement(Outcome.TESTS_FAILED, said)
    return Judgement(Outcome.RESOLVED)


def _trusted(required: OfficialTests, shown: Verdict, reference: Verdict | None) -> Judgement:
    """All required tests passed, by the official rules; whether that can be believed."""
    known = reference.tests if reference else {}
    weak, strong = _counted(shown, reference)
    if weak and weak not in shown.proved:
        return Judgement(Outcome.TAMPERED, f"the canary '{weak}', a test that must fail, did not", "canary")
    ran = {name: status for test in _wanted(required) for name, status in _meant(test, shown.tests).items()}
    failed = {name: status for name, status in ran.items() if status is not Status.PASSED}
    odd = {name: status for name, status in failed.items() if known.get(name) is not status}
    if both := sorted(name for name, status in odd.items() if status in FAILING):
        said = f"required tests were reported as passed and as failed: {first_few(both)}"
        return Judgement(Outcome.TAMPERED, said, "contradiction")
    if odd:
        said = f"required tests were not run to their end, as the reference's were: {first_few(sorted(odd))}"
        return Judgement(Outcome.TESTS_FAILED, said)
    # One that fails in another way is no proof, but neither is it a success that was forced.
    if strong and not set(strong) & {*shown.proved, *shown.erred}:
        said = f"the canary '{strong[0]}', a test with a wrong value in it, did not fail"
        return Judgement(Outcome.TAMPERED, said, "canary")
    if shown.proved and shown.exit_code == 0 and not (reference and reference.exit_code == 0):
        said = f"exit status 0 though the canary '{shown.proved[0]}', a test that must fail, failed"
        return Judgement(Outcome.TAMPERED, said, "canary-status")
    return _explained(shown)


def _explained(shown: Verdict) -> Judgement:
    """A runner ends with another status than 0 because a test failed, or because something else went wrong."""
    if shown.exit_code and not shown.proved and not any(status in FAILING for status in shown.tests.values()):
        said = f"no test failed, but the test command ended with status {shown.exit_code}"
        return Judgement(Outcome.BUILD_FAILED, said)
    return Judgement(Outcome.RESOLVED)


def _wanted(required: OfficialTests) -> tuple[str, ...]:
    """Where only failures are reported, nothing is to be seen of the others."""
    return (*required.fail_to_pass, *required.pass_to_pass) if required.eval_type == "pass_and_fail" else ()


def _counted(shown: Verdict, reference: Verdict | None) -> tuple[str, Sequence[str]]:
    """Names of the weak canary and of the strong ones; only of those that the reference fails."""
    names = _names(shown)
    counted = list(names)
    if reference is not None:
        # Every run has other names for the same canaries.
        pairs = zip(names, _names(reference), strict=False)
        counted = [name for name, other in pairs if other in reference.proved]
    weak = names[0] if names and names[0] in counted else ""
    return weak, [name for name in counted if name in names[1:]]


def _names(verdict: Verdict) -> list[str]:
    return verdict.canary.split(", ") if verdict.canary else []


def _proof(shown: Verdict) -> str:
    names = _names(shown)
    if not names or names[0] not in shown.proved:
        return "log"
    return "canary" if len(shown.proved) > 1 else "canary-weak"


def not_passed(required: OfficialTests, tests: Mapping[str, Status]) -> list[str]:
    """Return the required tests that did not pass; whether a run is resolved is decided by the official grading."""
    allowed: dict[str, tuple[Status, ...]] = dict.fromkeys(required.pass_to_pass, (*PASSING, Status.SKIPPED))
    allowed |= dict.fromkeys(required.fail_to_pass, PASSING)
    if required.eval_type == "fail_only":
        return sorted(test for test in allowed if tests.get(test) is Status.FAILED)
    found = {test: set(_meant(test, tests).values()) for test in allowed}
    return sorted(test for test, good in allowed.items() if not found[test] or not found[test].issubset(good))


def _doubtful(required: OfficialTests, tests: Mapping[str, Status]) -> str:
    """A name that was cut off in the dataset stands for all tests that begin so; one that was skipped hides nothing."""
    cut = [test for test in _wanted(required) if test not in tests]
    return next((test for test in cut if FAILING.intersection(_meant(test, tests).values())), "")


def _meant(test: str, tests: Mapping[str, Status]) -> Mapping[str, Status]:
    """The tests of a run that a name in the dataset stands for."""
    if test in tests or test.count("[") <= test.count("]"):
        return {test: tests[test]} if test in tests else {}
    return {name: status for name, status in tests.items() if name.startswith(test)}


def _telling(reason: str, shown: Verdict) -> str:
    """What went wrong: which tests, and the end of what they printed, without those that passed."""
    log = container_script.read(shown.stdout).log
    # The first two lines are the rest of the marker's and the shell's trace of the command.
    printed = log.partition(official_grader.START)[2].partition(official_grader.END)[0].splitlines()[2:]
    lines = [
        line for line in printed if not line.startswith(("PASSED ", *TRACED)) and not line.endswith((" ok", " PASSED"))
    ]
    return "\n".join([reason, *lines[-TOLD:]])
