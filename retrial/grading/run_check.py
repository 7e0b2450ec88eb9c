"""A check applied to a patch in a fresh sandbox gives a verdict: one path for both phases, on every sandbox."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from retrial import registry
from retrial.checks import Check
from retrial.errors import NotInstalled, Overloaded, PatchError
from retrial.grading import canaries, prebuild
from retrial.grading.judge import judge, own_grader
from retrial.language import Language
from retrial.patches import apply, policy
from retrial.patches.apply import Patched
from retrial.patches.parser import normalise
from retrial.patches.policy import Selection
from retrial.protocols import Sandbox
from retrial.system import host
from retrial.types import Execution, Job, Limits, Outcome, Task, Verdict

LINT_REPORT = "lint.txt"
LINT_LINES = 50
BUSY = "possibly because the machine was busy, so this is not cached: run the same command again"


def select(task: Task, patch: str, also: Collection[str] = ()) -> Selection | Verdict:
    """The part of a patch that counts, and what does not; a verdict when the patch as a whole is refused.

    `also` are paths that count whatever the task says of them: those that its reference changes.
    """
    try:
        if task.whole_repository:
            return policy.select_anywhere(normalise(patch), task.protected_globs, also)
        base = task.tree.files()
        found = policy.select(normalise(patch), policy.allowed_changes(task, base))
        if task.partly_editable and any(path in task.partly_editable for path in policy.changed_paths(found.patch)):
            rules = dict.fromkeys(task.partly_editable, language_of(task).admitted)
            return policy.keep_allowed_parts(found, base, rules)
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
    first, disturbed = _run(task, selection, check, sandbox)
    if not disturbed:
        return first
    # Canaries took time from the task's own tests, which get all of it now; and only if they end, so do canaries.
    own, _ = _run(task, selection, replace(check, canaries=()), sandbox)
    return _run(task, selection, replace(check, own_ended=True), sandbox)[0] if own.resolved else own


def _run(task: Task, selection: Selection, check: Check, sandbox: Sandbox) -> tuple[Verdict, bool]:
    """The verdict, and whether it ran out of time, of which canaries had a share."""
    grader = own_grader(check)
    if grader:
        check = grader.plant(check, task.environment, sandbox)
    elif check.canaries:
        check = canaries.plant(check, canaries.drawn(check.canaries))
    after = None
    try:
        if grader:
            job = grader.job(task, selection.patch, check, sandbox)
        else:
            patched = apply.patched(task.tree.files(), selection.patch)
            job, after = _job(task, patched, check, sandbox), patched.files
    except PatchError as error:
        return _refused(selection, str(error)), False
    if sum(map(len, job.files.values())) > job.limits.disk_mb << 20:
        return _refused(selection, "the patched files are larger than a job's disk"), False
    # Lint reads while the tests run, or wait for their turn.
    found = _linting(task, selection.patch, after) if check.lint else None
    execution = sandbox.run(job)
    errors = (*found.result(), *_compiler_errors(execution)) if found else ()
    verdict = judge(check, execution)
    if execution.starved and not verdict.outcome.measured:
        raise Overloaded(f"{task.instance_id}: {verdict.reason}.")
    if not verdict.outcome.measured:
        raise NotInstalled(f"{task.instance_id}: {verdict.reason}.")
    if verdict.outcome is Outcome.TIMED_OUT and host.may_be_load(job.limits, execution):
        verdict = replace(verdict, busy=True, reason=f"{verdict.reason}; {BUSY}")
    disturbed = bool(check.canaries) and canaries.disturbed(check, execution)
    return replace(verdict, lint=errors, dropped=selection.dropped), disturbed


def _refused(selection: Selection, why: str) -> Verdict:
    return Verdict(outcome=Outcome.PATCH_DID_NOT_APPLY, reason=why, dropped=selection.dropped)


def nothing_to_check(selection: Selection) -> Verdict:
    reason = "nothing in the patch counts" if selection.dropped else "the patch is empty"
    return Verdict(outcome=Outcome.PATCH_EMPTY, reason=reason, dropped=selection.dropped)


def _job(task: Task, patched: Patched, check: Check, sandbox: Sandbox) -> Job:
    built = prebuild.files(check.prebuild, task.environment, sandbox, fresh=check.fresh) if check.prebuild else {}
    # Test, build and configuration files are written over whatever the patch left in their place.
    return Job(
        environment=task.environment,
        script=check.script,
        files={**patched.files, **check.files, **built},
        executable=patched.executable - frozenset(check.files),
        folder=check.folder,
        limits=limits(check),
        network=check.network,
        sealed=frozenset(check.files) - check.run_may_change,
    )


def limits(check: Check) -> Limits:
    cpu_seconds = check.seconds if check.patience > 1 else None
    return replace(check.limits, seconds=check.patience * check.seconds, cpu_seconds=cpu_seconds)


def lint(task: Task, patch: str, after: Mapping[str, bytes] | None = None) -> tuple[str, ...]:
    """What is wrong with the edited files themselves that was not wrong before; reads, never runs.

    `after` is the patched tree, if the caller has it already.
    """
    if task.language not in registry.names("languages"):
        return ()
    paths = policy.changed_paths(patch)
    before = task.tree.some(paths)
    after = apply.patched(before, patch).files if after is None else after
    return language_of(task).lint(before, {path: after[path] for path in paths if path in after})


def _linting(task: Task, patch: str, after: Mapping[str, bytes] | None) -> Future[tuple[str, ...]]:
    """Under way; its thread ends with it, however long the tests wait for their turn."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="retrial-lint")
    found = pool.submit(lint, task, patch, after)
    pool.shutdown(wait=False)
    return found


def language_of(task: Task) -> Language:
    language: Language = registry.module("languages", task.language).make()
    return language


def _compiler_errors(execution: Execution) -> tuple[str, ...]:
    """What the check's own first step found, for languages that are read by their compiler."""
    text = execution.reports.get(LINT_REPORT, b"").decode(errors="replace")
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())[:LINT_LINES]
