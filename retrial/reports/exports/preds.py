"""`preds.json`: predictions by id, as SWE-agent leaves them, and swebench and sb-cli read them."""

from __future__ import annotations

import json

from retrial.reports.exports import Export
from retrial.reports.records import Results
from retrial.store.runs import Run

FIELDS = ("model_name_or_path", "instance_id", "model_patch")


def rows(run: Run) -> list[dict[str, str]]:
    """Of all_preds.jsonl."""
    import jsonlines

    if not run.bundle_path.is_file():
        return []
    with jsonlines.open(run.bundle_path) as reader:
        return [{name: row[name] for name in FIELDS} for row in reader]


def render(run: Run, results: Results) -> bytes:
    """In ASCII: bytes that are no UTF-8 travel as surrogates, which no encoding can write."""
    return (json.dumps({row["instance_id"]: row for row in rows(run)}, indent=2, allow_nan=False) + "\n").encode()


def make() -> Export:
    return render
