"""Runs whose agent never worked: every attempt ended with an error and an empty patch.

This is decided for a run as a whole. One attempt that ended without an error, or changed a file, shows that the agent
works here; from then on every attempt counts, so no program can leave the denominator by failing (decision 0010).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from retrial.store import history
from retrial.store.events import DISCARDED
from retrial.store.history import PredictionSummary
from retrial.store.runs import Run
from retrial.system.console import one_line, pluralise

REASON = "the agent never worked: every attempt of this run ended with an error and an empty patch"
"""Why its tasks are not measured."""


def is_repeated(run: Run, done: Mapping[str, PredictionSummary], open_tasks: Collection[str]) -> bool:
    """Return whether all tasks of a finished run are to be done again because its agent never worked.

    Until the run is finished its attempts stay: an agent that fails the first tasks may work on the next.
    `done` and `open_tasks` are the tasks that are selected now, with a prediction and without.
    """
    if open_tasks or not of_run(run, done):
        return False
    stored = run.config()
    return not set(stored["selected"]) - set(stored["skipped"]) - set(_predictions(run))


def of_run(run: Run, done: Mapping[str, PredictionSummary]) -> str:
    """`sentence` of all predictions that a run has; `done` are those of the tasks that are selected now."""
    # Mostly the tasks at hand show that the agent works, and no others need to be read.
    return sentence(done.values()) and sentence(_predictions(run).values())


def discard(run: Run) -> None:
    """Set aside all attempts of a run whose agent never worked, so that its tasks are done again.

    The journals keep them, with what they cost.
    """
    for instance_id in _predictions(run):
        run.journal(instance_id).append(DISCARDED, reason=REASON)
    run.keep_only(())


def sentence(records: Iterable[PredictionSummary]) -> str:
    """Say that the agent never worked in these attempts, with its most frequent error; empty if it did, or if there are
    no attempts."""
    attempts = [attempt for record in records for attempt in record["all_results"]]
    if not attempts or not all(map(_failed, attempts)):
        return ""
    error, times = Counter(str(attempt["agent_error"]) for attempt in attempts).most_common(1)[0]
    every = "its only attempt" if len(attempts) == 1 else f"all {pluralise(len(attempts), 'attempt')}"
    often = f" ({times} times)" if 1 < times < len(attempts) else ""
    return one_line(
        f"The agent never worked: {every} failed with an empty patch, so no rate is reported. Error: {error}{often}"
    )


def _predictions(run: Run) -> dict[str, PredictionSummary]:
    """All that are whole: what is damaged is set aside elsewhere."""
    found = ((instance_id, run.prediction(instance_id)) for instance_id in run.config()["selected"])
    return {instance_id: history.prediction_summary(record) for instance_id, record in found if record is not None}


def _failed(attempt: Mapping[str, Any]) -> bool:
    return bool(attempt.get("agent_error")) and not history.patch_id(attempt)
