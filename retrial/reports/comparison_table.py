"""Runs side by side, of a comparison, a grid or repeats: a row for each, and what is printed of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from retrial.reports.analysis.aider_summary import Quality
from retrial.reports.analysis.pairs import PairRow
from retrial.reports.analysis.repeats import IDENTICAL, Together
from retrial.reports.analysis.run_conditions import EarlierSummary, Side
from retrial.reports.analysis.rungs import GroupRow, SideBySide
from retrial.reports.analysis.selected_tasks import what_was_left
from retrial.reports.analysis.stats import MeasuredRate, for_each
from retrial.reports.terminal import table, tokens
from retrial.store.json_io import FLAT
from retrial.system.console import first_few, money, one_line, percent, pluralise

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
    shown = table(HEADER, [_cells(each) for each in found.runs])
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


def render_grid(found: SideBySide) -> str:
    header = (
        *("model", "format", "resolved", "rate", "common", "turn 1", "turn 2", "well formed", "malformed"),
        *("lazy", "syntax", "tokens in / out", "cost", "each resolved", "s/case"),
    )
    rows = [_compared(row.model, row.edit_format, row.row) for row in found.runs]
    if len(found.by_model) > 1:
        rows += [_compared("all", name, row) for name, row in found.by_format.items()]
    if len(found.by_format) > 1:
        rows += [_compared(name, "all", row) for name, row in found.by_model.items()]
    common = found.common
    lines = [
        f"measured by all {common.measured_by_all} of {common.of} tasks (column common: of these alone)",
        *(f"not measured    {row.not_measured} in {row.run}" for row in found.runs if row.not_measured),
        *(f"not started     {name}" for name in found.not_started),
    ]
    return f"{table(header, rows)}\n\n" + "\n".join(lines)


def _compared(model: str, edit_format: str, row: GroupRow) -> tuple[object, ...]:
    columns, took = row.columns, row.columns.took
    rates = (columns.rate.share, columns.rate.short, row.rate_common.share)
    costs = (tokens(took), money(took.cost), money(columns.cost_per_resolved, "-"))
    seconds = columns.quality.seconds_per_case if columns.quality else "-"
    return (model, edit_format, *rates, *_written(columns.quality), *costs, seconds)


def _written(quality: Quality | None) -> tuple[object, ...]:
    """Where nothing was answered, nothing was written."""
    if quality is None:
        return ("-", "-", "-", "-", "-", "0")
    shares = (quality.pass_rate(1), quality.pass_rate(2), quality.percent_cases_well_formed)
    wrong = quality.syntax_errors + quality.indentation_errors
    return (*map(percent, shares), quality.num_malformed_responses, quality.lazy_comments, wrong)


def render_repeats(found: Together) -> str:
    """Repeats side by side, and what they say together."""
    rows = [
        (row.run, row.seed, row.rate.share, row.rate.short, row.rate_common.share, money(row.cost))
        for row in found.runs
    ]
    shown = table(("run", "seed", "resolved", "rate", "common", "cost"), rows)
    return f"{shown}\n\n" + "\n".join([*_repeats_summary(found), *_repeats_remarks(found)])


def _repeats_summary(found: Together) -> list[str]:
    common, spread = found.common, found.spread
    lines = [f"measured by all {common.measured_by_all} of {common.of} tasks (column common: of these alone)"]
    if spread is None:
        return [*lines, "mean            none: there is no task that all runs have measured"]
    k, twice = str(spread.runs), len(found.always) + len(found.never) + len(found.flips)
    if spread.runs < 2:
        return [*lines, f"mean            {percent(found.mean)}, of one run: there is nothing to compare it with"]
    return [
        *lines,
        f"mean            {percent(found.mean)} (spread {spread.standard_deviation:.1f} points over {k} runs; "
        f"{spread.min:.1f} to {spread.max:.1f}); pass@{k} {percent(found.pass_at[k])}; "
        f"{len(found.flips)} of {pluralise(twice, 'task')} flipped",
        f"always, never   {len(found.always)} resolved in every run, {len(found.never)} in none",
    ]


def _repeats_remarks(found: Together) -> list[str]:
    differing = ", ".join(found.conditions_differ)
    void = [name for name in found.flips if name in found.void]
    return [
        *(f"not measured    {row.not_measured} in {row.run}" for row in found.runs if row.not_measured),
        *(f"not started     {name}" for name in found.not_started),
        *([f"void here       {len(void)} of those that flipped: it may be the tests"] if void else []),
        *([f"note: runs differ in more than their seeds: {differing} (conditions_differ)"] if differing else []),
        *([f"note: {IDENTICAL}"] if found.identical else []),
    ]
