"""One line for each task, for spreadsheets: RFC 4180, UTF-8."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from retrial.reports.exports import Export
from retrial.reports.exports.cases import ExportedCase, every
from retrial.reports.exports.text import line
from retrial.store.runs import Run

LONGEST = 10_000
"""Characters of a cell; a third of what Excel takes."""
FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""A spreadsheet takes text that begins so for something to compute."""
COLUMNS = (
    "instance_id", "language", "outcome", "resolved", "resolved_official", "reason", "void", "model_name_or_path",
    "model", "edit_format", "try", "tries", "plausible", "unverified", "cost", "prompt_tokens", "completion_tokens",
    "model_seconds", "tests_passed", "tests_failed", "tests_skipped", "tests_required", "tests_required_passed",
    "exit_code", "seconds", "proof", "tampered", "review", "dropped_paths", "calibrated", "cached", "dname",
)  # fmt: skip
"""Named as in results.json; `tampered` is the rule that was broken, `review` whether a person should look at it."""


def render(run: Run, content: Mapping[str, Any]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    review = set(content["tamper"]["review"])
    writer.writerows(_line(case, review) for case in every(content))
    return text.getvalue().encode()


def _line(case: ExportedCase, review: set[str]) -> dict[str, object]:
    row = case.row
    own = {
        "instance_id": case.instance_id,
        "outcome": case.outcome,
        "resolved": bool(row.get("resolved")),
        "reason": row.get("reason", case.reason),
        "tampered": row.get("tamper", {}).get("rule"),
        "review": case.instance_id in review,
        "dropped_paths": " ".join(row.get("dropped_paths", ())),
    }
    return {name: _cell(own.get(name, row.get(name))) for name in COLUMNS}


def _cell(value: object) -> object:
    """Numbers as they are: only text can be somebody else's formula."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, int | float):
        return value
    text = line(value, LONGEST)
    return f"'{text}" if text.startswith(FORMULA) else text


def make() -> Export:
    return render
