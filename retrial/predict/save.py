"""What is written down of a finished task, by the driver alone; in memory stays only what is counted in the end."""

from __future__ import annotations

from dataclasses import dataclass

from retrial.attempts import Prediction
from retrial.errors import NotMeasured
from retrial.predict import served_models
from retrial.reports.analysis.attempt_outcomes import Judged
from retrial.score import official_report
from retrial.score.predictions_file import Submission
from retrial.score.rows import Row, brief
from retrial.score.scorer import Scored, eval_log, unmeasured
from retrial.store import history, transcript
from retrial.store.history import Brief
from retrial.store.predictions import prediction_record
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.types import Task

LONGEST = 100
"""Letters of a model's name in the name of an attempt's log: its number must not be cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What has come of phase 1 so far."""

    done: dict[str, Brief]
    answered: served_models.Served
    unmeasured: dict[str, str]
    """Id → reason."""


def keep_prediction(run: Run, task: Task, result: Prediction | Exception, came: Came) -> None:
    """Safe to call from many threads."""
    why, journal = not_measured(result), run.journal(task.instance_id)
    chat = transcript.markdown(task.instance_id, state(result), journal.lines())
    if isinstance(result, Prediction) and not why:
        record = prediction_record(result)
        run.write_prediction(task.instance_id, record, chat)
        came.done[task.instance_id] = history.brief(record)
    else:
        run.write_chat(task.instance_id, chat)
        journal.append("not_measured", reason=why)
        came.unmeasured[task.instance_id] = why
    if isinstance(result, Exception):
        run_log.broken("not measured", result, task=task.instance_id)


def state(result: Prediction | Exception) -> str:
    """For people."""
    why = not_measured(result)
    if why or isinstance(result, Exception):
        return f"not measured: {why}"
    chosen = result.chosen
    found = "plausible" if chosen.plausible else "unverified" if chosen.unverified else "least bad"
    return f"{found}, attempt {chosen.number} of {len(result.attempts)} ({chosen.model})"


def not_measured(result: Prediction | Exception) -> str:
    """Why it may not be counted."""
    if isinstance(result, Prediction):
        return result.not_measured
    return str(result) if isinstance(result, NotMeasured) else f"{type(result).__name__}: {result}"


def keep_verdict(run: Run, task: Task, submission: Submission, result: Scored | Exception) -> Row:
    if isinstance(result, Exception):
        run_log.broken("not measured", result, task=task.instance_id)
        result = unmeasured(task, submission, result)
    run.write_log(task.instance_id, submission.model_name_or_path, eval_log(result))
    run.write_official(task.instance_id, official_report.files(result))
    return brief(result)


def keep_attempt(run: Run, task: Task, submission: Submission, number: int, result: Scored | Exception) -> Judged:
    """Of a patch that was not chosen: its log, beside the chosen one's, and what scoring said of it."""
    if isinstance(result, Exception):
        run_log.broken("not measured", result, task=task.instance_id, attempt=number)
        result = unmeasured(task, submission, result)
    run.write_log(task.instance_id, f"{submission.model_name_or_path[:LONGEST]}.try-{number}", eval_log(result))
    verdict = result.verdict
    return Judged(outcome=verdict.outcome, reason="" if verdict.outcome.measured else verdict.reason, number=number)
