"""The numbers that the aider SWE-bench harness printed: how often plausible was right, gold files found, costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrial.chat import Usage
from retrial.reports.rows import Row


def build(
    measured: Sequence[Row], records: Mapping[str, Mapping[str, Any]], spent: Usage, benchmark_size: int
) -> dict[str, object]:
    """All shares are of what was measured. What only phase 1 knows is null for predictions made elsewhere."""
    resolved = [row for row in measured if row.verdict.resolved]
    found = [row for row in measured if row.finds_gold_file]
    return {
        "percent": _percent(len(resolved), len(measured)),
        "plus_one_percent": _percent(len(resolved) + 1, len(measured) + 1),
        **_by_plausibility(measured, records),
        "gold_files_found": len(found),
        "gold_files_found_percent": _percent(len(found), len(measured)),
        "resolved_gold_files_found": _resolved(found),
        **_costs(records, spent, benchmark_size),
    }


def cost(record: Mapping[str, Any]) -> float | None:
    """Of all attempts at one task; None is unknown."""
    costs = [attempt["cost"] for attempt in record.get("all_results", ())]
    return None if not costs or None in costs else round(sum(costs), 6)


def _by_plausibility(measured: Sequence[Row], records: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
    def having(name: str) -> list[Row]:
        return [row for row in measured if records.get(row.task.instance_id, {}).get(name)]

    plausible, unverified = having("plausible"), having("unverified")
    found = {
        "plausible": len(plausible),
        "plausible_percent": _percent(len(plausible), len(measured)),
        "resolved_plausible": _resolved(plausible),
        "resolved_plausible_percent": _percent(_resolved(plausible), len(plausible)),
        "unverified": len(unverified),
        "resolved_unverified": _resolved(unverified),
    }
    return {name: value if records else None for name, value in found.items()}


def _costs(records: Mapping[str, Mapping[str, Any]], spent: Usage, benchmark_size: int) -> dict[str, object]:
    costs = [cost(record) for record in records.values()]
    known = [each for each in costs if each is not None]
    average = sum(known) / len(known) if known and len(known) == len(costs) else None
    return {
        "spent": spent.cost if records else None,
        "cost_per_instance": None if average is None else round(average, 6),
        "expected_cost": None if average is None else round(average * benchmark_size, 4),
    }


def _resolved(rows: Sequence[Row]) -> int:
    return sum(row.verdict.resolved for row in rows)


def _percent(part: int, of: int) -> float | None:
    """None of nothing."""
    return round(100 * part / of, 2) if of else None
