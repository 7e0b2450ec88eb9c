"""Runs side by side: a row for each, and what is printed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrial.reports.analysis.run_conditions import Side
from retrial.reports.analysis.selected_tasks import what_was_left
from retrial.reports.console_tables import aligned
from retrial.reports.console_tables import rate as shown_rate
from retrial.system.console import money, one_line

SHOWN = 10
"""Ids of what was gained or lost; results.json has them all."""
OF_AIDER = ("pass_rate_1", "pass_rate_2", "percent_cases_well_formed", "seconds_per_case")
HEADER = (
    *("run", "model", "format", "resolved", "rate", "turn 1", "turn 2", "well formed", "cost", "each resolved"),
    *("s/case", "not measured"),
)


def row(side: Side) -> dict[str, Any]:
    """One run for results.json; what nobody knows of it is null."""
    content, written = side.content, side.content.get("aider") or {}
    cost, resolved = _cost(content), content["rate"]["resolved"]
    return {
        "run": side.name,
        "model": ", ".join(content.get("by_model") or {}) or None,
        "edit_format": ", ".join(content.get("by_format") or {}) or None,
        "agent": side.config.get("identity", {}).get("agent"),
        "prior": list(side.prior),
        "rate": dict(content["rate"]),
        **{name: written.get(name) for name in OF_AIDER},
        **{name: _spent(content, name) for name in ("prompt_tokens", "completion_tokens")},
        "cost": cost,
        "cost_per_resolved": round(cost / resolved, 6) if resolved and cost is not None else None,
        "not_measured": len(content["not_measured"]),
        "skipped": len(content["skipped"]),
    }


def _cost(content: Mapping[str, Any]) -> float | None:
    cost: float | None = _spent(content, "cost")
    return cost


def _spent(content: Mapping[str, Any], name: str) -> Any:
    """Of every call; nobody knows what predictions took that were made elsewhere."""
    spent = content.get("spent") or {}
    known = content.get("aider") or spent.get("calls")
    return spent.get(name) if known else None


def render(content: Mapping[str, Any]) -> str:
    """The runs, then every pair."""
    shown = aligned(HEADER, [_cells(each) for each in content["runs"]])
    after = [
        f"{each['run']} ran only {what_was_left(each['prior'])}; its rate covers only those."
        for each in content["runs"]
        if each["prior"]
    ]
    return "\n\n".join([shown, *map(one_line, after), *(_pair(each) for each in content["pairs"])])


def _cells(found: Mapping[str, Any]) -> tuple[str, ...]:
    rate, seconds = found["rate"], found["seconds_per_case"]
    return (
        found["run"],
        found["model"] or "-",
        found["edit_format"] or "-",
        f"{rate['resolved']}/{rate['of']}",
        shown_rate(rate),
        *(_share(found[name]) for name in OF_AIDER[:3]),
        *(_money(found[name]) for name in ("cost", "cost_per_resolved")),
        "-" if seconds is None else str(seconds),
        str(found["not_measured"]),
    )


def _share(percent: float | None) -> str:
    return "-" if percent is None else f"{percent:.1f} %"


def _money(cost: float | None) -> str:
    return "-" if cost is None else money(cost)


def _pair(found: Mapping[str, Any]) -> str:
    a, b = found["a"], found["b"]
    numbers = {name: len(found[name]) for name in ("gained", "lost", "both", "neither", "only_in_a", "only_in_b")}
    lines = [
        f"{b} against {a}",
        f"  common      {found['common']}: both {numbers['both']}, neither {numbers['neither']}, "
        f"gained {numbers['gained']} (only {b}), lost {numbers['lost']} (only {a})",
        *_apart(numbers, a, b),
        *(f"  {name:11} {_ids(found[name])}" for name in ("gained", "lost") if found[name]),
        *_difference(found),
        *(f"  differs in  {each}" for each in found["differs_in"]),
        *(f"  warning     {each}" for each in found["warnings"]),
        f"  {found['sentence']}",
    ]
    return "\n".join(map(one_line, lines))


def _apart(numbers: Mapping[str, int], a: str, b: str) -> list[str]:
    only_a, only_b = numbers["only_in_a"], numbers["only_in_b"]
    return [f"  left out    measured in one only: {only_a} in {a}, {only_b} in {b}"] if only_a or only_b else []


def _difference(found: Mapping[str, Any]) -> list[str]:
    if not found["common"]:
        return []
    interval = f"95 % interval {found['low']:+.1f} to {found['high']:+.1f}"
    return [f"  difference  {found['difference']:+.1f} points ({interval})"]


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
