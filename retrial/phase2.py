"""report.py: bundle the predictions, score each in a fresh sandbox, write results."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retrial import (
    __version__,
    cache,
    config,
    leaderboard,
    merge,
    orphans,
    past,
    paths,
    program,
    runlog,
    shards,
    table,
    trials,
)
from retrial.calibrate import calibrate
from retrial.claims import SCORING, claimed
from retrial.comparison import Compared, side_by_side
from retrial.config import ReportOptions
from retrial.doctor import examine
from retrial.errors import TreeError, UsageError
from retrial.keeping import keep_verdict
from retrial.progress import Progress, say
from retrial.protocols import Benchmark
from retrial.records import without_tests
from retrial.rows import Row
from retrial.score import Scorer
from retrial.scoring import Scoring, scorer_elsewhere
from retrial.selection import select_tasks
from retrial.store import Run, find_run, latest_run
from retrial.submissions import Submission
from retrial.summary import SCHEMA, Report, compared, results
from retrial.testbed import Testbed, set_up
from retrial.trials import Trial
from retrial.types import Task

ALONE = ("gold", "null", "calibrate", "doctor")
DESCRIPTION = "Score predictions in fresh sandboxes with the acceptance tests, and write results.json."


def main(argv: Sequence[str]) -> int:
    options, rest = config.parse(ReportOptions, argv, DESCRIPTION, positional="RUN|FILE")
    texts = shards.in_place_of_wholes(paths.home(), rest)
    several = len(texts) > 1 or texts != rest
    _refuse(options, rest, several)
    orphans.remove()
    if options.calibrate or options.doctor:
        return calibrate(options, argv) if options.calibrate else examine(options)
    grid = None if options.gold or options.null or several else trials.find_grid(rest)
    if grid is not None:
        return _compare(options, grid)
    trial = trials.from_runs(options, texts) if several else _trial(options, rest)
    report, content = _score(options, trial)
    print(table.render(report, content))
    print(f"\nResults: {trial.run.results_path}")
    incomplete = report.not_measured or report.shards.get("missing") or trial.problems
    return program.NOT_MEASURED if incomplete else program.DONE


def _compare(options: ReportOptions, grid: Run) -> int:
    """Score every run of a grid, and put them side by side; returns the worst exit code."""
    listed = grid.config()["runs"]
    found, missing = list[Compared](), list[str]()
    for place, each in enumerate(listed, start=1):
        run = Run(paths.home(), each["run"])
        if not run.exists():
            missing.append(run.name)
            continue
        say(f"Grid {grid.name}: run {place} of {len(listed)}, {run.name}")
        report, _ = _score(options, trials.from_run(options, run))
        found.append(compared(report, each["model"], each["edit_format"]))
    content = _grid_results(grid, found, missing)
    grid.write_results(content)
    print(table.comparison(content))
    print(f"\nResults: {grid.results_path}")
    return program.NOT_MEASURED if missing or any(each.not_measured for each in found) else program.DONE


def _grid_results(grid: Run, found: Sequence[Compared], missing: Sequence[str]) -> dict[str, object]:
    stored = grid.config()
    return {
        "schema": SCHEMA,
        "kind": "grid",
        "run": grid.name,
        "command": stored["command"],
        "identity": stored["identity"],
        **side_by_side(found, missing),
        "retrial": __version__,
    }


def _score(options: ReportOptions, trial: Trial) -> tuple[Report, dict[str, object]]:
    """The results of one run, written."""
    by_id = {task.instance_id: task for task in trial.benchmark.tasks()}
    tasks = [by_id[submission.instance_id] for submission in trial.submissions]
    bed = set_up(options, trial.run, tasks, trial.skipped)
    with claimed(trial.run, SCORING):
        return _score_on(options, trial, bed, by_id)


def _score_on(
    options: ReportOptions, trial: Trial, bed: Testbed, by_id: Mapping[str, Task]
) -> tuple[Report, dict[str, object]]:
    left_out = {**trial.skipped, **bed.skipped}
    jobs = [each for each in trial.submissions if each.instance_id not in left_out]
    with runlog.Kept(trial.run, program.command()):
        _keep_config(trial)
        _write_bundle(trial, by_id)
        scored = _score_all(options, trial, bed, by_id, jobs)
        report = _report(trial, scored, left_out, bed.record())
        content = results(report)
        trial.run.write_results(content)
        trial.run.write_official_report(_official_report(trial, scored))
    return report, content


def _refuse(options: ReportOptions, rest: Sequence[str], several: bool) -> None:
    """Raises: UsageError for what does not go together."""
    if options.run and not several:
        raise UsageError("--run names the one result of several runs: give two of them, or more.")
    alone = [name for name in ALONE if getattr(options, name)]
    if len(alone) > 1 or (alone and rest):
        raise UsageError(
            "--gold, --null, --calibrate and --doctor stand alone: they need no predictions, and exclude each other."
        )
    if alone in ([], ["doctor"]) and (options.task or options.filter_category):
        raise UsageError("--task and --filter-category go with --gold, --null and --calibrate; a run is scored whole.")


def _trial(options: ReportOptions, rest: Sequence[str]) -> Trial:
    """Raises: UsageError for anything that cannot be."""
    if options.gold or options.null:
        return _from_answers(options)
    home = paths.home()
    run = find_run(home, rest[0]) if rest else Run(home, latest_run(home))
    if run is not None and not rest:
        _tell_of_a_shard(run)
    return trials.from_run(options, run) if run is not None else trials.from_file(options, Path(rest[0]))


def _tell_of_a_shard(run: Run) -> None:
    """Who names nothing may think of all of it."""
    shard = shards.stored(run.config())
    if shard:
        whole = shards.whole_of(run.name)
        say(f"note: '{run.name}' is one of {shard.of} shards: 'report.py {whole}' makes one result of all here")


def _from_answers(options: ReportOptions) -> Trial:
    """The reference patches, or none at all, as predictions."""
    benchmark = trials.open_for(options, "demo-python")
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
    """A run of phase 1 keeps its own; any other is what it is scored as now, and a change is said."""
    if trial.merged:
        merge.write(trial.merged)
        return
    stored = trial.run.config() if trial.run.exists() else {}
    before, now = stored.get("identity", {}).get("benchmark"), trial.benchmark.provenance["source"]
    if before not in (None, now):
        say(f"note: run '{trial.run.name}' was about {before}; it is scored as {now} now")
    if not past.holds_predictions(stored):
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
    options: ReportOptions, trial: Trial, bed: Testbed, by_id: Mapping[str, Task], jobs: Sequence[Submission]
) -> tuple[Row, ...]:
    scorer = Scorer(
        benchmark=trial.benchmark,
        sandbox=bed.sandbox,
        verdicts=bed.executor.share(cache.Verdicts(options.cache)),
        timeout=options.test_timeout_seconds,
        fresh=options.fresh,
        untouched=trial.untouched,
    )
    ready = bed.ready(by_id[each.instance_id] for each in jobs)
    used = bed.executor.share(bed.sandbox)
    work = Scoring(scorer=scorer, tasks=by_id, maker=scorer_elsewhere(scorer, options, ready, used))
    rows: list[Row] = []
    resolved = 0
    with Progress("report", len(jobs)) as progress:
        for submission, result in bed.executor.run(work, jobs):
            task = by_id[submission.instance_id]
            rows.append(row := keep_verdict(trial.run, task, submission, result))
            resolved += row.verdict.resolved
            outcome = row.verdict.outcome
            tally = f"{resolved} resolved{bed.slowed}"
            progress.step(f"{task.instance_id}: {outcome}", tally, measured=outcome.measured)
    return tuple(sorted(rows, key=lambda row: row.task.instance_id))


def _official_report(trial: Trial, scored: Sequence[Row]) -> dict[str, object] | None:
    everything = {task.instance_id for task in trial.benchmark.tasks()}
    return leaderboard.run_report(everything, {each.instance_id for each in trial.submissions}, scored)


def _report(trial: Trial, scored: tuple[Row, ...], skipped: Mapping[str, str], where: Mapping[str, object]) -> Report:
    stored = trial.run.config()
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
        unsettled=trial.run.unsettled(),
        started=str(stored.get("started", "")),
        command=str(stored.get("command", "")),
        visible_tests=stored["identity"].get("visible_tests"),
        agent_isolated=stored.get("agent", {}).get("isolated"),
        shards=stored.get("shards", {}),
        rungs=tuple(stored["identity"].get("models", ())),
        reasoning_effort=_reasoning_effort(stored["identity"]),
        provenance={
            **trial.source,
            "benchmark": dict(trial.benchmark.provenance),
            **where,
            "retrial": __version__,
        },
    )


def _reasoning_effort(identity: Mapping[str, Any]) -> str:
    """Of the run, or of its models where they differ."""
    own = [each.get("reasoning_effort") for each in identity.get("model_options", ())]
    return ", ".join(dict.fromkeys(str(each) for each in own if each)) or str(identity.get("reasoning_effort") or "")
