"""All verdicts of a run as one value: results.json. Every number in it is counted from the rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrial import aider_record, image_trees, required_tests, seed_statistics
from retrial.attempts import Usage
from retrial.score import Scored
from retrial.stats import wilson
from retrial.types import Outcome, Status

SCHEMA = 1
SHOWN_CHARACTERS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is known when scoring has ended."""

    run: str
    benchmark: str
    benchmark_size: int
    visible_is_hidden: bool
    scored: tuple[Scored, ...]
    not_predicted: Mapping[str, str] = field(default_factory=dict)
    """Selected tasks that phase 1 did not finish: id → reason."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Prediction records of phase 1, by id; empty for files made elsewhere."""
    spent: Usage = field(default_factory=Usage)
    """Of all calls ever made in this run, finished or not."""
    started: str = ""
    command: str = ""
    """How phase 1 was called."""
    visible_tests: str | None = None
    """How phase 1 chose them, where there was a choice."""
    provenance: Mapping[str, object] = field(default_factory=dict)

    @property
    def measured(self) -> tuple[Scored, ...]:
        return tuple(row for row in self.scored if row.verdict.outcome.measured)

    @property
    def resolved(self) -> tuple[Scored, ...]:
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

    def attempts(self) -> str:
        """`2+` as soon as one chosen patch had more than one go at it."""
        return "2+" if any(len(record.get("all_results", ())) > 1 for record in self.records.values()) else "1"


def results(report: Report) -> dict[str, object]:
    """The content of results.json."""
    calibrated = [row for row in report.measured if not row.void]
    return {
        **_lists(report),
        "schema": SCHEMA,
        "run": report.run,
        "benchmark": report.benchmark,
        "visible_tests": report.visible_tests,
        "totals": {**totals(report), "tests": tests(report.measured)},
        "rate": {
            **rate(report.measured),
            "attempts": report.attempts(),
            "visible_is_hidden": report.visible_is_hidden,
        },
        "rate_calibrated": rate(calibrated),
        "rate_of_benchmark": _rate(len(report.resolved), report.benchmark_size),
        "official_differs": report.official_differs,
        "statistics": seed_statistics.build(report.measured, report.records, report.spent, report.benchmark_size),
        "not_measured": report.not_measured,
        "skipped": dict(report.skipped),
        "void": report.void,
        "by_language": _by_language(report),
        "by_model": _by_model(report),
        "by_format": _by(report, lambda row: str(_record(report, row).get("edit_format") or "unknown")),
        "spent": report.spent,
        "provenance": dict(report.provenance),
        "aider": _aider(report),
        "instances": [_instance(report, row) for row in report.scored],
    }


def rate(rows: Sequence[Scored]) -> dict[str, object]:
    return _rate(sum(row.verdict.resolved for row in rows), len(rows))


def totals(report: Report) -> dict[str, int]:
    families = Counter(row.verdict.outcome.family for row in report.scored)
    return {
        "selected": len(report.scored) + len(report.not_predicted) + len(report.skipped),
        "resolved": families["resolved"],
        "unresolved": families["unresolved"],
        "not_measured": len(report.not_measured),
        "skipped": len(report.skipped),
        "void": len(report.void),
    }


def _rate(resolved: int, of: int) -> dict[str, object]:
    low, high = wilson(resolved, of)
    percent = 100 * resolved / of if of else 0.0
    return {
        "percent": round(percent, 2),
        "low": round(100 * low, 2),
        "high": round(100 * high, 2),
        "resolved": resolved,
        "of": of,
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


def _by(report: Report, name: Any) -> dict[str, object]:
    groups: dict[str, list[Scored]] = {}
    for row in report.measured:
        groups.setdefault(name(row), []).append(row)
    return {key: rate(rows) for key, rows in sorted(groups.items())}


def _by_language(report: Report) -> dict[str, dict[str, object]]:
    rows = {
        row.task.language: [each for each in report.measured if each.task.language == row.task.language]
        for row in report.measured
    }
    return {language: {**rate(each), "tests": tests(each)} for language, each in sorted(rows.items())}


def tests(rows: Sequence[Scored]) -> dict[str, int]:
    """How many tests were run, and what became of them: none may be left out silently."""
    found = Counter(str(status) for row in rows for status in row.verdict.tests.values())
    return {"total": found.total(), **{str(status): found[str(status)] for status in Status}}


def _by_model(report: Report) -> dict[str, dict[str, object]]:
    """What each model of the ladder was asked and brought; for foreign files, by their own name."""
    if not report.records:
        return {
            key: {"rate": value} for key, value in _by(report, lambda row: row.submission.model_name_or_path).items()
        }
    resolved = _resolved_ids(report)
    models: dict[str, list[tuple[str, Mapping[str, Any], bool]]] = {}
    for instance_id, record in report.records.items():
        for attempt in record.get("all_results", ()):
            chosen = attempt["try"] == record["try"]
            models.setdefault(attempt["model"], []).append((instance_id, attempt, chosen))
    return {name: _model_row(rows, resolved) for name, rows in sorted(models.items())}


def _model_row(rows: list[tuple[str, Mapping[str, Any], bool]], resolved: set[str]) -> dict[str, object]:
    attempts = [attempt for _, attempt, _ in rows]
    costs = [attempt["cost"] for attempt in attempts]
    return {
        "attempts": len(attempts),
        "plausible": sum(attempt["plausible"] for attempt in attempts),
        "unverified": sum(attempt.get("unverified", False) for attempt in attempts),
        "chosen": sum(chosen for _, _, chosen in rows),
        "resolved": sum(chosen and instance_id in resolved for instance_id, _, chosen in rows),
        "not_measured": sum(bool(attempt["error"]) for attempt in attempts),
        "calls": sum(attempt["calls"] for attempt in attempts),
        "prompt_tokens": sum(attempt["prompt_tokens"] for attempt in attempts),
        "completion_tokens": sum(attempt["completion_tokens"] for attempt in attempts),
        "cost": None if None in costs else round(sum(costs), 6),
        "model_seconds": round(sum(attempt["model_seconds"] for attempt in attempts), 2),
    }


def _aider(report: Report) -> dict[str, object]:
    refuted = {row.task.instance_id for row in report.measured if not row.verdict.resolved}
    records = [_record(report, row) for row in report.measured if _record(report, row)]
    return aider_record.build(report.run, records, refuted, command=report.command, date=report.started[:10])


def _resolved_ids(report: Report) -> set[str]:
    return {row.task.instance_id for row in report.resolved}


def _record(report: Report, row: Scored) -> Mapping[str, Any]:
    return report.records.get(row.task.instance_id, {})


def _required(row: Scored) -> dict[str, object]:
    """Of a task that says which tests must pass: of a repository's others some always fail."""
    required = row.check.required if row.check else None
    if required is None:
        return {}
    total = len(required.fail_to_pass) + len(required.pass_to_pass)
    passed = total - len(required_tests.not_passed(required, row.verdict.tests)) if row.verdict.tests else 0
    return {"tests_required": total, "tests_required_passed": passed}


def _instance(report: Report, row: Scored) -> dict[str, object]:
    verdict, record = row.verdict, _record(report, row)
    passed = sum(status is Status.PASSED for status in verdict.tests.values())
    failed = sum(status in (Status.FAILED, Status.ERROR) for status in verdict.tests.values())
    return {
        "instance_id": row.task.instance_id,
        "resolved": verdict.resolved,
        "resolved_official": verdict.official,
        **_required(row),
        "exit_code": verdict.exit_code,
        "stdout": _stdout(row),
        "stderr": verdict.stderr[:SHOWN_CHARACTERS],
        "tests_passed": passed,
        "tests_failed": failed,
        "tests_skipped": len(verdict.tests) - passed - failed,
        "seconds": round(verdict.seconds, 3),
        "outcome": verdict.outcome,
        "reason": verdict.reason,
        "proof": verdict.proof,
        "applied_with": verdict.applied,
        "dropped_paths": list(verdict.dropped),
        "tests": dict(verdict.tests),
        "language": row.task.language,
        "void": row.void,
        "cached": row.cached,
        "model_name_or_path": row.submission.model_name_or_path,
        "model": record.get("model"),
        "edit_format": record.get("edit_format"),
        "plausible": record.get("plausible"),
        "unverified": record.get("unverified"),
        "try": record.get("try"),
        "tries": record.get("tries"),
        "cost": seed_statistics.cost(record),
        "dname": record.get("dname"),
    }


def _stdout(row: Scored) -> str:
    """The telling part: of a benchmark's own log, which begins with the environment's talk, that is the end."""
    log = image_trees.read(row.verdict.stdout).log if row.check and row.check.required else ""
    return log[-SHOWN_CHARACTERS:] or row.verdict.stdout[:SHOWN_CHARACTERS]
