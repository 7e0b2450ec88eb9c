"""How good the choice among attempts was: whether plausible meant resolved, and what other picks would have brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrial.reports.analysis.attempt_outcomes import AttemptOutcome, How, TaskAttempts
from retrial.reports.analysis.stats import rate


def build(tasks: Sequence[TaskAttempts]) -> dict[str, object]:
    """`picker` of results.json, over measured tasks; empty where nothing is known of attempts.

    Attempts that came to nothing through nobody's failure are none that could be picked.
    """
    if not tasks:
        return {}
    attempts = [attempt for task in tasks for attempt in task.answered]
    unknown = sum(attempt.resolved is None for attempt in attempts)
    ours, best = _of(sum(task.resolved for task in tasks), len(tasks)), _best(tasks)
    return {
        "tasks": len(tasks),
        "with_a_choice": sum(len(task.answered) > 1 for task in tasks),
        "attempts": len(attempts),
        "known": len(attempts) - unknown,
        "unknown": unknown,
        "scored": sum(attempt.how is How.SCORED for attempt in attempts),
        "exact": not unknown,
        "precision": _precision(attempts),
        "missed": _false_negatives(attempts),
        "picks": {
            "ours": ours,
            "best": best,
            "first": _single([task.answered[0].resolved for task in tasks if task.answered], len(tasks)),
            "last": _single([task.answered[-1].resolved for task in tasks if task.answered], len(tasks)),
            "random": _random(tasks),
        },
        "ours_of_best": _ours_of_best(int(ours["low"]), best),
    }


def said(content: Mapping[str, Any]) -> list[str]:
    """For people."""
    if not content.get("with_a_choice"):
        return []
    right, best = content["precision"], content["picks"]["best"]
    low, high = best["low"], best["high"]
    shown = f"{low}" if low == high else f"{low} to {high} (--attempts tells)"
    meant = f"plausible meant resolved in {right['resolved']} of {right['of']} ({right['percent']:.1f} %)"
    if not right["of"]:
        meant = "nothing was plausible"
    return [f"picker        {meant}; best possible pick {shown}, ours {content['picks']['ours']['low']}"]


def _precision(attempts: Sequence[AttemptOutcome]) -> dict[str, object]:
    """Of plausible attempts with a verdict, how many are resolved."""
    plausible = [attempt.resolved for attempt in attempts if attempt.plausible]
    known = [resolved for resolved in plausible if resolved is not None]
    return {**rate(sum(known), len(known)), "unknown": len(plausible) - len(known)}


def _false_negatives(attempts: Sequence[AttemptOutcome]) -> dict[str, object]:
    """Of resolved attempts, how many nobody took for plausible; more of the others may be resolved."""
    right = [attempt for attempt in attempts if attempt.resolved]
    others = [attempt.resolved for attempt in attempts if not attempt.plausible]
    found = rate(sum(not attempt.plausible for attempt in right), len(right))
    return {
        **{"missed" if name == "resolved" else name: value for name, value in found.items()},
        "unknown": others.count(None),
    }


def _best(tasks: Sequence[TaskAttempts]) -> dict[str, float]:
    """Who knew all verdicts."""
    found = [[attempt.resolved for attempt in task.answered] for task in tasks]
    low = sum(True in verdicts for verdicts in found)
    return _of(low, len(tasks), sum(True in verdicts or None in verdicts for verdicts in found))


def _single(picked: Sequence[bool | None], of: int) -> dict[str, float]:
    low = picked.count(True)
    return _of(low, of, low + picked.count(None))


def _random(tasks: Sequence[TaskAttempts]) -> dict[str, float]:
    """What to expect of one attempt of each task, drawn blindly."""
    low = high = 0.0
    for task in tasks:
        verdicts = [attempt.resolved for attempt in task.answered]
        if verdicts:
            low += verdicts.count(True) / len(verdicts)
            high += (len(verdicts) - verdicts.count(False)) / len(verdicts)
    return _of(round(low, 4), len(tasks), round(high, 4))


def _ours_of_best(ours: int, best: Mapping[str, float]) -> dict[str, float | None]:
    """Of the tasks that some attempt resolved, the share that we chose right."""
    return {"percent_low": _percent(ours, best["high"]), "percent_high": _percent(ours, best["low"])}


def _of(low: float, of: int, high: float | None = None) -> dict[str, float]:
    """How many tasks, at least and at most."""
    most = low if high is None else high
    return {
        "low": low,
        "high": most,
        "percent_low": _percent(low, of) or 0.0,
        "percent_high": _percent(most, of) or 0.0,
    }


def _percent(part: float, of: float) -> float | None:
    return round(100 * part / of, 2) if of else None
