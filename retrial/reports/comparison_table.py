"""Runs side by side: a row for each, and what is printed of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrial.reports.analysis.pairs import PairRow
from retrial.reports.analysis.run_conditions import EarlierSummary, Side
from retrial.reports.analysis.selected_tasks import what_was_left
from retrial.reports.analysis.stats import MeasuredRate, for_each
from retrial.reports.tables import Table
from retrial.store.json_io import FLAT
from retrial.system.console import first_few, money, one_line, percent

SHOWN = 10
"""Ids of what was gained or lost; results.json has them all."""
HEADER = (
    *("run", "model", "format", "resolved", "rate", "turn 1", "turn 2", "well formed", "cost", "each resolved"),
    *("s/case", "not measured"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One run; unknown values are null."""

    run: str
    model: str | None
    edit_format: str | None
    agent: str | None
    prior: tuple[str, ...]
    rate: MeasuredRate
    written: EarlierSummary = field(metadata=FLAT)
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    cost_per_resolved: float | None
    not_measured: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The content of results.json: a row for each run, and the pairs."""

    schema: int
    kind: str
    run: str
    benchmark: str | None
    command: str
    runs: tuple[ComparisonRow, ...]
    pairs: tuple[PairRow, ...]
    warnings: tuple[str, ...]
    retrial: str


def row(side: Side) -> ComparisonRow:
    found = side.results
    written, spent = found.aider, found.spent
    # The cost and time of predictions made elsewhere are unknown.
    known = written != EarlierSummary() or bool(spent.calls)
    cost = spent.cost if known else None
    return ComparisonRow(
        run=side.name,
        model=", ".join(found.by_model) or None,
        edit_format=", ".join(found.by_format) or None,
        agent=side.config.setting("agent"),
        prior=side.prior,
        rate=found.rate,
        written=written,
        prompt_tokens=spent.prompt_tokens if known else None,
        completion_tokens=spent.completion_tokens if known else None,
        cost=cost,
        cost_per_resolved=for_each(cost, found.rate.resolved),
        not_measured=len(found.not_measured),
        skipped=len(found.skipped),
    )


def render(found: Comparison) -> str:
    """The runs, then every pair."""
    shown = Table(header=HEADER, rows=[_cells(each) for each in found.runs]).aligned()
    after = [
        f"{each.run} ran only {what_was_left(each.prior)}; its rate covers only those."
        for each in found.runs
        if each.prior
    ]
    return "\n\n".join([shown, *map(one_line, after), *(_pair(each) for each in found.pairs)])


def _cells(found: ComparisonRow) -> tuple[object, ...]:
    names, written = (found.run, found.model or "-", found.edit_format or "-"), found.written
    shares = map(percent, (written.pass_rate_1, written.pass_rate_2, written.percent_cases_well_formed))
    costs = (money(each, "-") for each in (found.cost, found.cost_per_resolved))
    seconds = "-" if written.seconds_per_case is None else written.seconds_per_case
    return (*names, found.rate.share, found.rate.short, *shares, *costs, seconds, found.not_measured)


def _pair(row: PairRow) -> str:
    a, b, found = row.a, row.b, row.pair
    lines = [
        f"{b} against {a}",
        f"  common      {row.common}: both {len(found.both)}, neither {len(found.neither)}, "
        f"gained {len(found.gained)} (only {b}), lost {len(found.lost)} (only {a})",
    ]
    if found.only_in_a or found.only_in_b:
        apart = f"{len(found.only_in_a)} in {a}, {len(found.only_in_b)} in {b}"
        lines.append(f"  left out    measured in one only: {apart}")
    lines += [f"  gained      {first_few(found.gained, SHOWN)}"] if found.gained else []
    lines += [f"  lost        {first_few(found.lost, SHOWN)}"] if found.lost else []
    if row.common:
        lines.append(f"  difference  {row.difference:+.1f} points (95 % interval {row.low:+.1f} to {row.high:+.1f})")
    lines += [f"  differs in  {each}" for each in found.differences.differs_in]
    lines += [f"  warning     {each}" for each in found.differences.warnings]
    return "\n".join(map(one_line, [*lines, f"  {row.sentence}"]))
