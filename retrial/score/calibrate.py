"""report.py --calibrate: which tasks can be trusted on this machine. What is found out counts in every later score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

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
from retrial.score.save import write_config
from retrial.score.scorer import Scored, Scorer, eval_log, verdict_of
from retrial.score.worker import ScoreWorker, ScoringSetup, set_up
from retrial.store.manifest import Manifest, utc_now
from retrial.store.runs import Run
from retrial.system import paths, run_log
from retrial.system.console import Progress, command_line, say
from retrial.system.locks import SCORING
from retrial.types import Outcome, Task, Verdict

KIND = "calibration"
LABELS = (*(f"gold-{number}" for number in range(1, calibration.RUNS + 1)), "null")
"""Of the logs of one task."""
CalibratedTask: TypeAlias = tuple[Task, Calibration | str]
"""What came of one task; where it could not be measured, why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationWorker:
    """Calibrates one task; safe to call from many threads."""

    scoring: ScoreWorker
    done: frozenset[str]
    """What an earlier go has found out."""

    def __call__(self, instance_id: str) -> tuple[Calibration, tuple[Verdict, ...]]:
        task, scorer = self.scoring.tasks[instance_id], self.scoring.scorer
        with run_log.about(task=instance_id):
            answer = scorer.answer(task)
            known = None
            if instance_id in self.done:
                known = calibration.calibrated(task, answer, scorer.sandbox, scorer.verdicts)
            return (known, ()) if known else calibrate_task(task, answer, scorer)

    def elsewhere(self) -> Callable[[WorkerNode], CalibrationWorker]:
        return partial(_open_worker, self.scoring.elsewhere(), self.done)


def _open_worker(
    open_: Callable[[WorkerNode], ScoreWorker], done: frozenset[str], site: WorkerNode
) -> CalibrationWorker:
    return CalibrationWorker(scoring=open_(site), done=done)


def calibrate_task(task: Task, answer: Answer, scorer: Scorer) -> tuple[Calibration, tuple[Verdict, ...]]:
    """All of it anew, kept at once; with the verdicts as they were: of the reference, then of the untouched tree.

    A time-out that may be due to load says nothing of the task.

    Raises: NotMeasured.
    """
    sandbox, verdicts = scorer.sandbox, scorer.verdicts
    # Where the benchmark does not say which tests must pass, the first run does, and proves a canary.
    known = None if answer.check.grader else reference(task, answer, sandbox, verdicts, fresh=True)
    check = known.strict(answer.check) if known else answer.check
    gold = _gold(task, answer, scorer, known, check)
    stub = replace(scorer, untouched=True).run(task, Selection(patch="", dropped=()), check, answer)
    # For `--null`.
    verdicts.put(verdict_cache.key(task, "", check, sandbox), stub)
    if any(verdict.busy for verdict in (*gold, stub)):
        raise Overloaded(f"{task.instance_id}: tests timed out while the machine was busy.")
    found = Calibration(
        at=utc_now(),
        gold=tuple(map(calibration.brief, gold)),
        differing=calibration.differing(gold, own_grader(answer.check)),
        stub=calibration.brief(stub),
        canaries=known.canaries if known else (),
        timeout=answer.check.timeout,
    )
    verdicts.put_value(calibration.key(task, answer, sandbox), found)
    return found, (*gold, stub)


def _gold(task: Task, answer: Answer, scorer: Scorer, known: Reference | None, check: Check) -> tuple[Verdict, ...]:
    selection = select(task, answer.patch, policy.changed_paths(answer.patch))
    if isinstance(selection, Verdict):
        return (selection,) * calibration.RUNS
    if known and known.expected is None:
        # It is not known yet which tests there are.
        check = replace(check, allow_skips=True)
    first = (known.verdict,) if known else ()
    runs = range(calibration.RUNS - len(first))
    gold = (*first, *(scorer.run(task, selection, check, answer) for _ in runs))
    if known is None and gold[0].outcome is not Outcome.TIMED_OUT:
        # For `--gold`, as it would be kept by that.
        scorer.verdicts.put(verdict_cache.key(task, selection.patch, check, scorer.sandbox), gold[0])
    return gold


def calibrate(options: ReportOptions, argv: Sequence[str]) -> tuple[Run, CalibrationResults]:
    """Write and return the results. Each task is saved at once; an interrupted calibration is resumed.

    Raises: UsageError, SandboxError.
    """
    benchmark = inputs.open_for(options, "demo-python")
    tasks = select_tasks(benchmark.tasks(), names=options.task, languages=options.filter_category)
    run = Run(paths.home(), f"calibrate--{benchmark.name}")
    setup = set_up(options, run, tasks)
    with run.lock(SCORING), run_log.RunLog(run.logs, run.name, command_line()):
        rows = _calibrate_all(benchmark, run, setup, [each for each in tasks if each.instance_id not in setup.skipped])
        found = results(run, benchmark, rows, setup, argv)
        run.write_results(found)
    return run, found


def _calibrate_all(benchmark: Benchmark, run: Run, setup: ScoringSetup, tasks: Sequence[Task]) -> list[CalibratedTask]:
    asked = {task.instance_id for task in tasks}
    waiting = _waiting(run, benchmark, fresh=setup.options.fresh)
    done = asked - waiting if asked & waiting else set[str]()
    if done:
        say(f"Going on with what was not finished: {len(done)} of {len(asked)} tasks are done (--fresh begins anew)")
    waiting |= asked - done
    scoring = setup.worker(benchmark, tasks)
    rows: list[CalibratedTask] = []
    # After every task: what is no longer waiting is done, whatever happens to us.
    write_config_now = partial(write_config, run, benchmark, started=utc_now(), kind=KIND)
    write_config_now(waiting=sorted(waiting))
    with Progress("calibrate", len(tasks)) as progress:
        work = CalibrationWorker(scoring=scoring, done=frozenset(done))
        for instance_id, result in setup.executor.run(work, [task.instance_id for task in tasks]):
            task = scoring.tasks[instance_id]
            if isinstance(result, Exception):
                run_log.broken("not measured", result, task=instance_id)
                rows.append((task, verdict_of(result).reason))
            else:
                found, seen = result
                if seen:
                    _write_logs(run, task, scoring.scorer.answer(task), seen)
                rows.append((task, found))
                waiting.discard(instance_id)
                write_config_now(waiting=sorted(waiting))
            sound = sum(_title(found) == TaskQuality.VALID for _, found in rows)
            progress.step(f"{instance_id}: {_title(rows[-1][1])}", f"{sound} sound{setup.slowed}")
    return sorted(rows, key=lambda row: row[0].instance_id)


def _waiting(run: Run, benchmark: Benchmark, *, fresh: bool) -> set[str]:
    """What an earlier go was asked for and did not come to."""
    manifest = run.manifest() if run.exists() and not fresh else Manifest()
    same = manifest.setting("benchmark_digest") == benchmark.provenance["digest"]
    return set(manifest.waiting) if same else set()


def _title(found: Calibration | str) -> str:
    return found.worth.replace("_", " ") if isinstance(found, Calibration) else "not measured"


def _write_logs(run: Run, task: Task, answer: Answer, seen: Sequence[Verdict]) -> None:
    for label, verdict in zip(LABELS, seen, strict=True):
        patch = "" if label == LABELS[-1] else answer.patch
        submission = Submission(instance_id=task.instance_id, model_name_or_path=label, patch=patch)
        scored = Scored(submission=submission, task=task, verdict=verdict, check=answer.check)
        run.write_log(task.instance_id, label, eval_log(scored))


def results(
    run: Run, benchmark: Benchmark, rows: Sequence[CalibratedTask], setup: ScoringSetup, argv: Sequence[str]
) -> CalibrationResults:
    known = [(task, found) for task, found in rows if isinstance(found, Calibration)]
    instances = [calibration_table.row(task, found) for task, found in known]
    not_measured = {task.instance_id: found for task, found in rows if isinstance(found, str)}
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
