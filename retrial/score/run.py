"""One run from its predictions to results.json: bundle, score each in a fresh sandbox, count, write."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from retrial import GRADING, __version__
from retrial.errors import PatchError
from retrial.grading import verdict_cache
from retrial.options import ReportOptions
from retrial.patches.parser import Change, parse
from retrial.reports.records import Results
from retrial.reports.results import Report, results
from retrial.reports.scored_row import ScoredRow
from retrial.score import merge, official_report
from retrial.score.all_attempts import score_attempts
from retrial.score.inputs import ScoringInput
from retrial.score.official_report import RunReport
from retrial.score.predictions_file import Submission
from retrial.score.save import save_verdict
from retrial.score.scorer import Scorer
from retrial.score.worker import ScoreWorker, ScoringSetup, remote_scorer, set_up
from retrial.store.manifest import Manifest
from retrial.system import paths, run_log
from retrial.system.console import Progress, command_line, say
from retrial.system.locks import SCORING
from retrial.types import Task

# What the original harness leaves out before a patch is submitted: acceptance tests are put there afterwards.
TEST_PATHS = ("/test/", "/tests/", "/testing/", "/test_", "/tox.ini")


def score_run(options: ReportOptions, scoring: ScoringInput) -> tuple[Report, Results]:
    """The results of one run, written."""
    by_id = {task.instance_id: task for task in scoring.benchmark.tasks()}
    tasks = [by_id[submission.instance_id] for submission in scoring.submissions]
    setup = set_up(options, scoring.run, tasks, scoring.skipped)
    with scoring.run.lock(SCORING):
        return _score_on(options, scoring, setup, by_id)


def _score_on(
    options: ReportOptions, scoring: ScoringInput, setup: ScoringSetup, by_id: Mapping[str, Task]
) -> tuple[Report, Results]:
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
    manifest = scoring.run.manifest() if scoring.run.exists() else Manifest()
    before, now = manifest.setting("benchmark"), scoring.benchmark.provenance["source"]
    if before not in (None, now):
        say(f"note: run '{scoring.run.name}' was about {before}; it is scored as {now} now")
    if not manifest.holds_predictions:
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
        patch = _without_tests(each.patch, by_id[each.instance_id].editable) if scoring.records else each.patch
        rows.append(
            {
                "instance_id": each.instance_id,
                "model_name_or_path": each.model_name_or_path,
                "model_patch": patch,
            }
        )
    scoring.run.write_bundle(rows)


def _without_tests(patch: str, editable: Collection[str]) -> str:
    """As leaderboards score it: without test paths (but for files that the task is about), empty for none."""
    try:
        changes = parse(patch)
    except PatchError:
        # Refused as a whole; whoever scores it will see that for themselves.
        return patch
    return "".join(change.text for change in changes if not _is_test(change) or change.new in editable)


def _is_test(change: Change) -> bool:
    name = f"/{change.new or change.old or ''}"
    return any(part in name for part in TEST_PATHS)


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
    used = setup.executor.share(setup.sandbox.environments)
    return ScoreWorker(scorer=scorer, tasks=by_id, remote=partial(remote_scorer, scorer, options, ready, used))


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


def _official_report(scoring: ScoringInput, scored: Sequence[ScoredRow]) -> RunReport | None:
    """None where the benchmark has none."""
    if not any(row.standing for row in scored):
        return None
    everything = {task.instance_id for task in scoring.benchmark.tasks()}
    return official_report.run_report(everything, {each.instance_id for each in scoring.submissions}, scored)


def _report(
    scoring: ScoringInput, scored: tuple[ScoredRow, ...], skipped: Mapping[str, str], where: Mapping[str, object]
) -> Report:
    manifest = scoring.run.manifest()
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
        started=manifest.started,
        command=manifest.command,
        visible_tests=manifest.setting("visible_tests"),
        agent_isolated=manifest.agent.isolated,
        shards=manifest.shards,
        prior=manifest.prior,
        unpriced=manifest.unpriced,
        rungs=tuple(manifest.setting("models") or ()),
        reasoning_effort=_reasoning_effort(manifest),
        provenance={
            **scoring.source,
            "benchmark": dict(scoring.benchmark.provenance),
            **where,
            "retrial": __version__,
        },
    )


def _reasoning_effort(manifest: Manifest) -> str:
    """Of the run, or of its models where they differ."""
    own = [each.get("reasoning_effort") for each in manifest.setting("model_options") or ()]
    effort = str(manifest.setting("reasoning_effort") or "")
    return ", ".join(dict.fromkeys(str(each) for each in own if each)) or effort
