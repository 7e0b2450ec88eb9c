"""Phase 2: each patch in a fresh sandbox, with the acceptance tests. Nothing that ran in phase 1 is used."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

from retrial.checks import Answer, Canary, Check
from retrial.errors import EnvironmentMissing, NotMeasured, TreeError
from retrial.grading import tamper_report, verdict_cache
from retrial.grading.calibration import calibrated
from retrial.grading.judge import own_grader
from retrial.grading.reference_runs import Reference, reference
from retrial.grading.run_check import check_selection, select
from retrial.grading.tamper_report import Tampering
from retrial.patches import policy
from retrial.patches.policy import Selection
from retrial.protocols import Benchmark, Sandbox
from retrial.score.predictions_file import Submission
from retrial.store.runs import FROM_CACHE
from retrial.types import Outcome, Task, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One submission and what came of it."""

    submission: Submission
    task: Task
    verdict: Verdict
    void: str = ""
    """Why the task cannot tell right from wrong here."""
    calibrated: bool = False
    """What calibration found out here is known, and is in `void`."""
    cached: bool = False
    check: Check | None = None
    """The acceptance tests; None when it never came to them."""
    counted: str = ""
    """The part of the patch that was scored."""
    gold_files: tuple[str, ...] = ()
    """What the reference changes."""
    tampering: Tampering = field(default_factory=Tampering)
    canaries: tuple[Canary, ...] = ()
    """The tests that must fail, as the reference has proved them."""

    @property
    def is_official(self) -> bool:
        """The benchmark has an official report, in which also a task stands that was not measured."""
        return bool(self.task.environment.tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorer:
    """Scores submissions of one benchmark; safe to call from many threads."""

    benchmark: Benchmark
    sandbox: Sandbox
    verdicts: verdict_cache.Verdicts
    timeout: float | None = None
    """In place of each check's own."""
    fresh: bool = False
    untouched: bool = False
    """Ask about the tree as it is, whatever the patch (for `--null`)."""

    def score(self, task: Task, submission: Submission) -> Scored:
        """Raises: NotMeasured."""
        answer = self.answer(task)
        # First, whatever the patch: whether a task is void must not depend on who is being scored.
        # Where the benchmark itself says which tests must pass, no reference has to be run for it.
        known = None
        if not answer.check.grader:
            known = reference(task, answer, self.sandbox, self.verdicts, fresh=self.fresh)
        selection = select(task, submission.patch, policy.changed_paths(answer.patch))
        verdict, cached = self._verdict(task, selection, answer, known)
        counted = "" if isinstance(selection, Verdict) else selection.patch
        if grader := own_grader(answer.check):
            verdict = replace(verdict, official=grader.official(answer.check, counted, verdict))
        # After the verdict, which is the stub's own with `--null`.
        void, is_calibrated = self._void(task, answer, known, self._runs(selection))
        return Scored(
            submission=submission,
            task=task,
            verdict=verdict,
            void=void,
            calibrated=is_calibrated,
            cached=cached,
            check=_kept(answer.check),
            counted=counted,
            gold_files=tuple(policy.changed_paths(answer.patch)),
            tampering=tamper_report.report(task, submission.patch, counted, answer.check, verdict),
            canaries=known.canaries if known else (),
        )

    def answer(self, task: Task) -> Answer:
        """With our own time limit and, if all is to be made again, without what was prebuilt."""
        found = self.benchmark.answer(task.instance_id)
        return replace(found, check=replace(found.check, timeout=self.timeout or found.check.timeout, fresh=self.fresh))

    def _runs(self, selection: Selection | Verdict) -> bool:
        return not isinstance(selection, Verdict) and (bool(selection.patch) or self.untouched)

    def _void(self, task: Task, answer: Answer, known: Reference | None, ran: bool) -> tuple[str, bool]:
        """Why the task is void here, and whether it was calibrated."""
        if known is None and not ran:
            # A patch that was never run: its image need not even be here.
            return "", False
        found = calibrated(task, answer, self.sandbox, self.verdicts)
        if found is not None and found.void:
            return found.void, True
        known = known or self._cached_reference(task, answer)
        void = known.void or self._stub_passes(task, answer, known) if known else ""
        return void, found is not None

    def _cached_reference(self, task: Task, answer: Answer) -> Reference | None:
        """What the reference showed here when `--gold` was run; None when it was not."""
        selection = select(task, answer.patch, policy.changed_paths(answer.patch))
        found = None if isinstance(selection, Verdict) else self._cached(task, selection.patch, answer.check)
        return Reference(verdict=found, canaries=(), cached=True) if found else None

    def _stub_passes(self, task: Task, answer: Answer, known: Reference) -> str:
        """Why the task tells nothing although its reference passes; as far as `--null` has been run here."""
        stub = self._cached(task, "", answer.check if answer.check.grader else known.strict(answer.check))
        return "its untouched stub passes" if stub is not None and stub.resolved else ""

    def _cached(self, task: Task, patch: str, check: Check) -> Verdict | None:
        return self.verdicts.get(verdict_cache.key(task, patch, check, self.sandbox))

    def _verdict(
        self, task: Task, selection: Selection | Verdict, answer: Answer, known: Reference | None
    ) -> tuple[Verdict, bool]:
        if isinstance(selection, Verdict):
            return selection, False
        if not self._runs(selection):
            return check_selection(task, selection, answer.check, self.sandbox), False
        if known and selection.patch == answer.patch and known.expected is not None:
            # The reference itself: its run is this run.
            own = replace(known.verdict, proof=known.proof(answer.check), dropped=selection.dropped, changed=())
            return own, known.cached
        check = known.strict(answer.check) if known else answer.check
        name = verdict_cache.key(task, selection.patch, check, self.sandbox)
        found = None if self.fresh else self.verdicts.get(name)
        if found is None:
            verdict = self.run(task, selection, check, answer)
            if not (known is None and selection.patch == answer.patch and verdict.outcome is Outcome.TIMED_OUT):
                # A reference that ran out of time may have been load.
                self.verdicts.put(name, verdict)
            return verdict, False
        # Another patch may have dropped other paths on its way to being the same patch.
        return replace(found, dropped=selection.dropped), True

    def run(self, task: Task, selection: Selection, check: Check, answer: Answer) -> Verdict:
        """Whatever the cache holds."""
        verdict = check_selection(task, selection, check, self.sandbox, untouched=self.untouched)
        grader = own_grader(check)
        if grader is None:
            return verdict
        known = partial(self._reference_verdict, task, answer)
        return grader.settle(check, verdict, known, is_reference=selection.patch == answer.patch)

    def _reference_verdict(self, task: Task, answer: Answer) -> Verdict:
        """What the reference's run shows where the benchmark itself says which tests must pass: asked only when in
        doubt.

        With the same canaries as any other run of its tests; run once, as `reference` is.
        """
        check = replace(answer.check, allow_skips=True)
        name = verdict_cache.key(task, answer.patch, check, self.sandbox)
        found = None if self.fresh else self.verdicts.get(name)
        selection = select(task, answer.patch, policy.changed_paths(answer.patch))
        if found is None and not isinstance(selection, Verdict):
            found = check_selection(task, selection, check, self.sandbox)
            if found.resolved:
                self.verdicts.put(name, found)
        return found or Verdict(outcome=Outcome.PATCH_DID_NOT_APPLY)


def _kept(check: Check) -> Check:
    """Without the tests themselves; what a benchmark's own runner would have left behind is made of its files."""
    return replace(check, files=check.files if check.grader else {}, prebuild=None)


def verdict_of(error: Exception) -> Verdict:
    """What a failure of our own looks like: never a model's."""
    outcome = Outcome.NOT_MEASURED
    if isinstance(error, EnvironmentMissing):
        outcome = Outcome.INSTALL_FAILED
    elif isinstance(error, TreeError):
        outcome = Outcome.RESET_FAILED
    reason = str(error) if isinstance(error, NotMeasured) else f"{type(error).__name__}: {error}"
    return Verdict(outcome=outcome, reason=reason)


def eval_log(scored: Scored) -> str:
    """Everything about one verdict, to read."""
    verdict = scored.verdict
    lines = [
        *([f"expected to fail, to prove that tests can: {verdict.canary}"] if verdict.canary else []),
        f"instance: {scored.task.instance_id}",
        f"model:    {scored.submission.model_name_or_path}",
        f"outcome:  {verdict.outcome} {verdict.reason}".rstrip(),
        f"proof:    {verdict.proof or '-'}   exit status: {verdict.exit_code}   seconds: {verdict.seconds:.2f}"
        + (FROM_CACHE if scored.cached else ""),
        *(f"canary:   {canary.path}: {canary.of}" for canary in scored.canaries),
        *([f"applied:  {verdict.applied}"] if verdict.applied else []),
        *([] if verdict.official is None else [f"official: {'resolved' if verdict.official else 'not resolved'}"]),
        *(f"{each.done + ':':9} {each.path} ({each.kind})" for each in scored.tampering.touched),
        *(f"changed:  {path}, by the run itself" for path in verdict.changed),
        *(f"to see:   {each.path}:{each.line}: {each.what}: {each.text}" for each in scored.tampering.suspicious),
        *(f"{status:8}  {test}" for test, status in sorted(verdict.tests.items())),
        "",
        "---- patch ----",
        scored.submission.patch.rstrip(),
        "---- command ----",
        scored.check.script.rstrip() if scored.check else "",
        "---- stdout ----",
        verdict.stdout.rstrip(),
        "---- stderr ----",
        verdict.stderr.rstrip(),
        "",
    ]
    return "\n".join(lines)
