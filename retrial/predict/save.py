"""What is written down of a finished task, by the driver alone; in memory stays only what is counted in the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrial.attempts import Attempt, Prediction
from retrial.errors import NotMeasured
from retrial.store import history, transcript
from retrial.store.history import PredictionSummary
from retrial.store.predictions import prediction_record
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.types import Task

SHOWN = 4
Served = dict[str, list[str]]
"""Model → who answered for it, in the order of their coming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """What has come of phase 1 so far."""

    done: dict[str, PredictionSummary]
    answered: Served
    unmeasured: dict[str, str]
    """Id → reason."""


def save_prediction(run: Run, task: Task, result: Prediction | Exception, so_far: RunProgress) -> None:
    """Safe to call from many threads."""
    why, journal = not_measured(result), run.journal(task.instance_id)
    chat = transcript.markdown(task.instance_id, state(result), journal.lines())
    if isinstance(result, Prediction) and not why:
        record = prediction_record(result)
        run.write_prediction(task.instance_id, record, chat)
        so_far.done[task.instance_id] = history.prediction_summary(record)
    else:
        run.write_chat(task.instance_id, chat)
        journal.append("not_measured", reason=why)
        so_far.unmeasured[task.instance_id] = why
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


def add_served(served: Served, attempts: Iterable[Attempt]) -> None:
    for attempt in attempts:
        _add(served, attempt.model, attempt.served)


def served_so_far(stored: Served, records: Iterable[Mapping[str, Any]]) -> Served:
    """With those of finished tasks: a process that was killed has not said them."""
    served = {model: list(names) for model, names in stored.items()}
    for record in records:
        for attempt in record["all_results"]:
            _add(served, attempt["model"], attempt.get("served", ()))
    return served


def _add(served: Served, model: str, answered: Sequence[str]) -> None:
    names = served.setdefault(model, []) if answered else []
    names += [name for name in answered if name not in names]


def served_model_changes(served: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One sentence for each model that more than one answered for."""
    for model, names in served.items():
        if len(names) > 1:
            more = len(names) - SHOWN
            shown = [*names[:SHOWN], *([f"{more} more"] if more > 0 else [])]
            yield f"note: {model} was served as {', '.join(shown[:-1])} and {shown[-1]}"
