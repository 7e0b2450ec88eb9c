"""One run from its predictions to results.json: bundle, score each in a fresh sandbox, count, write.

On demand several times, to find verdicts and tests that flip (`report.py --repeat`), and with every attempt's patch,
not the chosen one's alone (`report.py --attempts`): no headline counts these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from retrial import GRADING, __version__
from retrial.errors import PatchError
from retrial.options import ReportOptions
from retrial.patches.parser import Change, parse
from retrial.reports.analysis.cases import Judged, ScoredRow, chosen_patch
from retrial.reports.analysis.repeats import flaky
from retrial.reports.records import Results
from retrial.reports.results import Report, results
from retrial.score import merge
from retrial.score.inputs import ScoringInput
from retrial.score.predictions_file import Submission, clean
from retrial.score.save import save_attempt, save_verdict, write_config
from retrial.score.worker import ScoreWorker, ScoringSetup, set_up
from retrial.store.manifest import Manifest
from retrial.store.records import PredictionSummary
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.system.console import Progress, command_line, say
from retrial.system.locks import SCORING
from retrial.types import Task

# What the original harness leaves out before a patch is submitted: acceptance tests are put there afterwards.
TEST_PATHS = ("/test/", "/tests/", "/testing/", "/test_", "/tox.ini")


@dataclass(frozen=True, slots=True, kw_only=True)
class Other(Submission):
    """The patch of an attempt that was not chosen."""

    number: int
    patch_id: str


def score_run(options: ReportOptions, scoring: ScoringInput) -> tuple[Report, Results]:
    """The results of one run, written. With `--repeat` it is scored so many times, each time anew: the first is the
    result; the others say what of it is chance."""
    times = options.repeat
    if times <= 1:
        return _score_once(options, scoring)
    anew = replace(options, fresh=True)
    say(f"Scoring 1 of {times} of {scoring.run.name}: this one counts")
    report, content = _score_once(anew, scoring)
    scorings = [report.scored]
    for number in range(2, times + 1):
        say(f"Scoring {number} of {times} of {scoring.run.name}: to see what differs")
        apart = scoring.run.with_logs_in(f"scoring-{number}")
        again = replace(scoring, run=apart, merged=None, keep_first_results=True)
        scorings.append(_score_once(replace(anew, attempts=False), again)[0].scored)
    content = replace(content, repeats=flaky(scorings))
    scoring.run.write_results(content)
    return report, content


def _score_once(options: ReportOptions, scoring: ScoringInput) -> tuple[Report, Results]:
    by_id = {task.instance_id: task for task in scoring.benchmark.tasks()}
    setup = set_up(options, scoring.run, [by_id[each.instance_id] for each in scoring.submissions], scoring.skipped)
    left_out = {**scoring.skipped, **setup.skipped}
    jobs = [each for each in scoring.submissions if each.instance_id not in left_out]
    with scoring.run.lock(SCORING), run_log.RunLog(scoring.run.logs, scoring.run.name, command_line()):
        if not scoring.keep_first_results:
            _keep_config(scoring)
            _write_bundle(scoring, by_id)
        tasks = [by_id[each.instance_id] for each in jobs]
        work = setup.worker(scoring.benchmark, tasks, untouched=scoring.untouched)
        scored = _score_all(scoring, setup, work, jobs)
        limits = {"test_timeout_seconds": options.test_timeout_seconds, "network": options.network}
        report = _report(scoring, scored, left_out, {**setup.record(), "limits": limits, "grading": GRADING})
        content = results(report)
        if scoring.keep_first_results:
            return report, content
        scoring.run.write_results(content)
        scoring.run.write_official_report(_official_report(scoring, set(by_id), scored))
        if options.attempts:
            # After what counts: whoever is interrupted here has that.
            report = replace(report, judged=_score_attempts(scoring.run, scoring.records, scored, setup, work))
            content = results(report)
            scoring.run.write_results(content)
    return report, content


def _official_report(scoring: ScoringInput, everything: Collection[str], scored: Sequence[ScoredRow]) -> object:
    """Return what the benchmark's own runner would report; None where it has none."""
    if all(row.standing is None for row in scored):
        return None
    from retrial.score import official_report

    return official_report.run_report(everything, {each.instance_id for each in scoring.submissions}, scored)


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
        write_config(scoring.run, scoring.benchmark, source=dict(scoring.source), untouched=scoring.untouched)


def _write_bundle(scoring: ScoringInput, by_id: Mapping[str, Task]) -> None:
    """What leaderboards take. A file from elsewhere is kept as it is."""
    rows = []
    for each in sorted(scoring.submissions, key=lambda each: each.instance_id):
        patch = _without_tests(each.patch, by_id[each.instance_id].editable) if scoring.records else each.patch
        row = {"instance_id": each.instance_id, "model_name_or_path": each.model_name_or_path, "model_patch": patch}
        rows.append(row)
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


def _report(
    scoring: ScoringInput, scored: tuple[ScoredRow, ...], skipped: Mapping[str, str], where: Mapping[str, object]
) -> Report:
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
        manifest=scoring.run.manifest(),
        provenance={
            **scoring.source,
            "benchmark": dict(scoring.benchmark.provenance),
            **where,
            "retrial": __version__,
        },
    )


def _score_attempts(
    run: Run,
    records: Mapping[str, PredictionSummary],
    scored: Sequence[ScoredRow],
    setup: ScoringSetup,
    work: ScoreWorker,
) -> dict[str, dict[str, Judged]]:
    """Task → patch → verdict, of all patches but the chosen; where that could not be measured, these are not tried."""
    if not records:
        say("note: --attempts has nothing to score: only runs of harness.py tell of attempts that were not chosen")
        return {}
    measured = [row.task.instance_id for row in scored if row.verdict.outcome.measured]
    wanted = {instance_id: _others(records[instance_id]) for instance_id in measured}
    found: dict[str, dict[str, Judged]] = {}
    number, resolved = sum(map(len, wanted.values())), 0
    if not number:
        return found
    with Progress("report attempts", number) as progress:
        for job, result in setup.executor.run(work, _jobs(run, wanted)):
            judged = save_attempt(run, work.tasks[job.instance_id], job, job.number, result)
            found.setdefault(job.instance_id, {})[job.patch_id] = judged
            resolved += judged.outcome == "resolved"
            line = f"{job.instance_id} try {job.number}: {judged.outcome}"
            progress.step(line, f"{resolved} resolved{setup.slowed}", measured=judged.outcome.measured)
    return found


def _others(record: PredictionSummary) -> set[int]:
    """Return the first attempt at each patch that is neither empty nor the chosen one."""
    first = {attempt.patch_id: attempt.number for attempt in reversed(record.all_results)}
    return {number for patch, number in first.items() if patch not in ("", chosen_patch(record))}


def _jobs(run: Run, wanted: Mapping[str, Collection[int]]) -> Iterator[Other]:
    """Read task by task, when their turn comes: all patches at once may be more than memory holds."""
    for instance_id, others in wanted.items():
        if not others:
            continue
        record = run.whole_prediction(instance_id)
        for attempt in record.all_results:
            if attempt.number in others:
                yield Other(
                    instance_id=instance_id,
                    model_name_or_path=record.model_name_or_path,
                    patch=clean(attempt.model_patch),
                    number=attempt.number,
                    patch_id=attempt.patch_id,
                )
