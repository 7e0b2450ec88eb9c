"""What a ladder was worth: what each rung added and cost, what others would have done, and how well it was chosen.

The choice among attempts: whether plausible meant resolved, and what other picks would have brought.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrial.reports.analysis import counterfactuals
from retrial.reports.analysis.cases import AttemptOutcome, How, LadderPosition, TaskAttempts
from retrial.reports.analysis.counterfactuals import Bounds, WhatIf
from retrial.reports.analysis.stats import Rate, for_each, percent, rate, rounded, total
from retrial.store.json_io import FLAT

SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RungTotals:
    """What was done on one rung: a task comes to it once."""

    tasks: int
    attempts: int
    plausible: int
    unverified: int
    not_measured: int
    chosen: int
    resolved: int
    cost: float | None
    cost_per_resolved: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RungValue:
    rung: str
    round: int
    run: str | None
    own: RungTotals = field(metadata=FLAT)
    cumulative_resolved: int
    cumulative_percent: float
    cumulative_cost: float | None
    cumulative_cost_per_resolved: float | None
    stopping_here: Bounds
    marginal_cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderValue:
    """`economics` of results.json, over measured tasks."""

    of: int
    actual: Bounds
    rungs: Sequence[RungValue]
    what_ifs: Sequence[WhatIf]
    looked_at: int


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
    picks: Mapping[str, Picked]
    """`ours`, `best`, `first`, `last`; `random` is what to expect of one drawn blindly."""
    ours_of_best: OursOfBest


def economics(tasks: Sequence[TaskAttempts], sources: Sequence[str] = ()) -> LadderValue | None:
    """None where nothing is known of attempts."""
    if not tasks:
        return None
    was, rungs = counterfactuals.actual(tasks), ladder(tasks, sources)
    found = counterfactuals.find(counterfactuals.recorded(tasks), rungs, was)
    return LadderValue(
        of=was.of,
        actual=was,
        rungs=_rows(tasks, rungs, sources),
        what_ifs=counterfactuals.told(found, was),
        looked_at=len(found),
    )


def describe_economics(found: LadderValue | None) -> list[str]:
    """For people: the first of the what-ifs, where there was a ladder to speak of."""
    if not found or len(found.rungs) < 2:
        return []
    return [f"what if       {each.sentence}" for each in found.what_ifs[:SHOWN]]


def ladder(tasks: Sequence[TaskAttempts], sources: Sequence[str] = ()) -> dict[LadderPosition, str]:
    """Every rung that any task came to, in order, each model with a name of its own."""
    met = {attempt.at: attempt.title for task in tasks for attempt in reversed(task.attempts)}
    places = {(at.source, at.place): met[at] for at in sorted(met, reverse=True)}
    names = _distinct(dict(sorted(places.items())), sources)
    return {at: names[at.source, at.place] for at in sorted(met)}


def _distinct(titles: Mapping[tuple[int, int], str], sources: Sequence[str]) -> dict[tuple[int, int], str]:
    """Two that have the same title are told apart by their run, or else by their place."""
    often = Counter(titles.values())
    if len(often) == len(titles):
        return dict(titles)
    in_runs = Counter((source, title) for (source, _), title in titles.items())
    found = {}
    for (source, place), title in titles.items():
        run = f" of {sources[source]}" if source < len(sources) and len({each for each, _ in titles}) > 1 else ""
        number = f" ({place + 1})" if in_runs[source, title] > 1 else ""
        found[source, place] = f"{title}{number}{run}" if often[title] > 1 else title
    return found


def _rows(
    tasks: Sequence[TaskAttempts], rungs: Mapping[LadderPosition, str], sources: Sequence[str]
) -> list[RungValue]:
    made = dict[LadderPosition, list[tuple[TaskAttempts, AttemptOutcome]]]()
    for task in tasks:
        for attempt in task.attempts:
            made.setdefault(attempt.at, []).append((task, attempt))
    rows, resolved, costs, recorded = list[RungValue](), 0, list[float | None](), counterfactuals.recorded(tasks)
    before = counterfactuals.make_bounds(len(tasks), 0, 0, attempts=0, cost=0.0)
    for length, (at, title) in enumerate(rungs.items(), start=1):
        own = _own(made[at])
        resolved += own.resolved
        costs.append(own.cost)
        stopped = counterfactuals.bounds(recorded, tuple(rungs)[:length], cut=True)
        rows.append(
            RungValue(
                rung=title,
                round=at.round,
                run=sources[at.source] if at.source < len(sources) else None,
                own=own,
                cumulative_resolved=resolved,
                cumulative_percent=percent(resolved, len(tasks)) or 0.0,
                cumulative_cost=rounded(total(costs)),
                cumulative_cost_per_resolved=for_each(total(costs), resolved),
                stopping_here=stopped,
                marginal_cost=_marginal(before, stopped),
            )
        )
        before = stopped
    return rows


def _own(made: Sequence[tuple[TaskAttempts, AttemptOutcome]]) -> RungTotals:
    attempts = [attempt for _, attempt in made]
    chosen = [task for task, attempt in made if attempt.number == task.chosen]
    resolved, cost = sum(task.resolved for task in chosen), total(attempt.cost for attempt in attempts)
    return RungTotals(
        tasks=len({task.instance_id for task, _ in made}),
        attempts=len(attempts),
        plausible=sum(attempt.plausible for attempt in attempts),
        unverified=sum(attempt.unverified for attempt in attempts),
        not_measured=sum(bool(attempt.error) for attempt in attempts),
        chosen=len(chosen),
        resolved=resolved,
        cost=rounded(cost),
        cost_per_resolved=for_each(cost, resolved),
    )


def _marginal(before: Bounds, after: Bounds) -> float | None:
    """USD for each task more that is solved by going on to this rung; None where none is, or nobody knows."""
    sure = all(each.exact and each.complete for each in (before, after))
    if not sure or before.cost is None or after.cost is None:
        return None
    return for_each(after.cost - before.cost, after.resolved_low - before.resolved_low)


def picker(tasks: Sequence[TaskAttempts]) -> PickQuality | None:
    """None where nothing is known of attempts.

    Attempts that came to nothing through nobody's failure are none that could be picked.
    """
    if not tasks:
        return None
    attempts = [attempt for task in tasks for attempt in task.answered]
    unknown = sum(attempt.resolved is None for attempt in attempts)
    verdicts = [[attempt.resolved for attempt in task.answered] for task in tasks if task.answered]
    ours, of = sum(task.resolved for task in tasks), len(tasks)
    best = _picked([_best(own) for own in verdicts], of)
    return PickQuality(
        tasks=of,
        with_a_choice=sum(len(own) > 1 for own in verdicts),
        attempts=len(attempts),
        known=len(attempts) - unknown,
        unknown=unknown,
        scored=sum(attempt.how is How.SCORED for attempt in attempts),
        exact=not unknown,
        precision=_precision(attempts),
        missed=_false_negatives(attempts),
        picks={
            "ours": _of(ours, ours, of),
            "best": best,
            "first": _picked([own[0] for own in verdicts], of),
            "last": _picked([own[-1] for own in verdicts], of),
            "random": _random(verdicts, of),
        },
        ours_of_best=OursOfBest(percent_low=percent(ours, best.high), percent_high=percent(ours, best.low)),
    )


def describe_picker(found: PickQuality | None) -> list[str]:
    """For people."""
    if not found or not found.with_a_choice:
        return []
    right, best = found.precision.rate, found.picks["best"]
    shown = f"{best.low}" if best.low == best.high else f"{best.low} to {best.high} (--attempts tells)"
    meant = f"plausible meant resolved in {right.resolved} of {right.of} ({right.percent:.1f} %)"
    if not right.of:
        meant = "nothing was plausible"
    return [f"picker        {meant}; best possible pick {shown}, ours {found.picks['ours'].low}"]


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


def _best(verdicts: Sequence[bool | None]) -> bool | None:
    """Who knew all verdicts."""
    return True if True in verdicts else None if None in verdicts else False


def _picked(verdicts: Sequence[bool | None], of: int) -> Picked:
    low = verdicts.count(True)
    return _of(low, low + verdicts.count(None), of)


def _random(verdicts: Sequence[Sequence[bool | None]], of: int) -> Picked:
    low = sum((own.count(True) / len(own) for own in verdicts), 0.0)
    high = sum(((len(own) - own.count(False)) / len(own) for own in verdicts), 0.0)
    return _of(round(low, 4), round(high, 4), of)


def _of(low: float, high: float, of: int) -> Picked:
    return Picked(low=low, high=high, percent_low=percent(low, of) or 0.0, percent_high=percent(high, of) or 0.0)
