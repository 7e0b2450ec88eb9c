"""Tasks as one model, one edit format or one rung of a ladder met them: what all comparisons are counted from.

Also the time that tests and models took.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from retrial.reports.analysis.stats import total
from retrial.reports.scored_row import ScoredRow
from retrial.store.history import PredictionSummary

Attempt = Mapping[str, Any]
"""An entry of a prediction's `all_results`."""

TAKEN = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
SLOWEST = 5
TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One task, with the attempts that are looked at."""

    instance_id: str
    attempts: tuple[Attempt, ...]
    """At least one, in order."""
    chosen: int
    """Number of the attempt whose patch was chosen, whether or not it is among these."""
    resolved: bool
    """Whether that patch was measured and found right."""

    @property
    def first(self) -> Attempt:
        return self.attempts[0]

    @property
    def brought(self) -> bool:
        """The chosen patch is of one of these attempts."""
        return any(attempt["try"] == self.chosen for attempt in self.attempts)

    @property
    def solved(self) -> bool:
        return self.resolved and self.brought

    @property
    def turns(self) -> Sequence[bool]:
        """Whether the first attempt passed, turn by turn; it never did if the acceptance tests say otherwise."""
        refuted = self.first["try"] == self.chosen and not self.resolved
        outcomes: Sequence[bool] = self.first["tests_outcomes"]
        return [False] * len(outcomes) if refuted else outcomes


def from_records(records: Iterable[Mapping[str, Any]], resolved: Collection[str]) -> list[Case]:
    """One for each prediction's record, with all of its attempts; `resolved` are ids."""
    return [
        Case(
            instance_id=record["instance_id"],
            attempts=tuple(record["all_results"]),
            chosen=record["try"],
            resolved=record["instance_id"] in resolved,
        )
        for record in records
    ]


def split(found: Iterable[Case], name: Callable[[Attempt], str]) -> dict[str, list[Case]]:
    """By what an attempt is called, in the order in which the names are met."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        for label in dict.fromkeys(map(name, case.attempts)):
            own = tuple(attempt for attempt in case.attempts if name(attempt) == label)
            groups.setdefault(label, []).append(replace(case, attempts=own))
    return groups


def answered(found: Iterable[Case]) -> list[Case]:
    """Without attempts that could not be measured: nobody's failure, so not to be counted as one."""
    left = ((case, tuple(attempt for attempt in case.attempts if not attempt["error"])) for case in found)
    return [replace(case, attempts=attempts) for case, attempts in left if attempts]


def by_field(found: Iterable[Case], field: str) -> dict[str, list[Case]]:
    """By `model`, or by `edit_format`."""
    return dict(sorted(split(found, lambda attempt: str(attempt[field] or "none")).items()))


def took(found: Iterable[Case]) -> dict[str, Any]:
    """Return what all these attempts took: every one is paid for, whatever its outcome."""
    attempts = [attempt for case in found for attempt in case.attempts]
    cost = total(attempt["cost"] for attempt in attempts)
    return {
        "attempts": len(attempts),
        **{name: sum(attempt.get(name, 0) for attempt in attempts) for name in TAKEN},
        "cost": None if cost is None else round(cost, 6),
        "model_seconds": round(sum(attempt["model_seconds"] for attempt in attempts), 2),
    }


def sum_run_times(scored: Sequence[ScoredRow], records: Iterable[PredictionSummary]) -> dict[str, object]:
    """Return what tests and models took in a run, for results.json.

    Tests that were not run took no time, and are left out of the median.
    """
    rows = sorted((row for row in scored if row.verdict.seconds), key=lambda row: -row.verdict.seconds)
    seconds = [row.verdict.seconds for row in rows]
    asked = [attempt["model_seconds"] for record in records for attempt in record["all_results"]]
    return {
        "test_seconds": round(sum(seconds), 3),
        "median_test_seconds": round(median(seconds), 3) if seconds else None,
        "model_seconds": round(sum(asked), 3) if asked else None,
        "slowest": [
            {"instance_id": row.task.instance_id, "seconds": round(row.verdict.seconds, 3)} for row in rows[:SLOWEST]
        ],
    }


def sum_task_times(record: PredictionSummary) -> dict[str, object]:
    """Return what all attempts at a task took, and the outcomes of the first one's turns.

    Null for predictions made elsewhere.
    """
    attempts = record.get("all_results", ())
    return {
        **{name: sum(each[name] for each in attempts) if attempts else None for name in TOKENS},
        "model_seconds": round(sum(each["model_seconds"] for each in attempts), 3) if attempts else None,
        "turns_passed": list(attempts[0]["tests_outcomes"]) if attempts else None,
    }
