"""How many tests of an instance passed, in a few characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from retrial.types import Status

WORDS = {Status.XFAILED: "expected to fail"}
"""For a status whose name does not speak for itself."""


def passed(row: Mapping[str, Any]) -> tuple[int, int]:
    """Of the tests that are required, where the task says which these are; else of all."""
    return row.get("tests_required_passed", row["tests_passed"]), row.get("tests_required", len(row["tests"]))


def shown(row: Mapping[str, Any], nothing: str = "-") -> str:
    """`36/37`; beside *resolved* with what became of the others, which did not stand in its way."""
    if not row["tests"]:
        return nothing
    own, total = passed(row)
    return f"{own}/{total}" + (f" ({_others(row, total - own)})" if row["resolved"] and own < total else "")


def _others(row: Mapping[str, Any], number: int) -> str:
    if "tests_required" in row:
        return f"{number} accepted: not passed by the reference either"
    found = Counter(status for status in row["tests"].values() if status != Status.PASSED)
    return ", ".join(f"{times} {WORDS.get(Status(status), status)}" for status, times in found.most_common())
