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
from retrial.reports.scored_row import ScoredRow
from retrial.score import merge, official_report
from retrial.score.all_attempts import score_attempts
from retrial.score.inputs import ScoringInput
from retrial.score.predictions_file import Submission
from retrial.score.save import save_verdict
from retrial.score.scorer import Scorer
from retrial.score.scoring_setup import ScoringSetup, set_up
from retrial.score.worker import ScoreWorker, remote_scorer
from retrial.store import history
from retrial.store.predictions import without_tests
from retrial.system import paths, run_log
from retrial.system.console import Progress, command_line, say
from retrial.system.run_locks import SCORING
from retrial.types import Task


def score_run(options: ReportOptions, scoring: ScoringInput) -> tuple[Report, dict[str, object]]:
    """The results of one run, written."""
    by_id = {task.instance_id: task for task in scoring.benchmark.tasks()}
    tasks = [by_id[submission.instance_id] for submission in scoring.submissions]
    setup = set_up(options, scoring.run, tasks, scoring.skipped)
    with scoring.run.lock(SCORING):
        return _score_on(options, scoring, setup, by_id)


def _score_on(
    options: ReportOptions, scoring: ScoringInput, setup: ScoringSetup, by_id: Mapping[str, Task]
) -> tuple[Report, dict[str, object]]:
    left_out = {**scoring.skipped, **setup.skipped}
    jobs = [each for each in scoring.submissions if each.instance_id not in left_out]
    with run_log.RunLog(scoring.run.logs, scoring.run.name, command_line()):
        if not scoring.keep_first_results:
            _keep_config(scoring)
            _write_bundle(scoring, by_id)
        work = _work(options, scoring, setup, by_id, jobs)
        scored = _score_all(scoring, setup, work, jobs)
        limits = {"test_timeout_seconds": options.test_timeout_seconds, "network": options.network}
        report = _report(scoring, scored, left_out, {**setup.record(), "limits": limits, "grading": GRADING})
        content = results(report)
        if scoring.keep_first_results:
            return report, content
        scoring.run.write_results(content)
        scoring.run.write_official_report(_official_report(scoring, scored))
        if options.attempts:
            # After what counts: whoever is interrupted here has that.
            report = replace(report, judged=score_attempts(scoring.run, scoring.records, scored, setup, work))
            content = results(report)
            scoring.run.write_results(content)
    return report, content


def _keep_config(scoring: ScoringInput) -> None:
    """A run of phase 1 keeps its own; any other is what it is scored as now, and a change is said."""
    if scoring.merged:
        merge.write(scoring.merged)
        return
    stored = scoring.run.config() if scoring.run.exists() else {}
    before, now = stored.get("identity", {}).get("benchmark"), scoring.benchmark.provenance["source"]
    if before not in (None, now):
        say(f"note: run '{scoring.run.name}' was about {before}; it is scored as {now} now")
    if not history.holds_predictions(stored):
        _write_config(scoring)


def _write_config(scoring: ScoringInput) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    provenance = scoring.benchmark.provenance
    scoring.run.write_config(
        {
            "program": "report.py",
            "run": scoring.run.name,
            "started": now,
            "identity": {"benchmark": provenance["source"], "benchmark_digest": provenance["digest"]},
            "provenance": dict(provenance),
            "source": dict(scoring.source),
            "untouched": scoring.untouched,
            "versions": {"retrial": __version__},
        }
    )


def _write_bundle(scoring: ScoringInput, by_id: Mapping[str, Task]) -> None:
    """What leaderboards take. A file from elsewhere is kept as it is."""
    rows = []
    for each in sorted(scoring.submissions, key=lambda each: each.instance_id):
        patch = without_tests(each.patch, by_id[each.instance_id].editable) if scoring.records else each.patch
        rows.append(
            {
                "instance_id": each.instance_id,
                "model_name_or_path": each.model_name_or_path,
                "model_patch": patch,
            }
        )
    scoring.run.write_bundle(rows)


def _work(
    options: ReportOptions,
    scoring: ScoringInput,
    setup: ScoringSetup,
    by_id: Mapping[str, Task],
    jobs: Sequence[Submission],
) -> ScoreWorker:
    scorer = Scorer(
        benchmark=scoring.benchmark,
        sandbox=setup.sandbox,
        verdicts=setup.executor.share(verdict_cache.Verdicts(paths.cache())),
        timeout=options.test_timeout_seconds,
        fresh=options.fresh,
        untouched=scoring.untouched,
    )
    ready = setup.ready(by_id[each.instance_id] for each in jobs)
    used = setup.executor.share(setup.sandbox)
    return ScoreWorker(scorer=scorer, tasks=by_id, maker=remote_scorer(scorer, options, ready, used))


def _score_all(
    scoring: ScoringInput, setup: ScoringSetup, work: ScoreWorker, jobs: Sequence[Submission]
) -> tuple[ScoredRow, ...]:
    rows: list[ScoredRow] = []
    resolved = 0
    with Progress("report", len(jobs)) as progress:
        for submission, result in setup.executor.run(work, jobs):
            task = work.tasks[submission.instance_id]
            rows.append(row := save_verdict(scoring.run, task, submission, result))
            resolved += row.verdict.resolved
            outcome = row.verdict.outcome
            tally = f"{resolved} resolved{setup.slowed}"
            progress.step(f"{task.instance_id}: {outcome}", tally, measured=outcome.measured)
    return tuple(sorted(rows, key=lambda row: row.task.instance_id))


def _official_report(scoring: ScoringInput, scored: Sequence[ScoredRow]) -> dict[str, object] | None:
    everything = {task.instance_id for task in scoring.benchmark.tasks()}
    return official_report.run_report(everything, {each.instance_id for each in scoring.submissions}, scored)


def _report(
    scoring: ScoringInput, scored: tuple[ScoredRow, ...], skipped: Mapping[str, str], where: Mapping[str, object]
) -> Report:
    stored = scoring.run.config()
    return Report(
        run=scoring.run.name,
        benchmark=scoring.benchmark.name,
        benchmark_size=len(scoring.benchmark.tasks()),
        visible_is_hidden=scoring.benchmark.visible_is_hidden,
        scored=scored,
        not_predicted=scoring.not_predicted,
        agent_failed=scoring.agent_failed,
        skipped=skipped,
        records=scoring.records,
        spent=scoring.run.spent(),
        unsettled=scoring.run.unsettled(),
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
            **scoring.source,
            "benchmark": dict(scoring.benchmark.provenance),
            **where,
            "retrial": __version__,
        },
    )


def _reasoning_effort(identity: Mapping[str, Any]) -> str:
    """Of the run, or of its models where they differ."""
    own = [each.get("reasoning_effort") for each in identity.get("model_options", ())]
    return ", ".join(dict.fromkeys(str(each) for each in own if each)) or str(identity.get("reasoning_effort") or "")
