"""A check applied to a patch in a fresh sandbox gives a verdict: one path for both phases, on every sandbox."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from retrial import image_trees, patches, prebuilt, registry, required_tests
from retrial.errors import EnvironmentMissing, PatchError
from retrial.names import encode
from retrial.patches import Selection
from retrial.protocols import Language, Reader, Sandbox
from retrial.types import Check, Execution, Job, Limits, Outcome, Status, Task, Verdict
from retrial.words import some

LINT_REPORT = "lint.txt"
LINT_LINES = 50
STAGE = re.compile(r"^== (lint|build|test)$", re.MULTILINE)
"""What scripts print as they go on."""
TELLING_LINES = 3
TELLING_CHARACTERS = 300


def select(task: Task, patch: str, also: Collection[str] = ()) -> Selection | Verdict:
    """The part of a patch that counts, and what does not; a verdict when the patch as a whole is refused.

    `also` are paths that count whatever the task says of them: those that its reference changes.
    """
    try:
        if task.anywhere:
            return patches.select_anywhere(patches.normalise(patch), task.reserved, also)
        base = task.tree.files()
        found = patches.select(patches.normalise(patch), patches.counts(task, base))
        if task.partial and any(path in task.partial for path in patches.touched(found.patch)):
            return patches.reduced(found, base, dict.fromkeys(task.partial, _language(task).admitted))
    except PatchError as error:
        return Verdict(outcome=Outcome.PATCH_DID_NOT_APPLY, reason=str(error))
    return found


def run_check(task: Task, patch: str, check: Check, sandbox: Sandbox, *, untouched: bool = False) -> Verdict:
    """What `check` says of `patch`. An empty patch is not run, unless the `untouched` tree is what is asked about.

    Raises: NotMeasured when sandbox or tree fail; never for what the patch does.
    """
    selection = select(task, patch)
    if isinstance(selection, Verdict):
        return selection
    return check_selection(task, selection, check, sandbox, untouched=untouched)


def check_selection(
    task: Task, selection: Selection, check: Check, sandbox: Sandbox, *, untouched: bool = False
) -> Verdict:
    """As `run_check`, of a patch that was filtered already."""
    if not selection.patch and not untouched:
        return nothing_to_check(selection)
    try:
        if task.environment.tree:
            job = _image_job(task, selection.patch, check)
        else:
            patched = patches.patched(task.tree.files(), selection.patch)
            job = _job(task, patched, check, prebuilt.files(check.prebuild, task.environment, sandbox))
    except PatchError as error:
        return Verdict(outcome=Outcome.PATCH_DID_NOT_APPLY, reason=str(error), dropped=selection.dropped)
    if sum(map(len, job.files.values())) > job.limits.disk_mb << 20:
        return Verdict(outcome=Outcome.PATCH_DID_NOT_APPLY, reason="the patched files are larger than a job's disk")
    with ThreadPoolExecutor(1) as pool:
        # Lint reads while the tests run.
        found = pool.submit(lint, task, selection.patch) if check.lint else None
        execution = sandbox.run(job)
        errors = (*found.result(), *_compiler_errors(execution)) if found else ()
    verdict = judge(check, execution)
    if not verdict.outcome.measured:
        raise EnvironmentMissing(f"{task.instance_id}: {verdict.reason}.")
    return replace(verdict, lint=errors, dropped=selection.dropped)


def nothing_to_check(selection: Selection) -> Verdict:
    reason = "nothing in the patch counts" if selection.dropped else "the patch is empty"
    return Verdict(outcome=Outcome.PATCH_EMPTY, reason=reason, dropped=selection.dropped)


def _job(task: Task, patched: patches.Patched, check: Check, built: Mapping[str, bytes]) -> Job:
    # Test, build and configuration files are written over whatever the patch left in their place.
    return Job(
        environment=task.environment,
        script=check.script,
        files={**patched.files, **check.files, **built},
        executable=patched.executable - frozenset(check.files),
        folder=check.folder,
        limits=limits(check),
        network=check.network,
    )


def _image_job(task: Task, patch: str, check: Check) -> Job:
    """Only what the image does not hold goes in."""
    return Job(
        environment=task.environment,
        script=check.script,
        files={**check.files, image_trees.PATCH: encode(patch)},
        folder=check.folder,
        limits=limits(check),
        network=check.network,
    )


def limits(check: Check) -> Limits:
    return replace(check.limits, seconds=check.timeout)


def lint(task: Task, patch: str) -> tuple[str, ...]:
    """What is wrong with the edited files themselves that was not wrong before; reads, never runs."""
    if task.language not in registry.names("languages"):
        return ()
    before = task.tree.some(patches.touched(patch))
    return _language(task).lint(before, patches.patched(before, patch).files)


def _language(task: Task) -> Language:
    language: Language = registry.module("languages", task.language).make()
    return language


def _compiler_errors(execution: Execution) -> tuple[str, ...]:
    """What the check's own first step found, for languages that are read by their compiler."""
    text = execution.reports.get(LINT_REPORT, b"").decode(errors="replace")
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())[:LINT_LINES]


def judge(check: Check, execution: Execution) -> Verdict:
    """Pure: the same execution is always the same verdict."""
    if check.required is not None:
        return required_tests.judge(check, check.required, execution)
    reader: Reader = registry.module("readers", check.reader).make()
    found = reader.read(execution)
    execution = replace(execution, stdout=reader.text(execution.stdout))
    tests = {} if isinstance(found, str) else found
    outcome, reason = _outcome(check, execution, tests, found if isinstance(found, str) else "")
    return Verdict(
        outcome=outcome,
        reason=reason,
        tests=tests,
        exit_code=execution.exit_code,
        seconds=execution.seconds,
        proof="report" if outcome is Outcome.RESOLVED and check.expected is not None else "",
        stdout=execution.stdout,
        stderr=execution.stderr,
    )


def _outcome(check: Check, execution: Execution, tests: Mapping[str, Status], unread: str) -> tuple[Outcome, str]:
    building = (STAGE.findall(execution.stdout) or ["test"])[-1] != "test"
    if execution.timed_out:
        return Outcome.TIMED_OUT, f"the {'build' if building else 'tests'} did not end within {check.timeout:g} s"
    if execution.oom:
        return Outcome.BUILD_FAILED, f"the {'build' if building else 'tests'} ran out of memory"
    told = telling(check.telling, execution)
    if execution.exit_code is None:
        return Outcome.BUILD_FAILED, f"the test command was killed{told}"
    if building and not tests and execution.exit_code:
        return Outcome.BUILD_FAILED, f"the build failed with status {execution.exit_code}{told}"
    if unread and execution.truncated:
        unread = "so much was printed that the report was lost"
    if unread:
        return Outcome.BUILD_FAILED, f"{unread} (exit status {execution.exit_code}){told}"
    if not tests:
        return Outcome.BUILD_FAILED, f"no tests were found{told}"
    if all(status in (Status.SKIPPED, Status.XFAILED) for status in tests.values()):
        return Outcome.TESTS_FAILED, f"all {len(tests)} tests were skipped"
    if all(status is Status.ERROR for status in tests.values()):
        return Outcome.BUILD_FAILED, f"the tests could not be loaded{told}"
    return _compare(check, execution, tests)


def telling(pattern: str, execution: Execution) -> str:
    """The first lines of output that say what went wrong, to be put behind a reason."""
    if not pattern:
        return ""
    lines = [line.strip() for text in (execution.stderr, execution.stdout) for line in text.splitlines()]
    # Only so far into a line: it may be as long as the job liked.
    found = [line for line in lines if re.search(pattern, line[:TELLING_CHARACTERS])]
    return f": {' / '.join(dict.fromkeys(found[:TELLING_LINES]))[:TELLING_CHARACTERS]}" if found else ""


def _compare(check: Check, execution: Execution, tests: Mapping[str, Status]) -> tuple[Outcome, str]:
    expected = check.expected
    bad = sorted(test for test, status in tests.items() if not _accepted(check, test, status))
    missing = sorted(set(expected or ()) - set(tests))
    unknown = sorted(set(tests) - set(expected)) if expected is not None else []
    if execution.exit_code == 0 and (bad or missing):
        # A runner that saw a failure, or did not run everything, does not end with 0 by itself.
        unskipped = [test for test in bad if tests[test] not in (Status.SKIPPED, Status.XFAILED)]
        if unskipped or missing:
            return Outcome.TAMPERED, f"exit status 0 though {some(unskipped or missing)} did not pass"
    if bad:
        return Outcome.TESTS_FAILED, f"{len(bad)} of {len(tests)} tests did not pass: {some(bad)}"
    if missing:
        return Outcome.TESTS_FAILED, f"{len(missing)} of {len(expected or ())} tests did not run: {some(missing)}"
    if unknown:
        return Outcome.TAMPERED, f"tests were reported that the reference does not have: {some(unknown)}"
    if execution.exit_code != 0:
        told = telling(check.telling, execution)
        ended = f"all tests passed, but the test command ended with status {execution.exit_code}"
        return Outcome.BUILD_FAILED, ended + told
    return Outcome.RESOLVED, ""


def _accepted(check: Check, test: str, status: Status) -> bool:
    """Passed; skipped or xfailed only where the reference was, or where that is not known yet."""
    if status in (Status.SKIPPED, Status.XFAILED) and check.optional and check.expected is None:
        return True
    return status is Status.PASSED or (check.expected is not None and check.expected.get(test) is status)
