"""One line for each task, for spreadsheets: RFC 4180, UTF-8."""

from __future__ import annotations

import csv
import io

from retrial.reports.exports import Export, every, line
from retrial.reports.records import Results
from retrial.store.json_io import to_fields
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
    for case in every(results):
        known: dict[str, object] = {"instance_id": case.instance_id, "outcome": case.outcome, "reason": case.reason}
        known |= {"resolved": False, "review": case.instance_id in review}
        if row := case.row:
            known |= to_fields(row) | {"tampered": row.tamper.rule, "dropped_paths": " ".join(row.dropped_paths)}
        writer.writerow([_cell(known.get(name)) for name in COLUMNS])
    return text.getvalue().encode()


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
