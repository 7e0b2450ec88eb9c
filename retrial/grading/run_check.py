"""A check applied to a patch in a fresh sandbox gives a verdict: one path for both phases, on every sandbox."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from retrial import registry
from retrial.benchmarks.swebench import container_script, reinstall
from retrial.errors import InstallDiffers, NotInstalled, Overloaded, PatchError
from retrial.grading import canaries, prebuild
from retrial.grading.judge import judge
from retrial.language import Language
from retrial.patches import apply, policy
from retrial.patches.names import encode
from retrial.patches.parser import normalise
from retrial.patches.policy import Selection
from retrial.protocols import Sandbox
from retrial.system import host
from retrial.types import Check, Execution, Job, Limits, Outcome, Task, Verdict

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
            return policy.keep_allowed_parts(found, base, dict.fromkeys(task.partly_editable, _language(task).admitted))
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
    if not check.canaries:
        return _run(task, selection, check, sandbox).verdict
    first = _run(task, selection, _planted(check), sandbox)
    if not first.disturbed:
        return first.verdict
    # Canaries took time from the task's own tests, which get all of it now; and only if they end, so do canaries.
    own = _run(task, selection, replace(check, canaries=()), sandbox).verdict
    return _run(task, selection, _planted(replace(check, own_ended=True)), sandbox).verdict if own.resolved else own


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    verdict: Verdict
    disturbed: bool = False
    """It ran out of time, of which canaries had a share."""


def _planted(check: Check) -> Check:
    return canaries.plant(check, canaries.drawn(check.canaries))


def _run(task: Task, selection: Selection, check: Check, sandbox: Sandbox) -> _Ran:
    try:
        if task.environment.tree:
            job = _image_job(task, selection.patch, check, _script(task, selection.patch, check, sandbox))
        else:
            patched = apply.patched(task.tree.files(), selection.patch)
            job = _job(task, patched, check, prebuild.files(check.prebuild, task.environment, sandbox))
    except PatchError as error:
        return _refused(selection, str(error))
    if sum(map(len, job.files.values())) > job.limits.disk_mb << 20:
        return _refused(selection, "the patched files are larger than a job's disk")
    # Lint reads while the tests run, or wait for their turn.
    found = _linting(task, selection.patch) if check.lint else None
    execution = sandbox.run(job)
    errors = (*found.result(), *_compiler_errors(execution)) if found else ()
    verdict = judge(check, execution)
    if execution.starved and not verdict.outcome.measured:
        raise Overloaded(f"{task.instance_id}: {verdict.reason}.")
    if not verdict.outcome.measured:
        raise NotInstalled(f"{task.instance_id}: {verdict.reason}.")
    if verdict.outcome is Outcome.TIMED_OUT and host.may_be_load(job.limits, execution):
        verdict = replace(verdict, busy=True, reason=f"{verdict.reason}; {BUSY}")
    return _Ran(
        verdict=replace(verdict, lint=errors, dropped=selection.dropped), disturbed=canaries.disturbed(check, execution)
    )


def _refused(selection: Selection, why: str) -> _Ran:
    return _Ran(verdict=Verdict(outcome=Outcome.PATCH_DID_NOT_APPLY, reason=why, dropped=selection.dropped))


def nothing_to_check(selection: Selection) -> Verdict:
    reason = "nothing in the patch counts" if selection.dropped else "the patch is empty"
    return Verdict(outcome=Outcome.PATCH_EMPTY, reason=reason, dropped=selection.dropped)


def _job(task: Task, patched: apply.Patched, check: Check, built: Mapping[str, bytes]) -> Job:
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


def _script(task: Task, patch: str, check: Check, sandbox: Sandbox) -> str:
    """Which script of the check to run.

    Raises: InstallDiffers when the package must be installed again, and what that gives could not be believed.
    """
    if check.reinstall is None:
        return container_script.SCRIPT
    try:
        needed = reinstall.needed(policy.changed_paths(patch), check.reinstall, task.environment, sandbox)
    except InstallDiffers as error:
        raise InstallDiffers(f"{task.instance_id}: {error}.") from None
    return container_script.SCRIPT if needed else container_script.SCRIPT_WITHOUT_INSTALL


def _image_job(task: Task, patch: str, check: Check, script: str) -> Job:
    """Only what the image does not hold goes in."""
    return Job(
        environment=task.environment,
        script=check.script,
        files={**check.files, container_script.PATCH: encode(patch), container_script.CHOICE: f"{script}\n".encode()},
        folder=check.folder,
        limits=limits(check),
        network=check.network,
    )


def limits(check: Check) -> Limits:
    cpu_seconds = check.seconds if check.patience > 1 else None
    return replace(check.limits, seconds=check.patience * check.seconds, cpu_seconds=cpu_seconds)


def lint(task: Task, patch: str) -> tuple[str, ...]:
    """What is wrong with the edited files themselves that was not wrong before; reads, never runs."""
    if task.language not in registry.names("languages"):
        return ()
    before = task.tree.some(policy.changed_paths(patch))
    return _language(task).lint(before, apply.patched(before, patch).files)


def _linting(task: Task, patch: str) -> Future[tuple[str, ...]]:
    """Under way; its thread ends with it, however long the tests wait for their turn."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="retrial-lint")
    found = pool.submit(lint, task, patch)
    pool.shutdown(wait=False)
    return found


def _language(task: Task) -> Language:
    language: Language = registry.module("languages", task.language).make()
    return language


def _compiler_errors(execution: Execution) -> tuple[str, ...]:
    """What the check's own first step found, for languages that are read by their compiler."""
    text = execution.reports.get(LINT_REPORT, b"").decode(errors="replace")
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())[:LINT_LINES]
