"""Every attempt's patch scored, not the chosen one's alone (`report.py --attempts`): no headline counts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrial.errors import PatchError
from retrial.patches.parser import normalise
from retrial.reports.analysis.cases import Judged
from retrial.reports.scored_row import ScoredRow
from retrial.score.predictions_file import Submission
from retrial.score.save import save_attempt
from retrial.score.worker import ScoreWorker, ScoringSetup
from retrial.store.records import AttemptRecord, PredictionRecord, PredictionSummary
from retrial.store.runs import Run
from retrial.system.console import Progress, say


@dataclass(frozen=True, slots=True, kw_only=True)
class Other(Submission):
    """The patch of an attempt that was not chosen."""

    number: int
    patch_id: str


def score_attempts(
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
    wanted = {row.task.instance_id: _others(records[row.task.instance_id]) for row in scored if _measured(row)}
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


def _measured(row: ScoredRow) -> bool:
    return row.verdict.outcome.measured


def _others(record: PredictionSummary) -> dict[str, int]:
    """Each patch that is neither empty nor the chosen one: → the first attempt that has it."""
    found: dict[str, int] = {}
    for attempt in record.all_results:
        found.setdefault(attempt.patch_id, attempt.number)
    left_out = {"", *(each.patch_id for each in record.all_results if each.number == record.number)}
    return {patch: number for patch, number in found.items() if patch not in left_out}


def _jobs(run: Run, wanted: Mapping[str, Mapping[str, int]]) -> Iterator[Other]:
    """Read task by task, when their turn comes: all patches at once may be more than memory holds."""
    for instance_id, others in wanted.items():
        if not others:
            continue
        record = run.whole_prediction(instance_id)
        for attempt in record.all_results:
            if attempt.number in others.values():
                yield _other(record, attempt)


def _other(record: PredictionRecord, attempt: AttemptRecord) -> Other:
    return Other(
        instance_id=record.instance_id,
        model_name_or_path=record.model_name_or_path,
        patch=_clean(attempt.model_patch),
        number=attempt.number,
        patch_id=attempt.patch_id,
    )


def _clean(patch: str) -> str:
    try:
        return normalise(patch)
    except PatchError:
        # Refused where it is scored.
        return patch
