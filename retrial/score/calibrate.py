"""report.py --calibrate: which tasks can be trusted on this machine. What is found out counts in every later score."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from retrial import __version__
from retrial.benchmarks import select_tasks
from retrial.checks import Answer, Check
from retrial.errors import Overloaded
from retrial.grading import calibration, verdict_cache
from retrial.grading.calibration import Calibration, TaskQuality
from retrial.grading.judge import own_grader
from retrial.grading.reference_runs import Reference, reference
from retrial.grading.run_check import select
from retrial.options import ReportOptions
from retrial.patches import policy
from retrial.patches.policy import Selection
from retrial.protocols import Benchmark, WorkerNode
from retrial.reports import calibration_table
from retrial.reports.calibration_table import CalibrationResults
from retrial.reports.records import SCHEMA
from retrial.score import inputs
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored, Scorer, eval_log, unmeasured
from retrial.score.worker import ScorerMaker, ScoringSetup, by_id, remote_scorer, set_up
from retrial.store.manifest import Manifest
from retrial.store.runs import Run
from retrial.system import paths, run_log
from retrial.system.console import Progress, command_line, say
from retrial.system.locks import SCORING
from retrial.types import Outcome, Task, Verdict

KIND = "calibration"
LABELS = (*(f"gold-{number}" for number in range(1, calibration.RUNS + 1)), "null")
"""Of the logs of one task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedTask:
    """What came of one task."""

    task: Task
    calibration: Calibration | None = None
    failure: str = ""
    """Why it could not be measured, where there is no calibration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrator:
    """Finds out what tasks of one benchmark are worth; safe to call from many threads."""

    scorer: Scorer
    """Asks the reference as it asks any other patch."""

    def answer(self, task: Task) -> Answer:
        return self.scorer.answer(task)

    def known(self, task: Task) -> Calibration | None:
        return calibration.calibrated(task, self.answer(task), self.scorer.sandbox, self.scorer.verdicts)

    def calibrate(self, task: Task) -> tuple[Calibration, tuple[Verdict, ...]]:
        """All of it anew, kept at once; with the verdicts as they were: of the reference, then of the untouched tree.

        A time-out that may be due to load says nothing of the task.

        Raises: NotMeasured.
        """
        answer, sandbox, verdicts = self.answer(task), self.scorer.sandbox, self.scorer.verdicts
        # Where the benchmark does not say which tests must pass, the first run does, and proves a canary.
        known = None if answer.check.grader else reference(task, answer, sandbox, verdicts, fresh=True)
        gold = self._gold(task, answer, known)
        stub = self._stub(task, answer, known)
        if any(verdict.busy for verdict in (*gold, stub)):
            raise Overloaded(f"{task.instance_id}: tests timed out while the machine was busy.")
        found = Calibration(
            at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            gold=tuple(map(calibration.brief, gold)),
            differing=calibration.differing(gold, own_grader(answer.check)),
            stub=calibration.brief(stub),
            canaries=known.canaries if known else (),
            timeout=answer.check.timeout,
        )
        calibration.keep(found, task, answer, sandbox, verdicts)
        return found, (*gold, stub)

    def _gold(self, task: Task, answer: Answer, known: Reference | None) -> tuple[Verdict, ...]:
        selection = select(task, answer.patch, policy.changed_paths(answer.patch))
        if isinstance(selection, Verdict):
            return (selection,) * calibration.RUNS
        check = known.strict(answer.check) if known else answer.check
        if known and known.expected is None:
            # Nobody knows yet which tests there are.
            check = replace(check, allow_skips=True)
        first = (known.verdict,) if known else ()
        runs = range(calibration.RUNS - len(first))
        gold = (*first, *(self.scorer.run(task, selection, check, answer) for _ in runs))
        if known is None and gold[0].outcome is not Outcome.TIMED_OUT:
            # For `--gold`, as it would be kept by that.
            self._keep(task, selection.patch, check, gold[0])
        return gold

    def _stub(self, task: Task, answer: Answer, known: Reference | None) -> Verdict:
        check = known.strict(answer.check) if known else answer.check
        verdict = replace(self.scorer, untouched=True).run(task, Selection(patch="", dropped=()), check, answer)
        # For `--null`.
        self._keep(task, "", check, verdict)
        return verdict

    def _keep(self, task: Task, patch: str, check: Check, verdict: Verdict) -> None:
        self.scorer.verdicts.put(verdict_cache.key(task, patch, check, self.scorer.sandbox), verdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrating:
    """As work for an executor."""

    calibrator: Calibrator
    tasks: Mapping[str, Task]
    """By their ids."""
    done: frozenset[str]
    """What an earlier go has found out."""
    remote: Callable[[], ScorerMaker]

    def __call__(self, instance_id: str) -> tuple[Calibration, tuple[Verdict, ...]]:
        task = self.tasks[instance_id]
        with run_log.about(task=instance_id):
            found = self.calibrator.known(task) if instance_id in self.done else None
            return (found, ()) if found else self.calibrator.calibrate(task)

    def elsewhere(self) -> Callable[[WorkerNode], Calibrating]:
        return partial(_calibrating, self.remote(), self.done)


def _calibrating(make_scorer: ScorerMaker, done: frozenset[str], site: WorkerNode) -> Calibrating:
    scorer = make_scorer(site)
    return Calibrating(calibrator=Calibrator(scorer=scorer), tasks=by_id(scorer), done=done, remote=lambda: make_scorer)


def calibrate(options: ReportOptions, argv: Sequence[str]) -> tuple[Run, CalibrationResults]:
    """Write and return the results. Each task is saved at once; an interrupted calibration is resumed.

    Raises: UsageError, SandboxError.
    """
    benchmark = inputs.open_for(options, "demo-python")
    tasks = select_tasks(benchmark.tasks(), names=options.task, languages=options.filter_category)
    run = Run(paths.home(), f"calibrate--{benchmark.name}")
    setup = set_up(options, run, tasks)
    with run.lock(SCORING), run_log.RunLog(run.logs, run.name, command_line()):
        rows = _calibrate_all(
            options, benchmark, run, setup, [each for each in tasks if _id(each) not in setup.skipped]
        )
        found = results(run, benchmark, rows, setup, argv)
        run.write_results(found)
    return run, found


def _calibrate_all(
    options: ReportOptions, benchmark: Benchmark, run: Run, setup: ScoringSetup, tasks: Sequence[Task]
) -> list[CalibratedTask]:
    asked = set(map(_id, tasks))
    waiting = _waiting(run, benchmark, fresh=options.fresh)
    done = asked - waiting if asked & waiting else set[str]()
    if done:
        say(f"Going on with what was not finished: {len(done)} of {len(asked)} tasks are done (--fresh begins anew)")
    waiting |= asked - done
    calibrator = Calibrator(scorer=_scorer(options, benchmark, setup))
    tasks_by_id = {_id(task): task for task in tasks}
    used = setup.executor.share(setup.sandbox.environments)
    remote = partial(remote_scorer, calibrator.scorer, options, setup.ready(tasks), used)
    work = Calibrating(calibrator=calibrator, tasks=tasks_by_id, done=frozenset(done), remote=remote)
    rows: list[CalibratedTask] = []
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    _write_config(run, benchmark, started, waiting)
    with Progress("calibrate", len(tasks)) as progress:
        for instance_id, result in setup.executor.run(work, tasks_by_id):
            task = tasks_by_id[instance_id]
            if not isinstance(result, Exception) and result[1]:
                _write_logs(run, task, calibrator.answer(task), result[1])
            if isinstance(result, Exception):
                run_log.broken("not measured", result, task=_id(task))
            rows.append(_row(task, result if isinstance(result, Exception) else result[0]))
            if rows[-1].calibration is not None:
                waiting.discard(_id(task))
                _write_config(run, benchmark, started, waiting)
            sound = sum(_title(row) == TaskQuality.VALID for row in rows)
            progress.step(f"{_id(task)}: {_title(rows[-1])}", f"{sound} sound{setup.slowed}")
    return sorted(rows, key=lambda row: _id(row.task))


def _scorer(options: ReportOptions, benchmark: Benchmark, setup: ScoringSetup) -> Scorer:
    return Scorer(
        benchmark=benchmark,
        sandbox=setup.sandbox,
        verdicts=setup.executor.share(verdict_cache.Verdicts(paths.cache())),
        timeout=options.test_timeout_seconds,
        fresh=options.fresh,
    )


def _id(task: Task) -> str:
    return task.instance_id


def _waiting(run: Run, benchmark: Benchmark, *, fresh: bool) -> set[str]:
    """What an earlier go was asked for and did not come to."""
    manifest = run.manifest() if run.exists() and not fresh else Manifest()
    same = manifest.setting("benchmark_digest") == benchmark.provenance["digest"]
    return set(manifest.waiting) if same else set()


def _row(task: Task, result: Calibration | Exception) -> CalibratedTask:
    if isinstance(result, Calibration):
        return CalibratedTask(task=task, calibration=result)
    nobody = Submission(instance_id=task.instance_id, model_name_or_path="", patch="")
    return CalibratedTask(task=task, failure=unmeasured(task, nobody, result).verdict.reason)


def _title(row: CalibratedTask) -> str:
    return row.calibration.worth.replace("_", " ") if row.calibration else "not measured"


def _write_config(run: Run, benchmark: Benchmark, started: str, waiting: Collection[str]) -> None:
    """After every task: what is no longer waiting is done, whatever happens to us."""
    provenance = benchmark.provenance
    run.write_config(
        {
            "program": "report.py",
            "kind": KIND,
            "run": run.name,
            "started": started,
            "identity": {"benchmark": provenance["source"], "benchmark_digest": provenance["digest"]},
            "provenance": dict(provenance),
            "waiting": sorted(waiting),
            "versions": {"retrial": __version__},
        }
    )


def _write_logs(run: Run, task: Task, answer: Answer, seen: Sequence[Verdict]) -> None:
    for label, verdict in zip(LABELS, seen, strict=True):
        patch = "" if label == LABELS[-1] else answer.patch
        submission = Submission(instance_id=task.instance_id, model_name_or_path=label, patch=patch)
        scored = Scored(submission=submission, task=task, verdict=verdict, check=answer.check)
        run.write_log(task.instance_id, label, eval_log(scored))


def results(
    run: Run, benchmark: Benchmark, rows: Sequence[CalibratedTask], setup: ScoringSetup, argv: Sequence[str]
) -> CalibrationResults:
    known = [(row.task, row.calibration) for row in rows if row.calibration]
    instances = [calibration_table.row(task, found) for task, found in known]
    not_measured = {row.task.instance_id: row.failure for row in rows if not row.calibration}
    return CalibrationResults(
        schema=SCHEMA,
        kind=KIND,
        run=run.name,
        benchmark=benchmark.name,
        command=" ".join(argv),
        totals=calibration_table.totals(instances, not_measured=len(not_measured), skipped=len(setup.skipped)),
        proofs=dict(Counter(row.proof or "none" for row in instances)),
        not_measured=not_measured,
        skipped=dict(setup.skipped),
        void={task.instance_id: found.void for task, found in known if found.void},
        provenance={"benchmark": dict(benchmark.provenance), **setup.record(), "retrial": __version__},
        instances=instances,
    )
