"""results.json of report.py --calibrate, and what is printed of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrial.grading import canaries
from retrial.grading.calibration import ADVICE, MORE_TIME, Calibration, TaskQuality
from retrial.grading.canaries import ShownCanary
from retrial.reports.terminal import LISTED, reasons, table
from retrial.store.json_io import FLAT
from retrial.types import Outcome, Status, Task, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    outcome: Outcome
    reason: str
    seconds: float
    tests: Mapping[str, int]
    """How many there are of each status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSeconds:
    min: float
    median: float
    max: float
    limit: float
    slow: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationRow:
    instance_id: str
    language: str
    calibrated: str
    """When, in UTC."""
    worth: TaskQuality
    void: str
    advice: str
    gold_passed: int
    gold: list[VerdictRow]
    differing: Mapping[str, list[Status | None]]
    stub: VerdictRow
    proof: str
    canaries: tuple[ShownCanary, ...]
    seconds: ReferenceSeconds
    tests: Mapping[str, Status]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationTotals:
    selected: int
    by_worth: Mapping[TaskQuality, int] = field(metadata=FLAT)
    slow: int
    not_measured: int
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResults:
    schema: int
    kind: str
    run: str
    benchmark: str
    command: str
    totals: CalibrationTotals
    proofs: Mapping[str, int]
    not_measured: Mapping[str, str]
    skipped: Mapping[str, str]
    void: Mapping[str, str]
    provenance: Mapping[str, Any]
    instances: list[CalibrationRow]


def row(task: Task, found: Calibration) -> CalibrationRow:
    least, median, most = (round(seconds, 3) for seconds in found.seconds)
    return CalibrationRow(
        instance_id=task.instance_id,
        language=task.language,
        calibrated=found.at,
        worth=found.worth,
        void=found.void,
        advice="; ".join(filter(None, (ADVICE[found.worth], MORE_TIME if found.slow else ""))),
        gold_passed=found.passed,
        gold=[_verdict(verdict) for verdict in found.gold],
        differing={test: [verdict.tests.get(test) for verdict in found.gold] for test in found.differing},
        stub=_verdict(found.stub),
        proof=next((verdict.proof for verdict in reversed(found.gold) if verdict.resolved), ""),
        canaries=canaries.shown(found.canaries),
        seconds=ReferenceSeconds(min=least, median=median, max=most, limit=found.timeout, slow=found.slow),
        tests=dict(found.gold[0].tests),
    )


def _verdict(verdict: Verdict) -> VerdictRow:
    return VerdictRow(
        outcome=verdict.outcome,
        reason=verdict.reason,
        seconds=round(verdict.seconds, 3),
        tests=dict(Counter(str(status) for status in verdict.tests.values())),
    )


def totals(rows: Sequence[CalibrationRow], *, not_measured: int, skipped: int) -> CalibrationTotals:
    worth = Counter(row.worth for row in rows)
    return CalibrationTotals(
        selected=len(rows) + not_measured + skipped,
        by_worth={each: worth[each] for each in TaskQuality},
        slow=sum(row.seconds.slow for row in rows),
        not_measured=not_measured,
        skipped=skipped,
    )


def render(results: CalibrationResults) -> str:
    """What was found out, and what to do about it."""
    instances = results.instances
    listed = instances if len(instances) <= LISTED else [row for row in instances if row.advice]
    rows = []
    for row in listed:
        worth, stub = row.worth.replace("_", " "), row.stub.outcome.replace("_", " ")
        found = row.seconds
        took = f"{found.min:.2f} / {found.median:.2f} / {found.max:.2f}"
        passed = f"{row.gold_passed}/{len(row.gold)}"
        rows.append((row.instance_id, worth, passed, stub, took, f"{found.limit:g}", row.proof or "-"))
    header = ("instance", "worth", "gold", "stub", "seconds min / median / max", "limit", "proof")
    shown = [table(header, rows)] if rows else []
    return "\n\n".join([*shown, "\n".join(_remarks(results))])


def _remarks(results: CalibrationResults) -> list[str]:
    """Counts by quality, and for each task that needs attention what was seen and what to do."""
    counted, instances = results.totals, results.instances
    lines = [f"sound         {counted.by_worth[TaskQuality.VALID]}"]
    for worth in (TaskQuality.FLAKY, TaskQuality.BROKEN, TaskQuality.STUB_PASSES):
        rows = [row for row in instances if row.worth == worth]
        lines.append(f"{worth.replace('_', ' '):13} {len(rows)}" + (f": {ADVICE[worth]}" if rows else ""))
        lines += [f"  {row.instance_id}: {row.void}" for row in rows]
    slow = [(row.instance_id, row.seconds) for row in instances if row.seconds.slow]
    lines.append(f"slow          {len(slow)}" + (f": {MORE_TIME}" if slow else ""))
    lines += [f"  {name}: its reference took {took.max:.1f} of {took.limit:g} s" for name, took in slow]
    lines += [f"not measured  {counted.not_measured}", *reasons("not measured", results.not_measured)]
    lines += [f"skipped       {counted.skipped}", *reasons("skipped", results.skipped)]
    proofs = ", ".join(f"{name} {number}" for name, number in sorted(results.proofs.items()))
    return [*lines, f"proof         {proofs or '-'}"]
