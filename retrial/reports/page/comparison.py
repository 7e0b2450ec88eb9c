"""What the page of several runs shows: of a comparison, of a grid, of repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from retrial.reports.analysis.repeats import RepeatRow
from retrial.reports.analysis.rungs import GridRow
from retrial.reports.analysis.stats import Rate
from retrial.reports.comparison_table import Comparison, ComparisonRow
from retrial.reports.page import charts
from retrial.reports.records import GroupResults


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartRow:
    """Of one run, what its bars and points are drawn from."""

    run: str
    rate: Rate
    first_turn: float | None = None
    cost: float | None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPage:
    """What the template needs beside results.json."""

    charts: Mapping[str, Markup | None]
    linked: set[str]
    """Runs that have a page of their own."""


def build(results: Comparison | GroupResults, runs: Path) -> ComparisonPage:
    """`runs` is the folder of all runs."""
    rows = [_row(each) for each in (results.runs if isinstance(results, Comparison) else results.found.runs)]
    linked = {row.run for row in rows if (runs / row.run / "report.html").is_file()}
    return ComparisonPage(charts=_drawn(rows), linked=linked)


def _row(row: ComparisonRow | GridRow | RepeatRow) -> ChartRow:
    if isinstance(row, RepeatRow):
        return ChartRow(run=row.run, rate=row.rate, cost=row.cost)
    if isinstance(row, GridRow):
        columns = row.row.columns
        first = columns.quality.pass_rate(1) if columns.quality else None
        tokens = columns.took.prompt_tokens + columns.took.completion_tokens
        return ChartRow(run=row.run, rate=columns.rate, first_turn=first, cost=columns.took.cost, tokens=tokens)
    known = row.prompt_tokens is not None and row.completion_tokens is not None
    both = (row.prompt_tokens or 0) + (row.completion_tokens or 0) if known else None
    return ChartRow(run=row.run, rate=row.rate, first_turn=row.written.pass_rate_1, cost=row.cost, tokens=both)


def _drawn(rows: Sequence[ChartRow]) -> dict[str, Markup | None]:
    labels = [f"{row.run} {row.rate.percent:.1f} %" if row.rate.of else f"{row.run} (no rate)" for row in rows]
    first = [row.first_turn for row in rows]
    if any(turn is not None for turn in first):
        bars = charts.divided("runs", labels, [row.rate.percent or 0.0 for row in rows], first)
    else:
        bars = charts.bars("runs", labels, {"resolved": [charts.interval(row.rate) for row in rows]})
    return {
        "runs": bars if rows else None,
        "cost": _points("cost", [(row, row.cost) for row in rows], "USD"),
        "tokens": _points("tokens", [(row, row.tokens) for row in rows], "tokens, in and out"),
    }


def _points(name: str, rows: Sequence[tuple[ChartRow, float | None]], unit: str) -> Markup | None:
    found = {row.run: [(took, row.rate.percent)] for row, took in rows if row.rate.of and took}
    return charts.points(name, found, unit) if len(found) > 1 else None
