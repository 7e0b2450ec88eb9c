"""One line for each task, for spreadsheets: RFC 4180, UTF-8."""

from __future__ import annotations

import csv
import io

from retrial.reports.exports import Export, ExportedCase, every, line
from retrial.reports.records import Results
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


def render(run: Run, results: Results) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    review = set(results.tamper.review)
    writer.writerows([_cell(_value(case, name, review)) for name in COLUMNS] for case in every(results))
    return text.getvalue().encode()


def _value(case: ExportedCase, name: str, review: set[str]) -> object:
    row = case.row
    match name:
        case "instance_id" | "outcome":
            return getattr(case, name)
        case "review":
            return case.instance_id in review
        case "resolved":
            return row is not None and row.resolved
        case "reason":
            return row.reason if row else case.reason
        case "tampered":
            return row.tamper.rule if row else None
        case "dropped_paths":
            return " ".join(row.dropped_paths) if row else ""
        case "try":
            return row.number if row else None
        case _:
            return getattr(row, name) if row else None


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
