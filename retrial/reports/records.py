"""results.json as values: what is counted is a field here, and is written in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retrial import __version__
from retrial.chat import Usage
from retrial.grading.canaries import ShownCanary
from retrial.grading.tamper_report import Tampering
from retrial.reports.analysis.aider_summary import AiderSummary, Statistics
from retrial.reports.analysis.cases import AttemptOutcome, RunTimes
from retrial.reports.analysis.ladder_value import LadderValue, PickQuality
from retrial.reports.analysis.repeats import Flakiness, Together
from retrial.reports.analysis.rungs import Columns, FormatRow, LadderRow, ModelRow, SideBySide
from retrial.reports.analysis.stats import MeasuredRate, Rate
from retrial.store.json_io import EMPTY, FLAT, IF_GIVEN, NAMED_TRY
from retrial.store.manifest import MergedShards
from retrial.types import Outcome, Status

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TamperTotals:
    """How many patches reached for what they may not, and which a person should look at."""

    tampered: int
    touched: int
    changed: int
    suspicious: int
    resolved_clean: int
    review: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCounts:
    """How many tests ran, by status: none is left out silently."""

    total: int
    by_status: Mapping[str, int] = field(metadata=FLAT)

    @property
    def passed(self) -> int:
        return self.by_status[Status.PASSED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    selected: int
    resolved: int
    unresolved: int
    not_measured: int
    skipped: int
    void: int
    calibrated: int
    tests: StatusCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRow:
    rate: Rate = field(metadata=FLAT)
    tests: StatusCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmeasuredAttempt:
    instance_id: str
    number: int = field(metadata=NAMED_TRY)
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    instance_id: str
    resolved: bool
    resolved_official: bool | None
    tests_required: int | None = field(default=None, metadata=IF_GIVEN)
    """Where the task says which tests must pass: how many these are."""
    tests_required_passed: int | None = field(default=None, metadata=IF_GIVEN)
    exit_code: int | None
    stdout: str
    stderr: str
    tests_passed: int
    tests_failed: int
    tests_skipped: int
    seconds: float
    outcome: Outcome
    reason: str
    proof: str
    applied_with: str
    dropped_paths: list[str]
    tamper: Tampering
    tests: Mapping[str, Status]
    language: str
    void: str
    calibrated: bool
    canaries: tuple[ShownCanary, ...]
    cached: bool
    model_name_or_path: str
    model: str | None
    """This and what follows only phase 1 knows."""
    edit_format: str | None
    plausible: bool | None
    unverified: bool | None
    number: int | None = field(metadata=NAMED_TRY)
    """Of the attempt whose patch was chosen."""
    tries: int | None
    cost: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    model_seconds: float | None
    turns_passed: list[bool] | None
    dname: str | None
    attempts: tuple[AttemptOutcome, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    lists: Mapping[str, Sequence[str]] = field(metadata=FLAT)
    """The ten lists of the original report, of ids."""
    schema: int = SCHEMA
    run: str
    shards: MergedShards | None = field(default=None, metadata=IF_GIVEN)
    benchmark: str
    visible_tests: str | None
    prior: list[str]
    agent_isolated: bool | None
    agent_failed: str | None
    tamper: TamperTotals
    totals: Totals
    rate: MeasuredRate
    rate_calibrated: Rate
    rate_of_benchmark: Rate
    official_differs: list[str]
    """Where our verdict is not that of the benchmark's own grading."""
    statistics: Statistics
    not_measured: Mapping[str, str]
    skipped: Mapping[str, str]
    void: Mapping[str, str]
    by_language: Mapping[str, LanguageRow]
    by_model: Mapping[str, ModelRow]
    by_format: Mapping[str, Columns]
    by_model_and_format: list[FormatRow]
    ladder: list[LadderRow]
    economics: LadderValue | None = field(metadata=EMPTY)
    picker: PickQuality | None = field(metadata=EMPTY)
    not_measured_attempts: list[UnmeasuredAttempt]
    time: RunTimes
    spent: Usage
    unsettled: float | None
    provenance: Mapping[str, Any]
    """What the benchmark, the sandbox and the environments say of themselves."""
    aider: AiderSummary | None = field(metadata=EMPTY)
    instances: list[InstanceRow]
    repeats: Flakiness | None = field(default=None, metadata=IF_GIVEN)
    """What scoring it several times showed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResults:
    """results.json of runs that belong together: the cells of a grid, or repeats."""

    schema: int = SCHEMA
    kind: str
    run: str
    command: str
    identity: Mapping[str, Any]
    """As the group's run.json has it."""
    found: SideBySide | Together = field(metadata=FLAT)
    selection: list[str]
    retrial: str = __version__
