"""What each rung of a ladder added to what was solved, and what that cost; and what other ladders would have done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retrial.reports.analysis import counterfactuals
from retrial.reports.analysis.cases import AttemptOutcome, LadderPosition, TaskAttempts
from retrial.reports.analysis.counterfactuals import Bounds
from retrial.reports.analysis.stats import for_each, percent, rounded, total
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
class OtherLadder:
    label: str
    rungs: Sequence[str]
    bounds: Bounds = field(metadata=FLAT)
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderValue:
    """`economics` of results.json, over measured tasks."""

    of: int
    actual: Bounds
    rungs: Sequence[RungValue]
    what_ifs: Sequence[OtherLadder]
    looked_at: int


def build(tasks: Sequence[TaskAttempts], sources: Sequence[str] = ()) -> LadderValue | None:
    """None where nothing is known of attempts."""
    if not tasks:
        return None
    was, rungs = counterfactuals.actual(tasks), ladder(tasks, sources)
    found = counterfactuals.find(counterfactuals.recorded(tasks), rungs)
    return LadderValue(
        of=was.of,
        actual=was,
        rungs=_rows(tasks, rungs, sources),
        what_ifs=[
            OtherLadder(
                label=each.label,
                rungs=[rungs.get(at, "") for at in each.steps],
                bounds=each.bounds,
                sentence=each.sentence(was),
            )
            for each in counterfactuals.told(found, was)
        ],
        looked_at=len(found),
    )


def said(found: LadderValue | None) -> list[str]:
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
