"""What each rung of a ladder added to what was solved, and what that cost; and what other ladders would have done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from retrial.reports.analysis import counterfactuals
from retrial.reports.analysis.attempt_outcomes import AttemptOutcome, LadderPosition, TaskAttempts
from retrial.reports.analysis.counterfactuals import Bounds
from retrial.reports.analysis.stats import total

SHOWN = 3


def build(tasks: Sequence[TaskAttempts], sources: Sequence[str] = ()) -> dict[str, object]:
    """`economics` of results.json, over measured tasks; empty where nothing is known of attempts."""
    if not tasks:
        return {}
    was, rungs = counterfactuals.actual(tasks), ladder(tasks, sources)
    found = counterfactuals.find(counterfactuals.recorded(tasks), rungs)
    told = counterfactuals.told(found, was)
    return {
        "of": was.of,
        "actual": was.record(),
        "rungs": _rows(tasks, rungs, sources),
        "what_ifs": [
            {
                "label": each.label,
                "rungs": [rungs.get(at, "") for at in each.steps],
                **each.bounds.record(),
                "sentence": each.sentence(was),
            }
            for each in told
        ],
        "looked_at": len(found),
    }


def said(content: Mapping[str, Any]) -> list[str]:
    """For people: the first of the what-ifs, where there was a ladder to speak of."""
    if len(content.get("rungs", ())) < 2:
        return []
    return [f"what if       {each['sentence']}" for each in content["what_ifs"][:SHOWN]]


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
) -> list[dict[str, object]]:
    made = dict[LadderPosition, list[tuple[TaskAttempts, AttemptOutcome]]]()
    for task in tasks:
        for attempt in task.attempts:
            made.setdefault(attempt.at, []).append((task, attempt))
    rows, resolved, cost, recorded = list[dict[str, object]](), 0, list[float | None](), counterfactuals.recorded(tasks)
    before = Bounds(
        of=len(tasks), resolved_low=0, resolved_high=0, attempts=0, cost_low=0.0, cost_high=0.0, complete=True
    )
    for length, (at, title) in enumerate(rungs.items(), start=1):
        own = _own(made[at])
        resolved += own["resolved"]
        cost.append(own["cost"])
        stopped = counterfactuals.bounds(recorded, tuple(rungs)[:length], cut=True)
        rows.append(
            {
                "rung": title,
                "round": at.round,
                "run": sources[at.source] if at.source < len(sources) else None,
                **own,
                "cumulative_resolved": resolved,
                "cumulative_percent": stopped.percent(resolved),
                "cumulative_cost": _rounded(total(cost)),
                "cumulative_cost_per_resolved": _each(total(cost), resolved),
                "stopping_here": stopped.record(),
                "marginal_cost": _marginal(before, stopped),
            }
        )
        before = stopped
    return rows


def _own(made: Sequence[tuple[TaskAttempts, AttemptOutcome]]) -> dict[str, Any]:
    """What was done on one rung: a task comes to it once."""
    attempts = [attempt for _, attempt in made]
    chosen = [task for task, attempt in made if attempt.number == task.chosen]
    resolved, cost = sum(task.resolved for task in chosen), total(attempt.cost for attempt in attempts)
    return {
        "tasks": len({task.instance_id for task, _ in made}),
        "attempts": len(attempts),
        "plausible": sum(attempt.plausible for attempt in attempts),
        "unverified": sum(attempt.unverified for attempt in attempts),
        "not_measured": sum(bool(attempt.error) for attempt in attempts),
        "chosen": len(chosen),
        "resolved": resolved,
        "cost": _rounded(cost),
        "cost_per_resolved": _each(cost, resolved),
    }


def _marginal(before: Bounds, after: Bounds) -> float | None:
    """USD for each task more that is solved by going on to this rung; None where none is, or nobody knows."""
    if not (before.exact and after.exact) or before.cost_high is None or after.cost_high is None:
        return None
    return _each(after.cost_high - before.cost_high, after.resolved_low - before.resolved_low)


def _each(cost: float | None, number: int) -> float | None:
    return None if cost is None or number <= 0 else round(cost / number, 6)


def _rounded(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 6)
