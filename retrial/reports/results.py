"""All verdicts of a run as one value: results.json. Every number in it is counted from the rows."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from retrial.chat import Usage
from retrial.reports.analysis import aider_summary, cases, ladder_value, rungs, stats
from retrial.reports.analysis.cases import (
    Case,
    Judged,
    OutcomeResolver,
    ScoredRow,
    TaskAttempts,
    from_records,
)
from retrial.reports.analysis.repeats import CONDITIONS
from retrial.reports.analysis.rungs import GroupMember, ModelRow
from retrial.reports.analysis.stats import MeasuredRate, Rate
from retrial.reports.records import (
    InstanceRow,
    LanguageRow,
    Results,
    StatusCounts,
    TamperTotals,
    Totals,
    UnmeasuredAttempt,
)
from retrial.store.manifest import ListedRun, Manifest
from retrial.store.records import PredictionSummary
from retrial.types import Outcome, Status

MEASURED = {outcome for outcome in Outcome if outcome.measured}
LISTS: Mapping[str, Collection[Outcome]] = {
    "no_generation": {Outcome.PATCH_EMPTY},
    "generated": {*Outcome} - {Outcome.PATCH_EMPTY},
    "with_logs": {*Outcome},
    "install_fail": {Outcome.INSTALL_FAILED},
    "reset_failed": {Outcome.RESET_FAILED},
    "no_apply": {Outcome.PATCH_DID_NOT_APPLY},
    "applied": MEASURED - {Outcome.PATCH_EMPTY, Outcome.PATCH_DID_NOT_APPLY},
    "test_errored": {Outcome.BUILD_FAILED},
    "test_timeout": {Outcome.TIMED_OUT},
    "resolved": {Outcome.RESOLVED},
}
"""The ten lists of the original report, and what is in each."""


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
    manifest: Manifest = field(default_factory=Manifest)
    """How the predictions were made, as far as that is known."""
    provenance: Mapping[str, object] = field(default_factory=dict)
    judged: Mapping[str, Mapping[str, Judged]] = field(default_factory=dict)
    """What `--attempts` found out of patches that were not chosen: task → patch → verdict."""

    @property
    def measured(self) -> tuple[ScoredRow, ...]:
        return tuple(row for row in self.scored if row.verdict.outcome.measured)

    @property
    def not_measured(self) -> dict[str, str]:
        rows = (row for row in self.scored if not row.verdict.outcome.measured)
        return {**self.not_predicted, **{row.task.instance_id: row.verdict.reason for row in rows}}

    @property
    def void(self) -> dict[str, str]:
        return {row.task.instance_id: row.void for row in self.scored if row.void}

    @property
    def resolved_ids(self) -> set[str]:
        return {row.task.instance_id for row in self.scored if row.verdict.resolved}

    @property
    def rungs(self) -> tuple[str, ...]:
        """Titles of the ladder's, in order; empty where predictions come from several ladders, or from none."""
        return tuple(self.manifest.setting("models") or ())

    @property
    def sources(self) -> tuple[str, ...]:
        """Of a run made of several with ladders of their own: their names, in order. Shards share one."""
        return () if self.rungs else self.manifest.sources or ()

    def tries(self) -> dict[str, TaskAttempts]:
        """What is known of every attempt, by task; nothing for files made elsewhere."""
        known = OutcomeResolver(
            visible_is_hidden=self.visible_is_hidden, titles=self.rungs, sources=self.sources, judged=self.judged
        )
        found = ((row, self.records.get(row.task.instance_id)) for row in self.scored)
        return {row.task.instance_id: known.tries(record, row.verdict.outcome) for row, record in found if record}


def results(report: Report) -> Results:
    """The content of results.json."""
    found, tries, manifest = _measured_cases(report), report.tries(), report.manifest
    differing = (row for row in report.scored if row.verdict.official not in (None, row.verdict.resolved))
    measured = [tries[row.task.instance_id] for row in report.measured if row.task.instance_id in tries]
    return Results(
        lists={
            name: sorted(row.task.instance_id for row in report.scored if row.verdict.outcome in outcomes)
            for name, outcomes in LISTS.items()
        },
        run=report.run,
        shards=manifest.shards,
        benchmark=report.benchmark,
        visible_tests=manifest.setting("visible_tests"),
        prior=list(manifest.prior),
        agent_isolated=manifest.agent.isolated,
        agent_failed=report.agent_failed or None,
        tamper=_tamper(report),
        totals=totals(report),
        rate=_rate(report),
        rate_calibrated=_unless_failed(report, rate([row for row in report.measured if not row.void])),
        # With a failed agent not even this, where what is missing counts as unresolved.
        rate_of_benchmark=_unless_failed(report, stats.rate(len(report.resolved_ids), report.benchmark_size)),
        official_differs=sorted(row.task.instance_id for row in differing),
        statistics=aider_summary.build_statistics(report.measured, report.records, report.spent, report.benchmark_size),
        not_measured=report.not_measured,
        skipped=dict(report.skipped),
        void=report.void,
        by_language=_by_language(report),
        by_model=_by_model(report),
        by_format=rungs.by_format(found),
        by_model_and_format=rungs.by_model_and_format(found),
        ladder=rungs.ladder(report.records.values(), report.resolved_ids, report.rungs),
        economics=ladder_value.economics(measured, report.sources),
        picker=ladder_value.picker(measured),
        not_measured_attempts=_unmeasured_attempts(report),
        time=cases.sum_run_times(report.scored, report.records.values()),
        spent=report.spent,
        unsettled=report.unsettled,
        provenance=dict(report.provenance),
        aider=aider_summary.build(report.run, found, manifest),
        instances=[_instance(report, row, tries.get(row.task.instance_id)) for row in report.scored],
    )


def _unmeasured_attempts(report: Report) -> list[UnmeasuredAttempt]:
    return [
        UnmeasuredAttempt(instance_id=instance_id, number=each.number, reason=each.reason)
        for instance_id, own in sorted(report.judged.items())
        for each in own.values()
        if not each.outcome.measured
    ]


def _rate(report: Report) -> MeasuredRate:
    found = _unless_failed(report, rate(report.measured))
    again = any(len(record.all_results) > 1 for record in report.records.values())
    attempts = "2+" if again else "1"
    return MeasuredRate(**dataclasses.asdict(found), attempts=attempts, visible_is_hidden=report.visible_is_hidden)


def _unless_failed(report: Report, found: Rate) -> Rate:
    return stats.NO_RATE if report.agent_failed else found


def rate(rows: Sequence[ScoredRow]) -> Rate:
    return stats.rate(sum(row.verdict.resolved for row in rows), len(rows))


def totals(report: Report) -> Totals:
    families = Counter(row.verdict.outcome.family for row in report.scored)
    return Totals(
        selected=len(report.scored) + len(report.not_predicted) + len(report.skipped),
        resolved=families["resolved"],
        unresolved=families["unresolved"],
        not_measured=len(report.not_measured),
        skipped=len(report.skipped),
        void=len(report.void),
        calibrated=sum(row.calibrated for row in report.scored),
        tests=tests(report.measured),
    )


def _tamper(report: Report) -> TamperTotals:
    tampered = {row.task.instance_id for row in report.measured if row.verdict.outcome is Outcome.TAMPERED}
    rows = [row for row in report.measured if not row.tampering.clean or row.task.instance_id in tampered]
    return TamperTotals(
        tampered=len(tampered),
        touched=sum(bool(row.tampering.touched) for row in rows),
        changed=sum(bool(row.tampering.changed) for row in rows),
        suspicious=sum(bool(row.tampering.suspicious) for row in rows),
        resolved_clean=sum(row.verdict.resolved and row.tampering.clean for row in report.measured),
        review=sorted(row.task.instance_id for row in rows),
    )


def _by_language(report: Report) -> dict[str, LanguageRow]:
    rows = _grouped(report.measured, lambda row: row.task.language)
    return {language: LanguageRow(rate=rate(each), tests=tests(each)) for language, each in rows.items()}


def _grouped(rows: Iterable[ScoredRow], key: Callable[[ScoredRow], str]) -> dict[str, list[ScoredRow]]:
    return {name: list(own) for name, own in groupby(sorted(rows, key=key), key)}


def tests(rows: Sequence[ScoredRow]) -> StatusCounts:
    found = Counter(str(status) for row in rows for status in row.verdict.tests.values())
    return StatusCounts(total=found.total(), by_status={str(status): found[str(status)] for status in Status})


def _by_model(report: Report) -> dict[str, ModelRow]:
    """What each model was asked and brought; for foreign files, the rate by their own name."""
    if report.records:
        return rungs.by_model(report.records.values(), report.resolved_ids)
    groups = _grouped(report.measured, lambda row: row.model_name_or_path)
    return {name: ModelRow(rate=rate(rows)) for name, rows in groups.items()}


def _measured_cases(report: Report) -> list[Case]:
    """What phase 1 did about every task that phase 2 could measure; nothing for files made elsewhere."""
    found = (report.records.get(row.task.instance_id) for row in report.measured)
    return from_records((record for record in found if record), report.resolved_ids)


def group_member(listed: ListedRun, report: Report) -> GroupMember:
    """What is compared of this run with the others of its group."""
    return GroupMember(
        listed=listed,
        measured=tuple(_measured_cases(report)),
        not_measured=report.not_measured,
        skipped=report.skipped,
        void=report.void,
        spent=report.spent,
        patches={key: cases.chosen_patch(record) for key, record in report.records.items()},
        conditions={name: getattr(report.manifest, name) for name in CONDITIONS},
    )


def _instance(report: Report, row: ScoredRow, tries: TaskAttempts | None) -> InstanceRow:
    verdict, record = row.verdict, report.records.get(row.task.instance_id)
    attempts = record.all_results if record else ()
    passed = sum(status is Status.PASSED for status in verdict.tests.values())
    failed = sum(status in (Status.FAILED, Status.ERROR) for status in verdict.tests.values())
    return InstanceRow(
        instance_id=row.task.instance_id,
        resolved=verdict.resolved,
        resolved_official=verdict.official,
        tests_required=row.required.get("tests_required"),
        tests_required_passed=row.required.get("tests_required_passed"),
        exit_code=verdict.exit_code,
        stdout=verdict.stdout,
        stderr=verdict.stderr,
        tests_passed=passed,
        tests_failed=failed,
        tests_skipped=len(verdict.tests) - passed - failed,
        seconds=round(verdict.seconds, 3),
        outcome=verdict.outcome,
        reason=verdict.reason,
        proof=verdict.proof,
        applied_with=verdict.applied,
        dropped_paths=list(verdict.dropped),
        tamper=row.tampering,
        tests=dict(verdict.tests),
        language=row.task.language,
        void=row.void,
        calibrated=row.calibrated,
        canaries=row.canaries,
        cached=row.cached,
        model_name_or_path=row.model_name_or_path,
        model=record.model if record else None,
        edit_format=record.edit_format if record else None,
        plausible=record.plausible if record else None,
        unverified=record.unverified if record else None,
        number=record.number if record else None,
        tries=record.tries if record else None,
        cost=aider_summary.sum_cost(record),
        prompt_tokens=sum(each.prompt_tokens for each in attempts) if attempts else None,
        completion_tokens=sum(each.completion_tokens for each in attempts) if attempts else None,
        model_seconds=round(sum(each.model_seconds for each in attempts), 3) if attempts else None,
        turns_passed=list(attempts[0].tests_outcomes) if attempts else None,
        dname=record.dname or None if record else None,
        attempts=tries.attempts if tries else (),
    )
