"""The summary of aider's benchmark, every field under its own name.

`pass_rate_i` counts turn i of the *first* attempt only: a retry from scratch would make it pass@k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrial import __version__

SUMMED = ("lazy_comments", "syntax_errors", "indentation_errors", "test_timeouts", "num_malformed_responses")


def build(
    run: str, records: Sequence[Mapping[str, Any]], refuted: set[str], *, command: str, date: str
) -> dict[str, object]:
    """The record; empty for predictions made elsewhere, whose chats are not known.

    `refuted` are tasks whose chosen patch was measured and is not resolved.
    """
    first = [record["all_results"][0] for record in records if record.get("all_results")]
    if not first:
        return {}
    cases = len(first)
    passed = _passed(records, refuted)
    malformed = sum(attempt["num_malformed_responses"] > 0 for attempt in first)
    costs = [attempt["cost"] for attempt in first]
    sums = {name: sum(attempt[name] for attempt in first) for name in SUMMED}
    return {
        "dirname": run,
        "test_cases": cases,
        "model": ", ".join(sorted({attempt["model"] for attempt in first})),
        "edit_format": ", ".join(sorted({attempt["edit_format"] for attempt in first})),
        "commit_hash": __version__,
        **{f"pass_rate_{turn}": round(100 * count / cases, 1) for turn, count in passed.items()},
        **{f"pass_num_{turn}": count for turn, count in passed.items()},
        "percent_cases_well_formed": round(100 * (1 - malformed / cases), 1),
        "error_outputs": sums["num_malformed_responses"] + sum(bool(attempt["error"]) for attempt in first),
        "num_with_malformed_responses": malformed,
        "user_asks": 0,
        **sums,
        "exhausted_context_windows": sum(attempt["num_exhausted_context_windows"] for attempt in first),
        "prompt_tokens": sum(attempt["prompt_tokens"] for attempt in first),
        "completion_tokens": sum(attempt["completion_tokens"] for attempt in first),
        "total_tests": cases,
        "command": command,
        "date": date,
        "versions": __version__,
        "seconds_per_case": round(sum(attempt["model_seconds"] for attempt in first) / cases, 1),
        "total_cost": None if None in costs else round(sum(costs), 4),
    }


def _passed(records: Sequence[Mapping[str, Any]], refuted: set[str]) -> dict[int, int]:
    """Turn → how many passed within it; a first attempt that was chosen and is not resolved did not."""
    outcomes = []
    for record in records:
        wrong = record["try"] == 1 and record["instance_id"] in refuted
        turns = record["all_results"][0]["tests_outcomes"]
        outcomes.append([] if wrong else turns)
    most = max((len(record["all_results"][0]["tests_outcomes"]) for record in records), default=0)
    return {turn: sum(any(outcome[:turn]) for outcome in outcomes) for turn in range(1, most + 1)}
