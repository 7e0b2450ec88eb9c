"""Write down one verdict; the driver alone does, and memory keeps only what the report counts."""

from __future__ import annotations

from retrial.reports.analysis.attempt_outcomes import Judged
from retrial.reports.scored_row import ScoredRow
from retrial.score import official_report
from retrial.score.make_row import scored_row
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored, eval_log, unmeasured
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.types import Task

LONGEST = 100
"""Letters of a model's name in the name of an attempt's log: its number must not be cut off."""


def save_verdict(run: Run, task: Task, submission: Submission, result: Scored | Exception) -> ScoredRow:
    if isinstance(result, Exception):
        run_log.broken("not measured", result, task=task.instance_id)
        result = unmeasured(task, submission, result)
    run.write_log(task.instance_id, submission.model_name_or_path, eval_log(result))
    run.write_official(task.instance_id, official_report.files(result))
    return scored_row(result)


def save_attempt(run: Run, task: Task, submission: Submission, number: int, result: Scored | Exception) -> Judged:
    """Of a patch that was not chosen: its log, beside the chosen one's, and what scoring said of it."""
    if isinstance(result, Exception):
        run_log.broken("not measured", result, task=task.instance_id, attempt=number)
        result = unmeasured(task, submission, result)
    run.write_log(task.instance_id, f"{submission.model_name_or_path[:LONGEST]}.try-{number}", eval_log(result))
    verdict = result.verdict
    return Judged(outcome=verdict.outcome, reason="" if verdict.outcome.measured else verdict.reason, number=number)
