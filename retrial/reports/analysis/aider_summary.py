"""The summary of aider's benchmark, every field under its own name.

All of it counts the *first* attempt only: a retry from scratch would make `pass_rate_i` pass@k.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrial import __version__
from retrial.reports.analysis.cases import Case, answered
from retrial.reports.analysis.stats import total

SUMMED = ("num_malformed_responses", "lazy_comments", "syntax_errors", "indentation_errors", "test_timeouts")
ELSEWHERE = {
    "error_outputs": "num_error_outputs",
    "user_asks": "num_user_asks",
    "exhausted_context_windows": "num_exhausted_context_windows",
}
"""Sums that are called otherwise in an attempt's record."""


def build(run: str, cases: Sequence[Case], *, command: str, date: str, reasoning_effort: str = "") -> dict[str, object]:
    """The record; empty for predictions made elsewhere, whose chats are not known."""
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
