"""One run from its predictions to results.json: bundle, score each in a fresh sandbox, count, write."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from retrial import GRADING, __version__
from retrial.grading import verdict_cache
from retrial.options import ReportOptions
from retrial.reports.results import Report, results
from retrial.reports.rows import ScoredRow
from retrial.score import merge, official_report
from retrial.score.attempts import score_attempts
from retrial.score.inputs import ScoringInput
from retrial.score.predictions_file import Submission
from retrial.score.save import keep_verdict
from retrial.score.scorer import Scorer
from retrial.score.testbed import ScoringSetup, set_up
from retrial.score.worker import ScoreWorker, remote_scorer
from retrial.store import history
from retrial.store.predictions import without_tests
from retrial.system import paths, run_log
from retrial.system.console import Progress, command_line, say
from retrial.system.locks import SCORING
from retrial.types import Task


def score_run(options: ReportOptions, trial: ScoringInput) -> tuple[Report, dict[str, object]]:
    """The results of one run, written."""
    by_id = {task.instance_id: task for task in trial.benchmark.tasks()}
    tasks = [by_id[submission.instance_id] for submission in trial.submissions]
    bed = set_up(options, trial.run, tasks, trial.skipped)
    with trial.run.lock(SCORING):
        return _score_on(options, trial, bed, by_id)


def _score_on(
    options: ReportOptions, trial: ScoringInput, bed: ScoringSetup, by_id: Mapping[str, Task]
) -> tuple[Report, dict[str, object]]:
    left_out = {**trial.skipped, **bed.skipped}
    jobs = [each for each in trial.submissions if each.instance_id not in left_out]
    with run_log.Kept(trial.run.logs, trial.run.name, command_line()):
        _keep_config(trial)
        _write_bundle(trial, by_id)
        work = _work(options, trial, bed, by_id, jobs)
        scored = _score_all(trial, bed, work, jobs)
        limits = {"test_timeout_seconds": options.test_timeout_seconds, "network": options.network}
        report = _report(trial, scored, left_out, {**bed.record(), "limits": limits, "grading": GRADING})
        content = results(report)
        trial.run.write_results(content)
        trial.run.write_official_report(_official_report(trial, scored))
        if options.attempts:
            # After what counts: whoever is interrupted here has that.
            report = replace(report, judged=score_attempts(trial.run, trial.records, scored, bed, work))
            content = results(report)
            trial.run.write_results(content)
    return report, content


def _keep_config(trial: ScoringInput) -> None:
    """A run of phase 1 keeps its own; any other is what it is scored as now, and a change is said."""
    if trial.merged:
        merge.write(trial.merged)
        return
    stored = trial.run.config() if trial.run.exists() else {}
    before, now = stored.get("identity", {}).get("benchmark"), trial.benchmark.provenance["source"]
    if before not in (None, now):
        say(f"note: run '{trial.run.name}' was about {before}; it is scored as {now} now")
    if not history.holds_predictions(stored):
        _write_config(trial)


def _write_config(trial: ScoringInput) -> None:
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


def _write_bundle(trial: ScoringInput, by_id: Mapping[str, Task]) -> None:
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


def _work(
    options: ReportOptions,
    trial: ScoringInput,
    bed: ScoringSetup,
    by_id: Mapping[str, Task],
    jobs: Sequence[Submission],
) -> ScoreWorker:
    scorer = Scorer(
        benchmark=trial.benchmark,
        sandbox=bed.sandbox,
        verdicts=bed.executor.share(verdict_cache.Verdicts(paths.cache())),
        timeout=options.test_timeout_seconds,
        fresh=options.fresh,
        untouched=trial.untouched,
    )
    ready = bed.ready(by_id[each.instance_id] for each in jobs)
    used = bed.executor.share(bed.sandbox)
    return ScoreWorker(scorer=scorer, tasks=by_id, maker=remote_scorer(scorer, options, ready, used))


def _score_all(
    trial: ScoringInput, bed: ScoringSetup, work: ScoreWorker, jobs: Sequence[Submission]
) -> tuple[ScoredRow, ...]:
    rows: list[ScoredRow] = []
    resolved = 0
    with Progress("report", len(jobs)) as progress:
        for submission, result in bed.executor.run(work, jobs):
            task = work.tasks[submission.instance_id]
            rows.append(row := keep_verdict(trial.run, task, submission, result))
            resolved += row.verdict.resolved
            outcome = row.verdict.outcome
            tally = f"{resolved} resolved{bed.slowed}"
            progress.step(f"{task.instance_id}: {outcome}", tally, measured=outcome.measured)
    return tuple(sorted(rows, key=lambda row: row.task.instance_id))


def _official_report(trial: ScoringInput, scored: Sequence[ScoredRow]) -> dict[str, object] | None:
    everything = {task.instance_id for task in trial.benchmark.tasks()}
    return official_report.run_report(everything, {each.instance_id for each in trial.submissions}, scored)


def _report(
    trial: ScoringInput, scored: tuple[ScoredRow, ...], skipped: Mapping[str, str], where: Mapping[str, object]
) -> Report:
    stored = trial.run.config()
    return Report(
        run=trial.run.name,
        benchmark=trial.benchmark.name,
        benchmark_size=len(trial.benchmark.tasks()),
        visible_is_hidden=trial.benchmark.visible_is_hidden,
        scored=scored,
        not_predicted=trial.not_predicted,
        agent_failed=trial.agent_failed,
        skipped=skipped,
        records=trial.records,
        spent=trial.run.spent(),
        unsettled=trial.run.unsettled(),
        started=str(stored.get("started", "")),
        command=str(stored.get("command", "")),
        visible_tests=stored["identity"].get("visible_tests"),
        agent_isolated=stored.get("agent", {}).get("isolated"),
        shards=stored.get("shards", {}),
        prior=tuple(stored.get("prior", ())),
        unpriced=tuple(stored.get("unpriced", ())),
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
