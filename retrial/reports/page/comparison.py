"""What the page of several runs shows: of a comparison, of a grid, of repeats."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from retrial.reports.page import charts

Column = tuple[str, str, tuple[str, ...]]
"""Its name, how its values are shown, and where they are in a row."""

_WRITTEN: tuple[Column, ...] = (
    ("By turn 1", "percent", ("pass_rate_1",)),
    ("By turn 2", "percent", ("pass_rate_2",)),
    ("Well formed", "percent", ("percent_cases_well_formed",)),
    ("Tokens in", "count", ("prompt_tokens",)),
    ("Tokens out", "count", ("completion_tokens",)),
    ("Cost", "usd", ("cost",)),
    ("Each resolved", "each", ("cost_per_resolved",)),
    ("Seconds a case", "number", ("seconds_per_case",)),
    ("Not measured", "count", ("not_measured",)),
)
_NAMED: tuple[Column, ...] = (("Model", "text", ("model",)), ("Format", "text", ("edit_format",)))


def _rated(*path: str) -> tuple[Column, ...]:
    return (
        ("Rate and interval", "rate", path),
        ("Resolved", "count", (*path, "resolved")),
        ("Tasks", "count", (*path, "of")),
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


def build(content: Mapping[str, Any], linked: Collection[str] = ()) -> dict[str, Any]:
    """`linked` are runs that have a page of their own."""
    return {"columns": COLUMNS[content["kind"]], "charts": _drawn(content), "linked": linked}


def _drawn(content: Mapping[str, Any]) -> dict[str, Markup | None]:
    rows = [{**row, **row.get("rate", {})} for row in content["runs"]]
    labels = [f"{row['run']} {row['percent']:.1f} %" if row["of"] else f"{row['run']} (no rate)" for row in rows]
    known = any(row.get("pass_rate_1") is not None for row in rows)
    if known:
        bars = charts.divided(
            "runs", labels, [row["percent"] or 0.0 for row in rows], [row.get("pass_rate_1") for row in rows]
        )
    else:
        bars = charts.bars("runs", labels, {"resolved": [charts.interval(row) for row in rows]})
    return {
        "runs": bars if rows else None,
        "cost": _points("cost", rows, lambda row: row.get("cost"), "USD"),
        "tokens": _points("tokens", rows, _tokens, "tokens, in and out"),
    }


def _points(
    name: str, rows: Sequence[Mapping[str, Any]], took: Callable[[Mapping[str, Any]], float | None], unit: str
) -> Markup | None:
    found = {row["run"]: [(x, row["percent"])] for row in rows if row["of"] and (x := took(row))}
    return charts.points(name, found, unit) if len(found) > 1 else None


def _tokens(row: Mapping[str, Any]) -> float | None:
    found = (row.get("prompt_tokens"), row.get("completion_tokens"))
    return None if found[0] is None or found[1] is None else found[0] + found[1]
