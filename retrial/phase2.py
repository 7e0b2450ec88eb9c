"""report.py: bundle the predictions, score each in a fresh sandbox, write results."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrial import __version__, cache, config, paths, program, registry, submissions
from retrial.benchmarks import open_benchmark
from retrial.config import ReportOptions
from retrial.errors import TreeError, UsageError
from retrial.patches import normalise
from retrial.progress import Progress, say
from retrial.protocols import Benchmark, Context, Executor, Sandbox
from retrial.records import without_tests
from retrial.sandboxes import Bounded, Ready, choose, make_ready, skipped
from retrial.score import Scored, Scorer, eval_log, unmeasured
from retrial.selection import select_tasks
from retrial.store import SAFE, Run, latest_run
from retrial.submissions import Submission
from retrial.summary import Report, results
from retrial.table import render
from retrial.types import Task

DESCRIPTION = "Score predictions in fresh sandboxes with the acceptance tests, and write results.json."


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is to be scored."""

    run: Run
    benchmark: Benchmark
    submissions: tuple[Submission, ...]
    records: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    not_predicted: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, object] = field(default_factory=dict)
    problems: int = 0
    untouched: bool = False


def main(argv: Sequence[str]) -> int:
    options, rest = config.parse(ReportOptions, argv, DESCRIPTION, positional="RUN|FILE")
    workers = config.sandboxes_at_once(options.test_jobs)
    executor: Executor = registry.module("executors", options.executor).make(Context(options=options, workers=workers))
    trial = make_trial(options, rest)
    by_id = {task.instance_id: task for task in trial.benchmark.tasks()}
    tasks = [by_id[submission.instance_id] for submission in trial.submissions]
    sandbox = choose(options.sandbox, {task.environment for task in tasks}, Context(options=options), say)
    left_out = {**trial.skipped, **skipped(tasks, sandbox)}
    jobs = [(by_id[each.instance_id], each) for each in trial.submissions if each.instance_id not in left_out]
    ready = make_ready(sandbox, {task.environment for task, _ in jobs}, options.cache, say)
    _keep_config(trial)
    _write_bundle(trial, by_id)
    bounded = Bounded(sandbox, workers, ready.broken)
    scored = _score_all(options, trial, executor, bounded, jobs)
    report = _report(trial, scored, sandbox, left_out, ready)
    content = results(report)
    trial.run.write_results(content)
    print(render(report, content))
    print(f"\nResults: {trial.run.results_path}")
    return program.NOT_MEASURED if report.not_measured or trial.problems else program.DONE


def make_trial(options: ReportOptions, rest: Sequence[str]) -> Trial:
    """Raises: UsageError for anything that cannot be."""
    if len(rest) > 1:
        raise UsageError(f"One run or file at a time, not {len(rest)}.")
    if options.gold or options.null:
        if rest or (options.gold and options.null):
            raise UsageError("--gold and --null stand alone: they need no predictions, and exclude each other.")
        return _from_answers(options)
    run = _run_named(rest[0]) if rest else Run(paths.home(), latest_run(paths.home()))
    if options.task or options.filter_category:
        raise UsageError("--task and --filter-category go with --gold and --null; a run is scored whole.")
    return _from_run(options, run) if run is not None else _from_file(options, Path(rest[0]))


def _run_named(text: str) -> Run | None:
    """A run's name, or any path inside its folder; None for a file from elsewhere."""
    home = paths.home()
    path = Path(text)
    if SAFE.fullmatch(text) and Run(home, text).exists():
        return Run(home, text)
    folder = (home / "predictions").resolve()
    if path.exists() and folder in path.resolve().parents:
        return Run(home, path.resolve().relative_to(folder).parts[0])
    if path.exists():
        return None
    if "/" in text or path.suffix in (".json", ".jsonl"):
        raise UsageError(f"There is no file {text}.")
    raise UsageError(f"There is no run and no file '{text}'.")


def _from_run(options: ReportOptions, run: Run) -> Trial:
    stored = run.config()
    identity = stored.get("identity")
    if not isinstance(identity, dict):
        raise UsageError(f"{run.config_path} does not say what the run is: its identity is missing.")
    benchmark = _open(options, str(identity.get("benchmark", "")))
    if identity.get("benchmark_digest") not in (None, benchmark.provenance["digest"]):
        say(f"note: {benchmark.name} has changed since run '{run.name}' was started; it is scored as it is now")
    if stored.get("program") != "harness.py":
        return _from_bundle(run, benchmark, stored)
    records = {str(record["instance_id"]): record for record in run.predictions()}
    known = {task.instance_id for task in benchmark.tasks()}
    unknown = sorted(set(records) - known)
    if unknown:
        raise UsageError(f"{run.prediction_path(unknown[0])} is about a task that {benchmark.name} does not have.")
    skipped = {key: why for key, why in stored.get("skipped", {}).items() if key not in records}
    missing = [each for each in stored.get("selected", ()) if each not in records and each not in skipped]
    return Trial(
        run=run,
        benchmark=benchmark,
        submissions=tuple(_submission(record) for record in records.values()),
        records=records,
        not_predicted={instance_id: _why_open(run, instance_id) for instance_id in missing},
        skipped=skipped,
        source={"benchmark_digest": identity.get("benchmark_digest"), "harness": stored.get("versions")},
    )


def _from_bundle(run: Run, benchmark: Benchmark, stored: Mapping[str, Any]) -> Trial:
    """A run that report.py made before: its all_preds.jsonl is all there is."""
    imported = submissions.read(run.bundle_path, {task.instance_id for task in benchmark.tasks()})
    if imported.problems:
        raise submissions.refuse(imported)
    found = tuple(imported.submissions.values())
    untouched = bool(stored.get("untouched"))
    return Trial(run=run, benchmark=benchmark, submissions=found, source=stored.get("source", {}), untouched=untouched)


def _from_file(options: ReportOptions, path: Path) -> Trial:
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a predictions file or a run's name.")
    if not options.benchmark:
        raise UsageError(f"Which benchmark is {path} about? Say it with -b.")
    benchmark = _open(options, "")
    imported = submissions.read(path, {task.instance_id for task in benchmark.tasks()})
    if imported.problems and not (options.keep_going and imported.submissions):
        raise submissions.refuse(imported)
    for problem in imported.problems:
        say(f"left out: {problem}")
    for remark in imported.remarks[: submissions.SHOWN]:
        say(f"note: {remark}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    stem = "".join(letter if letter.isalnum() or letter in "_.-" else "-" for letter in path.stem)
    run = Run(paths.home(), f"{stem.lstrip('.-_') or 'file'}-{digest[:8]}")
    source = {"file": path.name, "sha256": digest}
    return Trial(
        run=run,
        benchmark=benchmark,
        submissions=tuple(imported.submissions.values()),
        source=source,
        problems=len(imported.problems),
    )


def _from_answers(options: ReportOptions) -> Trial:
    """The reference patches, or none at all, as predictions."""
    benchmark = _open(options, "demo-python")
    tasks = select_tasks(benchmark.tasks(), names=options.task, languages=options.filter_category)
    kind = "gold" if options.gold else "null"
    found = []
    for task in tasks:
        patch = _reference_patch(benchmark, task) if options.gold else ""
        found.append(Submission(instance_id=task.instance_id, model_name_or_path=kind, patch=patch))
    run = Run(paths.home(), f"{kind}--{benchmark.name}")
    source = {"kind": kind}
    return Trial(run=run, benchmark=benchmark, submissions=tuple(found), source=source, untouched=options.null)


def _reference_patch(benchmark: Benchmark, task: Task) -> str:
    try:
        return benchmark.answer(task.instance_id).patch
    except TreeError:
        # Said where it is scored, of this task alone.
        return ""


def _keep_config(trial: Trial) -> None:
    """A run of harness.py keeps its own; any other is what it is scored as now, and a change is said."""
    stored = trial.run.config() if trial.run.exists() else {}
    before, now = stored.get("identity", {}).get("benchmark"), trial.benchmark.provenance["source"]
    if before not in (None, now):
        say(f"note: run '{trial.run.name}' was about {before}; it is scored as {now} now")
    if stored.get("program") != "harness.py":
        _write_config(trial)


def _write_config(trial: Trial) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    provenance = trial.benchmark.provenance
    trial.run.write_config(
        {
            "program": "report.py",
            "run": trial.run.name,
            "started": now,
            "identity": {"benchmark": provenance["source"], "benchmark_digest": provenance["digest"]},
            "provenance": dict(provenance),
            "source": dict(trial.source),
            "untouched": trial.untouched,
            "versions": {"retrial": __version__},
        }
    )


def _open(options: ReportOptions, default: str) -> Benchmark:
    return open_benchmark(Context(options=options, name=options.benchmark or default))


def _submission(record: Mapping[str, Any]) -> Submission:
    return Submission(
        instance_id=str(record["instance_id"]),
        model_name_or_path=str(record["model_name_or_path"]),
        patch=normalise(str(record["model_patch"] or "")),
    )


def _why_open(run: Run, instance_id: str) -> str:
    reasons = [line["reason"] for line in run.journal(instance_id).lines() if line.get("event") == "not_measured"]
    return str(reasons[-1]) if reasons else "phase 1 has not finished it: run the same harness.py command again"


def _write_bundle(trial: Trial, by_id: Mapping[str, Task]) -> None:
    """What leaderboards take. A file from elsewhere is kept as it is."""
    rows = []
    for each in sorted(trial.submissions, key=lambda each: each.instance_id):
        patch = without_tests(each.patch, by_id[each.instance_id].editable) if trial.records else each.patch
        rows.append(
            {
                "instance_id": each.instance_id,
                "model_name_or_path": each.model_name_or_path,
                "model_patch": patch,
            }
        )
    trial.run.write_bundle(rows)


def _score_all(
    options: ReportOptions, trial: Trial, executor: Executor, sandbox: Sandbox, jobs: Sequence[tuple[Task, Submission]]
) -> tuple[Scored, ...]:
    scorer = Scorer(
        benchmark=trial.benchmark,
        sandbox=sandbox,
        verdicts=cache.Verdicts(options.cache),
        timeout=options.test_timeout_seconds,
        fresh=options.fresh,
        untouched=trial.untouched,
    )
    rows: list[Scored] = []
    resolved = 0
    with Progress("report", len(jobs)) as progress:
        for (task, submission), result in executor.run(lambda job: scorer.score(*job), jobs):
            row = unmeasured(task, submission, result) if isinstance(result, Exception) else result
            trial.run.write_log(task.instance_id, submission.model_name_or_path, eval_log(row))
            rows.append(row)
            resolved += row.verdict.resolved
            progress.step(f"{task.instance_id}: {row.verdict.outcome}", f"{resolved} resolved")
    return tuple(sorted(rows, key=lambda row: row.task.instance_id))


def _report(
    trial: Trial, scored: tuple[Scored, ...], sandbox: Sandbox, skipped: Mapping[str, str], ready: Ready
) -> Report:
    return Report(
        run=trial.run.name,
        benchmark=trial.benchmark.name,
        benchmark_size=len(trial.benchmark.tasks()),
        visible_is_hidden=trial.benchmark.visible_is_hidden,
        scored=scored,
        not_predicted=trial.not_predicted,
        skipped=skipped,
        records=trial.records,
        spent=trial.run.spent(),
        started=str(trial.run.config().get("started", "")),
        command=str(trial.run.config().get("command", "")),
        provenance={
            **trial.source,
            "benchmark": dict(trial.benchmark.provenance),
            "sandbox": dict(sandbox.describe()),
            "environments": ready.record(sandbox),
            "retrial": __version__,
        },
    )
