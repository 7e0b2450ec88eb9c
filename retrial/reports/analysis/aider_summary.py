"""The summary of aider's benchmark, every field under its own name; and what the aider SWE-bench harness printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrial import __version__
from retrial.chat import Usage
from retrial.reports.analysis.cases import Case, answered
from retrial.reports.analysis.stats import total
from retrial.reports.scored_row import ScoredRow

SUMMED = ("num_malformed_responses", "lazy_comments", "syntax_errors", "indentation_errors", "test_timeouts")
ELSEWHERE = {
    "error_outputs": "num_error_outputs",
    "user_asks": "num_user_asks",
    "exhausted_context_windows": "num_exhausted_context_windows",
}
"""Sums that are called otherwise in an attempt's record."""


def build(run: str, cases: Sequence[Case], *, command: str, date: str, reasoning_effort: str = "") -> dict[str, object]:
    """Return the summary of aider's benchmark; empty for predictions made elsewhere, whose chats are not known.

    All of it counts the *first* attempt only: a retry from scratch would make `pass_rate_i` pass@k.
    """
    cases = answered(cases)
    if not cases:
        return {}
    first = [case.first for case in cases]
    cost = total(attempt["cost"] for attempt in first)
    return {
        "dirname": run,
        "test_cases": len(cases),
        "model": ", ".join(sorted({attempt["model"] for attempt in first})),
        "edit_format": ", ".join(sorted({attempt["edit_format"] for attempt in first})),
        "editor_model": None,
        "editor_edit_format": None,
        "commit_hash": __version__,
        "reasoning_effort": reasoning_effort or None,
        "thinking_tokens": None,
        **quality(cases, max(len(case.turns) for case in cases)),
        "prompt_tokens": sum(attempt["prompt_tokens"] for attempt in first),
        "completion_tokens": sum(attempt["completion_tokens"] for attempt in first),
        "total_tests": len(cases),
        "command": command,
        "date": date,
        "versions": __version__,
        "total_cost": None if cost is None else round(cost, 4),
    }


def quality(cases: Sequence[Case], turns: int) -> dict[str, object]:
    """How well it was written, of at least one case; `pass_rate_i` for so many turns."""
    first = [case.first for case in cases]
    passed = {turn: sum(any(case.turns[:turn]) for case in cases) for turn in range(1, turns + 1)}
    malformed = sum(attempt["num_malformed_responses"] > 0 for attempt in first)
    return {
        **{f"pass_rate_{turn}": round(100 * count / len(cases), 1) for turn, count in passed.items()},
        **{f"pass_num_{turn}": count for turn, count in passed.items()},
        "percent_cases_well_formed": round(100 * (1 - malformed / len(cases)), 1),
        "num_with_malformed_responses": malformed,
        **{name: sum(attempt[name] for attempt in first) for name in SUMMED},
        **{name: sum(attempt.get(own, 0) for attempt in first) for name, own in ELSEWHERE.items()},
        "seconds_per_case": round(sum(attempt["model_seconds"] for attempt in first) / len(cases), 1),
    }


def build_statistics(
    measured: Sequence[ScoredRow], records: Mapping[str, Mapping[str, Any]], spent: Usage, benchmark_size: int
) -> dict[str, object]:
    """Return how often plausible was right, gold files found, and costs.

    All shares are of what was measured. What only phase 1 knows is null for predictions made elsewhere.
    """
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


def sum_cost(record: Mapping[str, Any]) -> float | None:
    """Return the cost of all attempts at one task; None is unknown."""
    costs = [attempt["cost"] for attempt in record.get("all_results", ())]
    return None if not costs or None in costs else round(sum(costs), 6)


def _by_plausibility(measured: Sequence[ScoredRow], records: Mapping[str, Mapping[str, Any]]) -> dict[str, object]:
    def having(name: str) -> list[ScoredRow]:
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
    costs = [sum_cost(record) for record in records.values()]
    known = [each for each in costs if each is not None]
    average = sum(known) / len(known) if known and len(known) == len(costs) else None
    return {
        "spent": spent.cost if records else None,
        "cost_per_instance": None if average is None else round(average, 6),
        "expected_cost": None if average is None else round(average * benchmark_size, 4),
    }


def _resolved(rows: Sequence[ScoredRow]) -> int:
    return sum(row.verdict.resolved for row in rows)


def _percent(part: int, of: int) -> float | None:
    """None of nothing."""
    return round(100 * part / of, 2) if of else None
