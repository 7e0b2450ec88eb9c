"""What tests and models took, for results.json."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from retrial.reports.rows import Row
from retrial.store.history import Brief

SLOWEST = 5
TOKENS = ("prompt_tokens", "completion_tokens")


def of_run(scored: Sequence[Row], records: Iterable[Brief]) -> dict[str, object]:
    """Tests that were not run took no time, and are left out of the median."""
    rows = sorted((row for row in scored if row.verdict.seconds), key=lambda row: -row.verdict.seconds)
    seconds = [row.verdict.seconds for row in rows]
    asked = [attempt["model_seconds"] for record in records for attempt in record["all_results"]]
    return {
        "test_seconds": round(sum(seconds), 3),
        "median_test_seconds": round(median(seconds), 3) if seconds else None,
        "model_seconds": round(sum(asked), 3) if asked else None,
        "slowest": [
            {"instance_id": row.task.instance_id, "seconds": round(row.verdict.seconds, 3)} for row in rows[:SLOWEST]
        ],
    }


def of_task(record: Brief) -> dict[str, object]:
    """All attempts at it, and what the first one's turns came to; null for predictions made elsewhere."""
    attempts = record.get("all_results", ())
    return {
        **{name: sum(each[name] for each in attempts) if attempts else None for name in TOKENS},
        "model_seconds": round(sum(each["model_seconds"] for each in attempts), 3) if attempts else None,
        "turns_passed": list(attempts[0]["tests_outcomes"]) if attempts else None,
    }
