"""What each rung of a ladder brought: attempts, plausible edits, and what they cost.

Also edit formats, models and runs side by side, all counted in the same columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retrial.chat import Usage
from retrial.reports.analysis import aider_summary, cases
from retrial.reports.analysis.cases import Attempt, Case
from retrial.reports.analysis.stats import rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One run of a grid, scored."""

    run: str
    model: str
    edit_format: str
    measured: tuple[Case, ...]
    not_measured: Mapping[str, str]
    skipped: Mapping[str, str]
    spent: Usage


def by_model(records: Iterable[Mapping[str, Any]], resolved: Collection[str]) -> dict[str, dict[str, Any]]:
    found = cases.by_field(cases.from_records(records, resolved), "model")
    return {name: _brought(own) for name, own in found.items()}


def ladder(
    records: Iterable[Mapping[str, Any]], resolved: Collection[str], titles: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """One row for each rung, in order, also for those that were never reached.

    Where the ladder is unknown (predictions of several runs) it is what the attempts say, in the order met.
    """
    found = cases.from_records(records, resolved)
    if not titles:
        return [_row(title, own) for title, own in cases.split(found, _title).items()]
    # A ladder goes over all of its rungs in every round, until it ends.
    groups = cases.split(found, lambda attempt: str((attempt["try"] - 1) % len(titles)))
    return [_row(title, groups.get(str(place), [])) for place, title in enumerate(titles)]


def count_columns(found: Sequence[Case], turns: int) -> dict[str, Any]:
    """The rate of what was resolved by these attempts; how well the first ones were written; what all of them took."""
    answered = cases.answered(found)
    solved = sum(case.solved for case in answered)
    took = cases.took(found)
    cost = took["cost"]
    return {
        **rate(solved, len(answered)),
        **(aider_summary.quality(answered, turns) if answered else {}),
        "faults": _faults(answered),
        **took,
        "cost_per_resolved": round(cost / solved, 6) if solved and cost is not None else None,
    }


def by_format(found: Sequence[Case]) -> dict[str, dict[str, Any]]:
    """Of one run: each format with the tasks that it was tried on."""
    turns = _most_turns(found)
    return {name: count_columns(own, turns) for name, own in cases.by_field(found, "edit_format").items()}


def by_model_and_format(found: Sequence[Case]) -> list[dict[str, Any]]:
    """Of one run: each model in each format, with the tasks that it was tried on."""
    turns = _most_turns(found)
    return [
        {"model": model, "edit_format": edit_format, **count_columns(each, turns)}
        for model, own in cases.by_field(found, "model").items()
        for edit_format, each in cases.by_field(own, "edit_format").items()
    ]


def side_by_side(runs: Sequence[Compared], not_started: Sequence[str] = ()) -> dict[str, Any]:
    """What the runs of a grid have in common, each of them, and the sums by format and by model."""
    everything = [case for run in runs for case in run.measured]
    common = _common(runs)
    turns = _most_turns(everything)

    def compared(found: Sequence[Case]) -> dict[str, Any]:
        return {**count_columns(found, turns), "rate_common": _rate_of(found, common)}

    return {
        "common": {"measured_by_all": len(common), "of": len(_selected(runs)), "instance_ids": sorted(common)},
        "runs": [{**_head(run), **compared(run.measured)} for run in runs],
        "by_format": {name: compared(own) for name, own in cases.by_field(everything, "edit_format").items()},
        "by_model": {name: compared(own) for name, own in cases.by_field(everything, "model").items()},
        "not_started": list(not_started),
        "spent": sum((run.spent for run in runs), Usage()),
    }


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


def _most_turns(found: Iterable[Case]) -> int:
    return max((len(attempt["tests_outcomes"]) for case in found for attempt in case.attempts), default=0)


def _common(runs: Sequence[Compared]) -> frozenset[str]:
    """Tasks that every run has measured: only of these are the rates about the same questions."""
    measured = [frozenset(case.instance_id for case in run.measured) for run in runs]
    return frozenset.intersection(*measured) if measured else frozenset()


def _selected(runs: Sequence[Compared]) -> set[str]:
    return {
        key for run in runs for key in (*(case.instance_id for case in run.measured), *run.not_measured, *run.skipped)
    }


def _rate_of(found: Sequence[Case], wanted: Collection[str]) -> dict[str, object]:
    own = [case for case in cases.answered(found) if case.instance_id in wanted]
    return rate(sum(case.solved for case in own), len(own))


def _head(run: Compared) -> dict[str, Any]:
    return {
        "run": run.run,
        "model": run.model,
        "edit_format": run.edit_format,
        "not_measured": len(run.not_measured),
        "skipped": len(run.skipped),
    }


def _faults(found: Sequence[Case]) -> dict[str, int]:
    """What was wrong with malformed replies of first attempts, and how often."""
    counted: Counter[str] = Counter()
    for case in found:
        counted.update(case.first.get("faults", {}))
    return dict(counted.most_common())
