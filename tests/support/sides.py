"""Runs that were scored, as their files would have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retrial.reports.analysis.run_conditions import Side, read_back
from retrial.reports.records import Results
from retrial.reports.results import Report, results
from retrial.score.save import scored_row
from retrial.store.json_io import decode
from retrial.store.manifest import Manifest
from retrial.types import Outcome
from tests.support.rows import row

PROVENANCE: Mapping[str, Any] = {
    "benchmark": {"source": "bench", "digest": "d1", "commit": "c1"},
    "harness": {"retrial": "1"},
    "sandbox": {"sandbox": "bwrap", "version": "0.8"},
    "environments": {"python": {"digest": "e1", "versions": ["Python 3.13"]}},
    "retrial": "1",
}
IDENTITY: Mapping[str, Any] = {
    "benchmark": "bench",
    "benchmark_digest": "d1",
    "agent": "edit",
    "model_name_or_path": "edit--m",
    "models": ["m:whole"],
    "tries": 1,
    "turns": 2,
    "seed": 0,
    "max_tokens": 100,
}
CONFIG: Mapping[str, Any] = {
    "program": "harness.py",
    "identity": IDENTITY,
    "limits": {"timeout_seconds": 300.0, "test_timeout_seconds": None},
    "sandbox": {"sandbox": "bwrap", "environments": PROVENANCE["environments"]},
}
OUTCOMES = {"+": Outcome.RESOLVED, "-": Outcome.TESTS_FAILED, "e": Outcome.PATCH_EMPTY, "?": Outcome.NOT_MEASURED}


def content(name: str, outcomes: str, provenance: Mapping[str, Any] = PROVENANCE, **fields: Any) -> Results:
    """Those of a run of so many tasks: `+` resolved, `-` failed, `e` empty, `?` not measured, ` ` not asked."""
    scored = tuple(
        scored_row(row(f"task-{number:04}", OUTCOMES[letter]))
        for number, letter in enumerate(outcomes)
        if letter != " "
    )
    report = Report(
        run=name,
        benchmark="bench",
        benchmark_size=len(outcomes),
        visible_is_hidden=True,
        scored=scored,
        provenance=provenance,
        **fields,
    )
    return results(report)


def side(name: str, outcomes: str, config: Mapping[str, Any] = CONFIG, **fields: Any) -> Side:
    return Side(name=name, results=read_back(content(name, outcomes, **fields)), config=decode(config, Manifest))
