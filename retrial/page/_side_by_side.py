"""What the page of several runs shows: of a comparison, of a grid, of repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from retrial.page import _charts

Column = tuple[str, str, tuple[str, ...]]
"""Its name, how its values are shown, and where they are in a row."""

_WRITTEN: tuple[Column, ...] = (
    ("First turn", "percent", ("pass_rate_1",)),
    ("Second turn", "percent", ("pass_rate_2",)),
    ("Well formed", "percent", ("percent_cases_well_formed",)),
    ("Cost", "usd", ("cost",)),
    ("Each resolved", "usd", ("cost_per_resolved",)),
    ("Seconds a case", "number", ("seconds_per_case",)),
    ("Not measured", "count", ("not_measured",)),
)
_NAMED: tuple[Column, ...] = (("Model", "text", ("model",)), ("Format", "text", ("edit_format",)))


def _rated(*path: str) -> tuple[Column, ...]:
    return (
        ("Resolved", "count", (*path, "resolved")),
        ("Tasks", "count", (*path, "of")),
        ("Rate and interval", "rate", path),
    )


COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "comparison": (*_NAMED, *_rated("rate"), *_WRITTEN),
    "grid": (*_NAMED, *_rated(), *_WRITTEN),
    "repeats": (
        ("Seed", "text", ("seed",)),
        *_rated(),
        ("Cost", "usd", ("cost",)),
        ("Not measured", "count", ("not_measured",)),
    ),
}


def build(content: Mapping[str, Any]) -> dict[str, Any]:
    return {"columns": COLUMNS[content["kind"]], "charts": _drawn(content)}


def _drawn(content: Mapping[str, Any]) -> dict[str, Markup | None]:
    rows, kind = content["runs"], content["kind"]
    rates = {row["run"]: row.get("rate", row) for row in rows}
    paid = {row["run"]: [(row["cost"], rates[row["run"]]["percent"])] for row in rows if row["cost"]}
    series = {"resolved": [_charts.interval(rate) for rate in rates.values()]} if kind == "repeats" else _turns(rows)
    return {
        "runs": _charts.bars("runs", list(rates), series, stacked=kind != "repeats") if rows else None,
        "cost": _charts.points("cost", paid) if len(paid) > 1 else None,
    }


def _turns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """What passed on the first turn, and what came later."""
    percents = [row.get("rate", row)["percent"] for row in rows]
    first = [min(row.get("pass_rate_1") or 0.0, percent) for row, percent in zip(rows, percents, strict=True)]
    return {"on the first turn": first, "later": [whole - part for whole, part in zip(percents, first, strict=True)]}
