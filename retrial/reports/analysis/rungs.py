"""What each rung of a ladder brought: attempts, plausible edits, and what they cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from retrial.reports.analysis import cases
from retrial.reports.analysis.cases import Attempt, Case


def by_model(records: Iterable[Mapping[str, Any]], resolved: Collection[str]) -> dict[str, dict[str, Any]]:
    found = cases.by_field(cases.from_records(records, resolved), "model")
    return {name: _brought(own) for name, own in found.items()}


def ladder(
    records: Iterable[Mapping[str, Any]], resolved: Collection[str], titles: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """One row for each rung, in order, also for those that were never reached.

    Where nobody knows the ladder (predictions of several runs) it is what the attempts say, in the order met.
    """
    found = cases.from_records(records, resolved)
    if not titles:
        return [_row(title, own) for title, own in cases.split(found, _title).items()]
    # A ladder goes over all of its rungs in every round, until it ends.
    groups = cases.split(found, lambda attempt: str((attempt["try"] - 1) % len(titles)))
    return [_row(title, groups.get(str(place), [])) for place, title in enumerate(titles)]


def _title(attempt: Attempt) -> str:
    return f"{attempt['model']}:{attempt['edit_format']}" if attempt["edit_format"] else str(attempt["model"])


def _row(title: str, found: Sequence[Case]) -> dict[str, Any]:
    row = _brought(found)
    plausible, cost = row["plausible"], row["cost"]
    each = round(cost / plausible, 6) if plausible and cost is not None else None
    return {"rung": title, "tasks": len(found), **row, "cost_per_plausible": each}


def _brought(found: Sequence[Case]) -> dict[str, Any]:
    attempts = [attempt for case in found for attempt in case.attempts]
    return {
        "plausible": sum(attempt["plausible"] for attempt in attempts),
        "unverified": sum(attempt.get("unverified", False) for attempt in attempts),
        "chosen": sum(case.brought for case in found),
        "resolved": sum(case.solved for case in found),
        "not_measured": sum(bool(attempt["error"]) for attempt in attempts),
        "num_malformed_responses": sum(attempt["num_malformed_responses"] for attempt in attempts),
        **cases.took(found),
    }
