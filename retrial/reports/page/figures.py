"""What the templates need beside results.json: charts of a run or of several, and the rows of a run's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from retrial.reports.analysis.ladder_value import LadderValue
from retrial.reports.analysis.repeats import RepeatRow
from retrial.reports.analysis.rungs import Columns, FormatRow, GridRow
from retrial.reports.analysis.stats import Rate
from retrial.reports.comparison_table import Comparison, ComparisonRow
from retrial.reports.page import charts
from retrial.reports.records import GroupResults, Results
from retrial.system.console import percent

REASON = 300


def left_out(results: Results) -> list[tuple[str, str, str]]:
    """Return id, outcome and reason of what was not scored."""
    known = {row.instance_id for row in results.instances}
    unscored = [(key, "not_measured", why) for key, why in results.not_measured.items() if key not in known]
    return [*unscored, *((key, "skipped", why) for key, why in results.skipped.items())]


def filters(results: Results) -> list[tuple[str, list[str]]]:
    """Return what the table can be filtered by, with all values of it."""
    shown = [(row.language or "–", str(row.outcome), row.model or row.model_name_or_path) for row in results.instances]
    shown += [("–", outcome, "–") for _, outcome, _ in left_out(results)]
    names = ("language", "outcome", "model")
    return [(name, sorted({values[place] for values in shown})) for place, name in enumerate(names)]


def shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON else f"{line[: REASON // 2]} … {line[-REASON // 2 :]}"


def by_reason(reasons: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    """Return each reason once, with the ids that it holds for, the most frequent first."""
    found: dict[str, list[str]] = {}
    for instance_id, why in reasons.items():
        found.setdefault(shorten(why), []).append(instance_id)
    return sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))


def of_run(results: Results) -> dict[str, Markup | None]:
    """Return the charts of one run."""
    by_language, rows = results.by_language, results.by_model_and_format
    rates = [row.columns.rate for row in rows]
    return {
        "formats": charts.divided(
            "formats",
            [f"{_title(row)} {percent(rate.percent)}" for row, rate in zip(rows, rates, strict=True)],
            [rate.percent or 0.0 for rate in rates],
            [_first_turn(row.columns) for row in rows],
        ),
        "languages": charts.bars(
            "languages",
            [f"{name} {percent(row.rate.percent)}" for name, row in by_language.items()],
            {"resolved": [charts.interval(row.rate) for row in by_language.values()]},
        ),
        "economics": _worth(results.economics),
        "tokens": _over_tokens(results),
    }


def _title(row: FormatRow) -> str:
    return f"{row.model}, {row.edit_format}"


def _first_turn(columns: Columns) -> float | None:
    passed = columns.quality.turns.get("pass_num_1") if columns.quality else None
    return None if passed is None or not columns.rate.of else 100 * passed / columns.rate.of


def _worth(found: LadderValue | None) -> Markup | None:
    """What the ladder solved as it was climbed; nothing where nothing was paid, or there was one rung."""
    rungs = found.rungs if found else ()
    climbed = [(row.cumulative_cost, row.cumulative_percent) for row in rungs if row.cumulative_cost]
    return charts.points("economics", {"the ladder": climbed}, "USD") if len(climbed) > 1 else None


def _over_tokens(results: Results) -> Markup | None:
    """Of those that met the same tasks: later rungs see only what is left."""
    found = {
        _title(row): [(row.columns.took.prompt_tokens + row.columns.took.completion_tokens, row.columns.rate.percent)]
        for row in results.by_model_and_format
        if row.columns.rate.of == results.rate.of and row.columns.took.prompt_tokens
    }
    return charts.points("tokens", found, "tokens, in and out") if len(found) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartRow:
    """Of one run, what its bars and points are drawn from."""

    run: str
    rate: Rate
    first_turn: float | None = None
    cost: float | None
    tokens: int | None = None


def of_several(results: Comparison | GroupResults) -> dict[str, Markup | None]:
    """Return the charts of several runs."""
    rows = [_chart_row(each) for each in (results.runs if isinstance(results, Comparison) else results.found.runs)]
    labels = [f"{row.run} {percent(row.rate.percent)}" if row.rate.of else f"{row.run} (no rate)" for row in rows]
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


def _chart_row(row: ComparisonRow | GridRow | RepeatRow) -> ChartRow:
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


def _points(name: str, rows: Sequence[tuple[ChartRow, float | None]], unit: str) -> Markup | None:
    found = {row.run: [(took, row.rate.percent)] for row, took in rows if row.rate.of and took}
    return charts.points(name, found, unit) if len(found) > 1 else None
