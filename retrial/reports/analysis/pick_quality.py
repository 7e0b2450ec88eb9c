"""How good the choice among attempts was: whether plausible meant resolved, and what other picks would have brought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from retrial.reports.analysis.cases import AttemptOutcome, How, TaskAttempts
from retrial.reports.analysis.stats import Rate, percent, rate
from retrial.store.json_io import FLAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Of plausible attempts with a verdict, how many are resolved."""

    rate: Rate = field(metadata=FLAT)
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Resolved attempts that were not plausible; more of the others may be resolved."""

    percent: float | None
    low: float | None
    high: float | None
    missed: int
    of: int
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """How many tasks a way of choosing would resolve, at least and at most."""

    low: float
    high: float
    percent_low: float
    percent_high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Picks:
    ours: Picked
    best: Picked
    first: Picked
    last: Picked
    random: Picked


@dataclass(frozen=True, slots=True, kw_only=True)
class OursOfBest:
    """Of the tasks that some attempt resolved, the share that we chose right."""

    percent_low: float | None
    percent_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PickQuality:
    """`picker` of results.json, over measured tasks."""

    tasks: int
    with_a_choice: int
    attempts: int
    known: int
    unknown: int
    scored: int
    exact: bool
    precision: Precision
    missed: Missed
    picks: Picks
    ours_of_best: OursOfBest


def build(tasks: Sequence[TaskAttempts]) -> PickQuality | None:
    """None where nothing is known of attempts.

    Attempts that came to nothing through nobody's failure are none that could be picked.
    """
    if not tasks:
        return None
    attempts = [attempt for task in tasks for attempt in task.answered]
    unknown = sum(attempt.resolved is None for attempt in attempts)
    resolved, best = sum(task.resolved for task in tasks), _best(tasks)
    return PickQuality(
        tasks=len(tasks),
        with_a_choice=sum(len(task.answered) > 1 for task in tasks),
        attempts=len(attempts),
        known=len(attempts) - unknown,
        unknown=unknown,
        scored=sum(attempt.how is How.SCORED for attempt in attempts),
        exact=not unknown,
        precision=_precision(attempts),
        missed=_false_negatives(attempts),
        picks=Picks(
            ours=_of(resolved, len(tasks)),
            best=best,
            first=_single([task.answered[0].resolved for task in tasks if task.answered], len(tasks)),
            last=_single([task.answered[-1].resolved for task in tasks if task.answered], len(tasks)),
            random=_random(tasks),
        ),
        ours_of_best=OursOfBest(percent_low=percent(resolved, best.high), percent_high=percent(resolved, best.low)),
    )


def said(found: PickQuality | None) -> list[str]:
    """For people."""
    if not found or not found.with_a_choice:
        return []
    right, best = found.precision.rate, found.picks.best
    shown = f"{best.low}" if best.low == best.high else f"{best.low} to {best.high} (--attempts tells)"
    meant = f"plausible meant resolved in {right.resolved} of {right.of} ({right.percent:.1f} %)"
    if not right.of:
        meant = "nothing was plausible"
    return [f"picker        {meant}; best possible pick {shown}, ours {found.picks.ours.low}"]


def _precision(attempts: Sequence[AttemptOutcome]) -> Precision:
    plausible = [attempt.resolved for attempt in attempts if attempt.plausible]
    known = [resolved for resolved in plausible if resolved is not None]
    return Precision(rate=rate(sum(known), len(known)), unknown=len(plausible) - len(known))


def _false_negatives(attempts: Sequence[AttemptOutcome]) -> Missed:
    right = [attempt for attempt in attempts if attempt.resolved]
    others = [attempt.resolved for attempt in attempts if not attempt.plausible]
    found = rate(sum(not attempt.plausible for attempt in right), len(right))
    return Missed(
        percent=found.percent,
        low=found.low,
        high=found.high,
        missed=found.resolved,
        of=found.of,
        unknown=others.count(None),
    )


def _best(tasks: Sequence[TaskAttempts]) -> Picked:
    """Who knew all verdicts."""
    found = [[attempt.resolved for attempt in task.answered] for task in tasks]
    low = sum(True in verdicts for verdicts in found)
    return _of(low, len(tasks), sum(True in verdicts or None in verdicts for verdicts in found))


def _single(picked: Sequence[bool | None], of: int) -> Picked:
    low = picked.count(True)
    return _of(low, of, low + picked.count(None))


def _random(tasks: Sequence[TaskAttempts]) -> Picked:
    """What to expect of one attempt of each task, drawn blindly."""
    low = high = 0.0
    for task in tasks:
        verdicts = [attempt.resolved for attempt in task.answered]
        if verdicts:
            low += verdicts.count(True) / len(verdicts)
            high += (len(verdicts) - verdicts.count(False)) / len(verdicts)
    return _of(round(low, 4), len(tasks), round(high, 4))


def _of(low: float, of: int, high: float | None = None) -> Picked:
    most = low if high is None else high
    return Picked(low=low, high=most, percent_low=percent(low, of) or 0.0, percent_high=percent(most, of) or 0.0)
