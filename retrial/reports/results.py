"""All verdicts of a run as one value: results.json. Every number in it is counted from the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrial.chat import Usage
from retrial.reports.analysis import (
    aider_summary,
    cases,
    ladder_value,
    pick_quality,
    rungs,
    stats,
)
from retrial.reports.analysis.attempt_outcomes import Judged, OutcomeResolver, TaskAttempts
from retrial.reports.analysis.cases import Case, from_records
from retrial.reports.analysis.rungs import Compared
from retrial.reports.scored_row import ScoredRow
from retrial.store.history import PredictionSummary
from retrial.types import Outcome, Status

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known when scoring has ended."""

    run: str
    benchmark: str
    benchmark_size: int
    visible_is_hidden: bool
    scored: tuple[ScoredRow, ...]
    not_predicted: Mapping[str, str] = field(default_factory=dict)
    """Selected tasks that phase 1 did not finish: id → reason."""
    agent_failed: str = ""
    """A sentence, if every attempt ended with an error and an empty patch: then there is no rate."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, PredictionSummary] = field(default_factory=dict)
    """Prediction records of phase 1, by id; empty for files made elsewhere."""
    spent: Usage = field(default_factory=Usage)
    """Of all calls ever made in this run, finished or not."""
    unsettled: float | None = 0.0
    """USD more that replies which did not arrive may have cost; None where nobody knows."""
    started: str = ""
    command: str = ""
    """How phase 1 was called."""
    visible_tests: str | None = None
    """How phase 1 chose them, where there was a choice."""
    agent_isolated: bool | None = None
    """It saw nothing but what it was given; None where nobody knows."""
    rungs: tuple[str, ...] = ()
    """Titles of the ladder's, in order; empty where predictions come from several ladders, or from none."""
    reasoning_effort: str = ""
    shards: Mapping[str, Any] = field(default_factory=dict)
    """Of a run made of shards: which there are, and which are missing."""
    prior: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    """Models without a known price."""
    """Runs whose results selected its tasks."""
    provenance: Mapping[str, object] = field(default_factory=dict)
    judged: Mapping[str, Mapping[str, Judged]] = field(default_factory=dict)
    """What `--attempts` found out of patches that were not chosen: task → patch → verdict."""

    @property
    def measured(self) -> tuple[ScoredRow, ...]:
        return tuple(row for row in self.scored if row.verdict.outcome.measured)

    @property
    def resolved(self) -> tuple[ScoredRow, ...]:
        return tuple(row for row in self.scored if row.verdict.resolved)

    @property
    def not_measured(self) -> dict[str, str]:
        rows = (row for row in self.scored if not row.verdict.outcome.measured)
        return {**self.not_predicted, **{row.task.instance_id: row.verdict.reason for row in rows}}

    @property
    def void(self) -> dict[str, str]:
        return {row.task.instance_id: row.void for row in self.scored if row.void}

    @property
    def official_differs(self) -> list[str]:
        """Where our verdict is not that of the benchmark's own grading."""
        rows = (row for row in self.scored if row.verdict.official not in (None, row.verdict.resolved))
        return sorted(row.task.instance_id for row in rows)

    @property
    def resolved_ids(self) -> set[str]:
        return {row.task.instance_id for row in self.resolved}

    @property
    def sources(self) -> tuple[str, ...]:
        """Of a run made of several with ladders of their own: their names, in order. Shards share one."""
        found = self.provenance.get("sources")
        return tuple(map(str, found)) if isinstance(found, list | tuple) and not self.rungs else ()

    def tries(self) -> dict[str, TaskAttempts]:
        """What is known of every attempt, by task; nothing for files made elsewhere."""
        known = OutcomeResolver(
            visible_is_hidden=self.visible_is_hidden, titles=self.rungs, sources=self.sources, judged=self.judged
        )
        found = ((row, self.records.get(row.task.instance_id)) for row in self.scored)
        return {row.task.instance_id: known.tries(record, row.verdict.outcome) for row, record in found if record}

    def attempts(self) -> str:
        """`2+` as soon as one chosen patch had more than one go at it."""
        return "2+" if any(len(record.get("all_results", ())) > 1 for record in self.records.values()) else "1"


def results(report: Report) -> dict[str, object]:
    """The content of results.json."""
    found, tries = _measured_cases(report), report.tries()
    return {
        **_lists(report),
        "schema": SCHEMA,
        "run": report.run,
        **({"shards": dict(report.shards)} if report.shards else {}),
        "benchmark": report.benchmark,
        "visible_tests": report.visible_tests,
        "prior": list(report.prior),
        "agent_isolated": report.agent_isolated,
        "agent_failed": report.agent_failed or None,
        "tamper": _tamper(report),
        "totals": {**totals(report), "tests": tests(report.measured)},
        **_rates(report),
        "official_differs": report.official_differs,
        "statistics": aider_summary.build_statistics(
            report.measured, report.records, report.spent, report.benchmark_size
        ),
        "not_measured": report.not_measured,
        "skipped": dict(report.skipped),
        "void": report.void,
        "by_language": _by_language(report),
        "by_model": _by_model(report),
        "by_format": rungs.by_format(found),
        "by_model_and_format": rungs.by_model_and_format(found),
        "ladder": rungs.ladder(report.records.values(), report.resolved_ids, report.rungs),
        **_attempts(report, tries),
        "time": cases.sum_run_times(report.scored, report.records.values()),
        "spent": report.spent,
        "unsettled": report.unsettled,
        "provenance": dict(report.provenance),
        "aider": aider_summary.build(
            report.run,
            found,
            command=report.command,
            date=report.started[:10],
            reasoning_effort=report.reasoning_effort,
        ),
        "instances": [_instance(report, row, tries.get(row.task.instance_id)) for row in report.scored],
    }


def _attempts(report: Report, tries: Mapping[str, TaskAttempts]) -> dict[str, object]:
    """What the ladder and the choice among its attempts were good for, in what was measured."""
    measured = [tries[row.task.instance_id] for row in report.measured if row.task.instance_id in tries]
    return {
        "economics": ladder_value.build(measured, report.sources),
        "picker": pick_quality.build(measured),
        "not_measured_attempts": [
            {"instance_id": instance_id, "try": each.number, "reason": each.reason}
            for instance_id, found in sorted(report.judged.items())
            for each in found.values()
            if not each.outcome.measured
        ],
    }


def _rates(report: Report) -> dict[str, object]:
    found = {
        "rate": rate(report.measured),
        "rate_calibrated": rate([row for row in report.measured if not row.void]),
        "rate_of_benchmark": stats.rate(len(report.resolved), report.benchmark_size),
    }
    if report.agent_failed:
        # Not even of the whole benchmark, where what is missing counts as unresolved.
        found = {name: {**dict.fromkeys(each), "resolved": 0, "of": 0} for name, each in found.items()}
    found["rate"] |= {"attempts": report.attempts(), "visible_is_hidden": report.visible_is_hidden}
    return {**found}


def rate(rows: Sequence[ScoredRow]) -> dict[str, object]:
    return stats.rate(sum(row.verdict.resolved for row in rows), len(rows))


def totals(report: Report) -> dict[str, int]:
    families = Counter(row.verdict.outcome.family for row in report.scored)
    return {
        "selected": len(report.scored) + len(report.not_predicted) + len(report.skipped),
        "resolved": families["resolved"],
        "unresolved": families["unresolved"],
        "not_measured": len(report.not_measured),
        "skipped": len(report.skipped),
        "void": len(report.void),
        "calibrated": sum(row.calibrated for row in report.scored),
    }


def _tamper(report: Report) -> dict[str, object]:
    """How many patches reached for what they may not, and which a person should look at."""
    tampered = {row.task.instance_id for row in report.measured if row.verdict.outcome is Outcome.TAMPERED}
    rows = [row for row in report.measured if not row.tampering.clean or row.task.instance_id in tampered]
    return {
        "tampered": len(tampered),
        "touched": sum(bool(row.tampering.touched) for row in rows),
        "changed": sum(bool(row.tampering.changed) for row in rows),
        "suspicious": sum(bool(row.tampering.suspicious) for row in rows),
        "resolved_clean": sum(row.verdict.resolved and row.tampering.clean for row in report.measured),
        "review": sorted(row.task.instance_id for row in rows),
    }


def _lists(report: Report) -> dict[str, list[str]]:
    """The ten lists of the original report."""

    def ids(*outcomes: Outcome) -> list[str]:
        return sorted(row.task.instance_id for row in report.scored if row.verdict.outcome in outcomes)

    not_applied = (Outcome.PATCH_EMPTY, Outcome.PATCH_DID_NOT_APPLY)
    everything = tuple(Outcome)
    measured = tuple(outcome for outcome in everything if outcome.measured)
    return {
        "no_generation": ids(Outcome.PATCH_EMPTY),
        "generated": ids(*(outcome for outcome in everything if outcome is not Outcome.PATCH_EMPTY)),
        "with_logs": ids(*everything),
        "install_fail": ids(Outcome.INSTALL_FAILED),
        "reset_failed": ids(Outcome.RESET_FAILED),
        "no_apply": ids(Outcome.PATCH_DID_NOT_APPLY),
        "applied": ids(*(outcome for outcome in measured if outcome not in not_applied)),
        "test_errored": ids(Outcome.BUILD_FAILED),
        "test_timeout": ids(Outcome.TIMED_OUT),
        "resolved": ids(Outcome.RESOLVED),
    }


def _by_language(report: Report) -> dict[str, dict[str, object]]:
    rows: dict[str, list[ScoredRow]] = {}
    for row in report.measured:
        rows.setdefault(row.task.language, []).append(row)
    return {language: {**rate(each), "tests": tests(each)} for language, each in sorted(rows.items())}


def tests(rows: Sequence[ScoredRow]) -> dict[str, int]:
    """How many tests were run, and what became of them: none may be left out silently."""
    found = Counter(str(status) for row in rows for status in row.verdict.tests.values())
    return {"total": found.total(), **{str(status): found[str(status)] for status in Status}}


def _by_model(report: Report) -> dict[str, dict[str, object]]:
    """What each model was asked and brought; for foreign files, the rate by their own name."""
    if report.records:
        return rungs.by_model(report.records.values(), report.resolved_ids)
    groups: dict[str, list[ScoredRow]] = {}
    for row in report.measured:
        groups.setdefault(row.model_name_or_path, []).append(row)
    return {name: {"rate": rate(rows)} for name, rows in sorted(groups.items())}


def _measured_cases(report: Report) -> list[Case]:
    """What phase 1 did about every task that phase 2 could measure; nothing for files made elsewhere."""
    found = (_record(report, row) for row in report.measured)
    return from_records((record for record in found if record), report.resolved_ids)


def compared(report: Report, model: str, edit_format: str) -> Compared:
    """What a comparison of several runs needs of this one."""
    return Compared(
        run=report.run,
        model=model,
        edit_format=edit_format,
        measured=tuple(_measured_cases(report)),
        not_measured=report.not_measured,
        skipped=report.skipped,
        spent=report.spent,
    )


def _record(report: Report, row: ScoredRow) -> PredictionSummary:
    return report.records.get(row.task.instance_id, {})


def _instance(report: Report, row: ScoredRow, tries: TaskAttempts | None) -> dict[str, object]:
    verdict, record = row.verdict, _record(report, row)
    passed = sum(status is Status.PASSED for status in verdict.tests.values())
    failed = sum(status in (Status.FAILED, Status.ERROR) for status in verdict.tests.values())
    return {
        "instance_id": row.task.instance_id,
        "resolved": verdict.resolved,
        "resolved_official": verdict.official,
        **row.required,
        "exit_code": verdict.exit_code,
        "stdout": verdict.stdout,
        "stderr": verdict.stderr,
        "tests_passed": passed,
        "tests_failed": failed,
        "tests_skipped": len(verdict.tests) - passed - failed,
        "seconds": round(verdict.seconds, 3),
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "proof": verdict.proof,
        "applied_with": verdict.applied,
        "dropped_paths": list(verdict.dropped),
        "tamper": row.tampering,
        "tests": dict(verdict.tests),
        "language": row.task.language,
        "void": row.void,
        "calibrated": row.calibrated,
        "canaries": row.canaries,
        "cached": row.cached,
        "model_name_or_path": row.model_name_or_path,
        "model": record.get("model"),
        "edit_format": record.get("edit_format"),
        "plausible": record.get("plausible"),
        "unverified": record.get("unverified"),
        "try": record.get("try"),
        "tries": record.get("tries"),
        "cost": aider_summary.sum_cost(record),
        **cases.sum_task_times(record),
        "dname": record.get("dname"),
        "attempts": [each.record() for each in tries.attempts] if tries else [],
    }
