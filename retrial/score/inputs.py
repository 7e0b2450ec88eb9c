"""What is to be scored: a run, several as one, or a predictions file from elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from retrial.benchmarks import open_benchmark, select_tasks, shards
from retrial.errors import TreeError, UsageError
from retrial.options import ReportOptions
from retrial.patches.parser import normalise
from retrial.protocols import Benchmark, Context
from retrial.score import merge, predictions_file
from retrial.score.merge import Merged
from retrial.score.predictions_file import Submission
from retrial.store import history, integrity
from retrial.store.history import RunHistory, latest_run
from retrial.store.manifest import Manifest
from retrial.store.records import PredictionSummary
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.console import first_few, say
from retrial.types import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringInput:
    run: Run
    benchmark: Benchmark
    submissions: tuple[Submission, ...]
    records: Mapping[str, PredictionSummary] = field(default_factory=dict)
    not_predicted: Mapping[str, str] = field(default_factory=dict)
    agent_failed: str = ""
    """A sentence, if every attempt ended with an error and an empty patch: then nothing is scored."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, object] = field(default_factory=dict)
    problems: int = 0
    untouched: bool = False
    merged: Merged | None = None
    """When it was just made of several runs."""
    keep_first_results: bool = False
    """It is scored another time: only logs are written."""


def latest() -> Run:
    """The run, the grid or the repeats that were started last. Raises: UsageError when there is nothing."""
    run = Run(paths.home(), latest_run(paths.home()))
    if shard := shards.stored(run.manifest()):
        # Who names nothing may think of all of it.
        whole = shards.base_run_name(run.name)
        say(f"note: '{run.name}' is one of {shard.of} shards: 'report.py {whole}' makes one result of all here")
    return run


def from_run(options: ReportOptions, run: Run) -> ScoringInput:
    """Raises: UsageError."""
    manifest = run.manifest()
    if manifest.kind == "calibration":
        raise UsageError(f"Run '{run.name}' is a calibration: there are no predictions in it to score.")
    benchmark = _known_benchmark(options, run, history.identified(run))
    if manifest.holds_predictions:
        return _from_past(benchmark, history.read(run))
    return _from_bundle(run, benchmark, manifest)


def from_runs(options: ReportOptions, texts: Sequence[str]) -> ScoringInput:
    """Raises: UsageError."""
    home = paths.home()
    sources = merge.read(home, texts)
    first = next(iter(sources.values()))
    benchmark = _known_benchmark(options, first.run, first.manifest)
    merged = merge.merge(home, sources, options.run, benchmark.tasks())
    return replace(_from_past(benchmark, merged.past), merged=merged)


def from_file(options: ReportOptions, path: Path) -> ScoringInput:
    """Raises: UsageError."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a predictions file or a run's name.")
    if not options.benchmark:
        raise UsageError(f"Which benchmark is {path} about? Say it with -b.")
    benchmark = open_for(options, "")
    imported = predictions_file.read(path, {task.instance_id for task in benchmark.tasks()})
    if imported.problems and not (options.keep_going and imported.submissions):
        help = "Leave these lines out with --keep-going, or correct them: nothing was scored."
        raise integrity.refuse(imported.problems, *([help] if imported.submissions else []))
    for problem in imported.problems:
        say(f"left out: {problem}")
    for remark in imported.remarks[: integrity.SHOWN]:
        say(f"note: {remark}")
    chosen = _chosen(options, benchmark, path, imported.submissions)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    # A part of a file is a run of its own, so that it does not replace the results of all of it.
    whole = len(chosen) == len(imported.submissions)
    own = digest if whole else hashlib.sha256("\n".join((digest, *chosen)).encode()).hexdigest()
    stem = "".join(letter if letter.isalnum() or letter in "_.-" else "-" for letter in path.stem)
    run = Run(paths.home(), f"{stem.lstrip('.-_') or 'file'}-{own[:8]}")
    source = {"file": path.name, "sha256": digest}
    return ScoringInput(
        run=run,
        benchmark=benchmark,
        submissions=tuple(chosen.values()),
        source=source,
        problems=len(imported.problems),
    )


def _chosen(
    options: ReportOptions, benchmark: Benchmark, path: Path, found: Mapping[str, Submission]
) -> dict[str, Submission]:
    """Those that `--task` and `--filter-category` ask for; all without them.

    Raises: UsageError for a task that is not in the benchmark, or not in the file.
    """
    if not options.task and not options.filter_category:
        return dict(found)
    tasks = select_tasks(benchmark.tasks(), names=options.task, languages=options.filter_category)
    ids = [task.instance_id for task in tasks]
    missing = [instance_id for instance_id in ids if instance_id not in found]
    if missing and (options.task or len(missing) == len(ids)):
        raise UsageError(f"{path} has no prediction for {first_few(missing)}.")
    return {instance_id: found[instance_id] for instance_id in ids if instance_id in found}


def open_for(options: ReportOptions, default: str) -> Benchmark:
    return open_benchmark(Context(options=options, name=options.benchmark or default))


def _known_benchmark(options: ReportOptions, run: Run, manifest: Manifest) -> Benchmark:
    benchmark = open_for(options, str(manifest.setting("benchmark") or ""))
    if manifest.setting("benchmark_digest") not in (None, benchmark.provenance["digest"]):
        say(f"note: {benchmark.name} has changed since run '{run.name}' was started; it is scored as it is now")
    return benchmark


def _from_past(benchmark: Benchmark, found: RunHistory) -> ScoringInput:
    run, manifest = found.run, found.manifest
    unknown = sorted(set(found.records) - {task.instance_id for task in benchmark.tasks()})
    if unknown:
        raise UsageError(f"{run.prediction_path(unknown[0])} is about a task that {benchmark.name} does not have.")
    failed = history.agent_failure(found.records.values())
    submissions = (
        Submission(instance_id=key, model_name_or_path=record.model_name_or_path, patch=normalise(found.patches[key]))
        for key, record in found.records.items()
    )
    unmeasured = dict.fromkeys(found.records, history.AGENT_FAILED) if failed else {}
    sources = {name: getattr(manifest, name) for name in ("sources", "source_runs")}
    made_from = {**sources, "replay_of": manifest.setting("replay_of")}
    return ScoringInput(
        run=run,
        benchmark=benchmark,
        submissions=() if failed else tuple(submissions),
        records=found.records,
        not_predicted={**found.not_predicted, **unmeasured},
        agent_failed=failed,
        skipped=found.skipped,
        source={
            "benchmark_digest": manifest.setting("benchmark_digest"),
            "harness": manifest.versions,
            **{name: value for name, value in made_from.items() if value is not None},
        },
    )


def _from_bundle(run: Run, benchmark: Benchmark, manifest: Manifest) -> ScoringInput:
    """A run that report.py made before: its all_preds.jsonl is all there is."""
    found = predictions_file.read_bundle(run.bundle_path, {task.instance_id for task in benchmark.tasks()})
    return ScoringInput(
        run=run,
        benchmark=benchmark,
        submissions=tuple(found.values()),
        source=manifest.source,
        untouched=manifest.untouched,
    )


def from_answers(options: ReportOptions) -> ScoringInput:
    """The reference patches, or none at all, as predictions."""
    benchmark = open_for(options, "demo-python")
    tasks = select_tasks(benchmark.tasks(), names=options.task, languages=options.filter_category)
    kind = "gold" if options.gold else "null"
    found = []
    for task in tasks:
        patch = _reference_patch(benchmark, task) if options.gold else ""
        found.append(Submission(instance_id=task.instance_id, model_name_or_path=kind, patch=patch))
    run = Run(paths.home(), f"{kind}--{benchmark.name}")
    source = {"kind": kind}
    return ScoringInput(run=run, benchmark=benchmark, submissions=tuple(found), source=source, untouched=options.null)


def _reference_patch(benchmark: Benchmark, task: Task) -> str:
    try:
        return benchmark.answer(task.instance_id).patch
    except TreeError:
        # Said where it is scored, of this task alone.
        return ""
