"""What each rung of a ladder brought: attempts, plausible edits, and what they cost.

Also edit formats, models and runs side by side, all counted in the same columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrial.chat import Usage
from retrial.reports.analysis import aider_summary, cases
from retrial.reports.analysis.aider_summary import Quality
from retrial.reports.analysis.cases import Case, Took
from retrial.reports.analysis.stats import Rate, for_each, rate
from retrial.store.json_io import FLAT, IF_GIVEN
from retrial.store.manifest import ListedRun
from retrial.store.records import PredictionSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    plausible: int
    unverified: int
    chosen: int
    resolved: int
    not_measured: int
    num_malformed_responses: int
    took: Took = field(metadata=FLAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """What one model brought; of predictions made elsewhere, only their rate is known."""

    brought: Brought | None = field(default=None, metadata=FLAT)
    rate: Rate | None = field(default=None, metadata=IF_GIVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderRow:
    rung: str
    tasks: int
    brought: Brought = field(metadata=FLAT)
    cost_per_plausible: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What these attempts resolved, how well the first ones were written, and what all of them took."""

    rate: Rate = field(metadata=FLAT)
    quality: Quality | None = field(metadata=FLAT)
    faults: Mapping[str, int]
    took: Took = field(metadata=FLAT)
    cost_per_resolved: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatRow:
    model: str
    edit_format: str
    columns: Columns = field(metadata=FLAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Runs of a grid that share a model or an edit format."""

    columns: Columns = field(metadata=FLAT)
    rate_common: Rate
    """Of the tasks that all runs measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    run: str
    model: str
    edit_format: str
    not_measured: int
    skipped: int
    row: GroupRow = field(metadata=FLAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """One run of a grid or of repeats, scored."""

    listed: ListedRun
    measured: tuple[Case, ...] = ()
    not_measured: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    void: Mapping[str, str] = field(default_factory=dict)
    spent: Usage = field(default_factory=Usage)
    patches: Mapping[str, str] = field(default_factory=dict)
    """The ids of those that were chosen, by task."""
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """What should be the same where seeds alone are to differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Tasks that all runs of a group measured."""

    measured_by_all: int
    of: int
    instance_ids: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    common: Common
    runs: Sequence[GridRow]
    by_format: Mapping[str, GroupRow]
    by_model: Mapping[str, GroupRow]
    not_started: Sequence[str]
    spent: Usage


def by_model(records: Iterable[PredictionSummary], resolved: Collection[str]) -> dict[str, ModelRow]:
    found = cases.by_field(cases.from_records(records, resolved), "model")
    return {name: ModelRow(brought=_brought(own)) for name, own in found.items()}


def ladder(
    records: Iterable[PredictionSummary], resolved: Collection[str], titles: Sequence[str] = ()
) -> list[LadderRow]:
    """One row for each rung, in order, also for those that were never reached.

    Where the ladder is unknown (predictions of several runs) it is what the attempts say, in the order met.
    """
    found = cases.from_records(records, resolved)
    if not titles:
        return [_row(title, own) for title, own in cases.split(found, lambda attempt: attempt.title).items()]
    # A ladder goes over all of its rungs in every round, until it ends.
    groups = cases.split(found, lambda attempt: str((attempt.number - 1) % len(titles)))
    return [_row(title, groups.get(str(place), [])) for place, title in enumerate(titles)]


def count_columns(found: Sequence[Case], turns: int) -> Columns:
    answered = cases.answered(found)
    solved = sum(case.solved for case in answered)
    took = cases.took(found)
    return Columns(
        rate=rate(solved, len(answered)),
        quality=aider_summary.quality(answered, turns) if answered else None,
        faults=_faults(answered),
        took=took,
        cost_per_resolved=for_each(took.cost, solved),
    )


def by_format(found: Sequence[Case]) -> dict[str, Columns]:
    """Of one run: each format with the tasks that it was tried on."""
    turns = _most_turns(found)
    return {name: count_columns(own, turns) for name, own in cases.by_field(found, "edit_format").items()}


def by_model_and_format(found: Sequence[Case]) -> list[FormatRow]:
    """Of one run: each model in each format, with the tasks that it was tried on."""
    turns = _most_turns(found)
    return [
        FormatRow(model=model, edit_format=edit_format, columns=count_columns(each, turns))
        for model, own in cases.by_field(found, "model").items()
        for edit_format, each in cases.by_field(own, "edit_format").items()
    ]


def side_by_side(runs: Sequence[GroupMember], not_started: Sequence[str] = ()) -> SideBySide:
    """What the runs of a grid have in common, each of them, and the sums by format and by model."""
    everything = [case for run in runs for case in run.measured]
    measured = [frozenset(case.instance_id for case in run.measured) for run in runs]
    # Only of tasks that every run has measured are the rates about the same questions.
    common = frozenset.intersection(*measured) if measured else frozenset()
    selected = {key for run in runs for key in (*run.not_measured, *run.skipped)}.union(*measured)
    turns = _most_turns(everything)

    def compared(found: Sequence[Case]) -> GroupRow:
        own = [case for case in cases.answered(found) if case.instance_id in common]
        rate_common = rate(sum(case.solved for case in own), len(own))
        return GroupRow(columns=count_columns(found, turns), rate_common=rate_common)

    return SideBySide(
        common=Common(measured_by_all=len(common), of=len(selected), instance_ids=sorted(common)),
        runs=[
            GridRow(
                run=run.listed.run,
                model=run.listed.model,
                edit_format=run.listed.edit_format,
                not_measured=len(run.not_measured),
                skipped=len(run.skipped),
                row=compared(run.measured),
            )
            for run in runs
        ],
        by_format={name: compared(own) for name, own in cases.by_field(everything, "edit_format").items()},
        by_model={name: compared(own) for name, own in cases.by_field(everything, "model").items()},
        not_started=list(not_started),
        spent=sum((run.spent for run in runs), Usage()),
    )


def _row(title: str, found: Sequence[Case]) -> LadderRow:
    brought = _brought(found)
    each = for_each(brought.took.cost, brought.plausible)
    return LadderRow(rung=title, tasks=len(found), brought=brought, cost_per_plausible=each)


def _brought(found: Sequence[Case]) -> Brought:
    attempts = [attempt for case in found for attempt in case.attempts]
    return Brought(
        plausible=sum(attempt.plausible for attempt in attempts),
        unverified=sum(attempt.unverified for attempt in attempts),
        chosen=sum(case.brought for case in found),
        resolved=sum(case.solved for case in found),
        not_measured=sum(bool(attempt.error) for attempt in attempts),
        num_malformed_responses=sum(attempt.num_malformed_responses for attempt in attempts),
        took=cases.took(found),
    )


def _most_turns(found: Iterable[Case]) -> int:
    return max((len(attempt.tests_outcomes) for case in found for attempt in case.attempts), default=0)


def _faults(found: Sequence[Case]) -> dict[str, int]:
    """What was wrong with malformed replies of first attempts, and how often."""
    counted: Counter[str] = Counter()
    for case in found:
        counted.update(case.first.faults)
    return dict(counted.most_common())
