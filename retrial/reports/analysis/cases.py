"""Tasks with the attempts at them, which all else is counted from.

A `Case` is a task as one model, one edit format or one rung of a ladder met it; also the time that took. A
`TaskAttempts` has every attempt with its place in the ladder and what is known of its patch: the chosen one's verdict
is measured, the others' may follow from it, or be measured as well (`report.py --attempts`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median

from retrial.grading.canaries import ShownCanary
from retrial.grading.tamper_report import Tampering
from retrial.reports.analysis.stats import rounded, total
from retrial.store.json_io import NAMED_TRY
from retrial.store.records import AttemptSummary, PredictionSummary
from retrial.types import Outcome, Task, Verdict

SLOWEST = 5
REFUTED = (Outcome.TESTS_FAILED, Outcome.BUILD_FAILED, Outcome.PATCH_DID_NOT_APPLY, Outcome.TAMPERED)
"""What visible tests may say that the same tests would say again. Time may run out on a busy machine only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the official runner would have said of one instance."""

    completed: bool
    """The tests were started and came to an end, good or bad; nothing else has an official report."""
    resolved: bool
    failure: str
    """What it would take for the environment's fault."""
    sure: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    """One scored submission, as much of it as a report counts. The rest is in its logs, and no memory holds it."""

    task: Task
    model_name_or_path: str
    verdict: Verdict
    """As much of it as results.json has."""
    void: str
    calibrated: bool
    cached: bool
    finds_gold_file: bool
    """The patch edits or adds a file that the reference changes."""
    tampering: Tampering
    canaries: tuple[ShownCanary, ...]
    standing: Standing | None
    """In the official report, where the benchmark has one."""
    required: Mapping[str, int] = field(default_factory=dict)
    """Of a task that says which tests must pass: how many these are, and how many of them did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What attempts took, as results.json has it."""

    attempts: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost: float | None
    model_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTime:
    instance_id: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """`time` of results.json."""

    test_seconds: float
    median_test_seconds: float | None
    model_seconds: float | None
    slowest: tuple[TaskTime, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One task, with the attempts that are looked at."""

    instance_id: str
    attempts: tuple[AttemptSummary, ...]
    """At least one, in order."""
    chosen: int
    """Number of the attempt whose patch was chosen, whether or not it is among these."""
    resolved: bool
    """Whether that patch was measured and found right."""

    @property
    def first(self) -> AttemptSummary:
        return self.attempts[0]

    @property
    def brought(self) -> bool:
        """The chosen patch is of one of these attempts."""
        return any(attempt.number == self.chosen for attempt in self.attempts)

    @property
    def solved(self) -> bool:
        return self.resolved and self.brought

    @property
    def turns(self) -> Sequence[bool]:
        """Whether the first attempt passed, turn by turn; it never did if the acceptance tests say otherwise."""
        refuted = self.first.number == self.chosen and not self.resolved
        return [False] * len(self.first.tests_outcomes) if refuted else self.first.tests_outcomes


def from_records(records: Iterable[PredictionSummary], resolved: Collection[str]) -> list[Case]:
    """One for each prediction's record, with all of its attempts; `resolved` are ids."""
    return [
        Case(
            instance_id=record.instance_id,
            attempts=record.all_results,
            chosen=record.number,
            resolved=record.instance_id in resolved,
        )
        for record in records
    ]


def chosen_patch(record: PredictionSummary) -> str:
    """Its id."""
    return next((each.patch_id for each in record.all_results if each.number == record.number), "")


def split(found: Iterable[Case], name: Callable[[AttemptSummary], str]) -> dict[str, list[Case]]:
    """By what an attempt is called, in the order in which the names are met."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        for label in dict.fromkeys(map(name, case.attempts)):
            own = tuple(attempt for attempt in case.attempts if name(attempt) == label)
            groups.setdefault(label, []).append(replace(case, attempts=own))
    return groups


def answered(found: Iterable[Case]) -> list[Case]:
    """Without attempts that could not be measured: nobody's failure, so not to be counted as one."""
    left = ((case, tuple(attempt for attempt in case.attempts if not attempt.error)) for case in found)
    return [replace(case, attempts=attempts) for case, attempts in left if attempts]


def by_field(found: Iterable[Case], name: str) -> dict[str, list[Case]]:
    """By `model`, or by `edit_format`."""
    return dict(sorted(split(found, lambda attempt: getattr(attempt, name) or "none").items()))


def took(found: Iterable[Case]) -> Took:
    """Return what all these attempts took: every one is paid for, whatever its outcome."""
    attempts = [attempt for case in found for attempt in case.attempts]
    names = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    return Took(
        attempts=len(attempts),
        **{name: sum(getattr(attempt, name) for attempt in attempts) for name in names},
        cost=rounded(total(attempt.cost for attempt in attempts)),
        model_seconds=round(sum(attempt.model_seconds for attempt in attempts), 2),
    )


def sum_run_times(scored: Sequence[ScoredRow], records: Iterable[PredictionSummary]) -> RunTimes:
    """Return what tests and models took in a run.

    Tests that were not run took no time, and are left out of the median.
    """
    rows = sorted((row for row in scored if row.verdict.seconds), key=lambda row: -row.verdict.seconds)
    seconds = [row.verdict.seconds for row in rows]
    asked = [attempt.model_seconds for record in records for attempt in record.all_results]
    slowest = [(row.task.instance_id, round(row.verdict.seconds, 3)) for row in rows[:SLOWEST]]
    return RunTimes(
        test_seconds=round(sum(seconds), 3),
        median_test_seconds=round(median(seconds), 3) if seconds else None,
        model_seconds=round(sum(asked), 3) if asked else None,
        slowest=tuple(TaskTime(instance_id=name, seconds=each) for name, each in slowest),
    )


class How(StrEnum):
    """How a verdict on an attempt's patch is known."""

    SCORED = "scored"
    SAME_PATCH = "same patch"
    """As one that was scored."""
    VISIBLE = "visible is hidden"
    """The acceptance tests are those that it failed in phase 1."""
    EMPTY = "empty"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What scoring said of one patch."""

    outcome: Outcome
    reason: str = ""
    """Of what was not measured."""
    number: int = 0
    """Of the attempt that it was scored as."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LadderPosition:
    """Where in a ladder an attempt stands; they are sorted as they are climbed."""

    source: int
    """Of a run made of several: the ladder of which run. Each was climbed to its end."""
    round: int
    place: int
    """Among the models of the round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOutcome:
    """One attempt; results.json has the first eight of these."""

    number: int = field(metadata=NAMED_TRY)
    model: str
    edit_format: str
    plausible: bool
    cost: float | None
    outcome: Outcome | None
    resolved: bool | None
    """None is unknown."""
    how: How
    at: LadderPosition = field(repr=False)
    title: str = field(repr=False)
    unverified: bool = field(repr=False)
    rank: int = field(repr=False)
    """By the rule that chooses: 0 is best."""
    error: str = field(repr=False)
    """Why the attempt could not be measured, which is not a failure of the model."""

    @property
    def settled(self) -> bool:
        """It ends a ladder."""
        return self.plausible or self.unverified


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttempts:
    """All attempts at one task."""

    instance_id: str
    attempts: tuple[AttemptOutcome, ...]
    chosen: int
    """The number of the one whose patch was scored."""
    resolved: bool
    """That patch was."""

    @property
    def answered(self) -> tuple[AttemptOutcome, ...]:
        """Without attempts that could not be measured: they have no patch to pick."""
        return tuple(each for each in self.attempts if not each.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeResolver:
    """What all attempts of a run are looked at with."""

    visible_is_hidden: bool
    titles: Sequence[str] = ()
    """Of the rungs of the one ladder, in order; empty where there are several, or it is unknown."""
    sources: Sequence[str] = ()
    """Of a run made of several, in the order given."""
    judged: Mapping[str, Mapping[str, Judged]] = field(default_factory=dict)
    """What was scored beside the chosen patches: task → patch → verdict."""

    def tries(self, record: PredictionSummary, outcome: Outcome) -> TaskAttempts:
        """`outcome` is that of the chosen patch."""
        chosen = Judged(outcome=outcome, number=record.number)
        verdicts = {**self.judged.get(record.instance_id, {}), chosen_patch(record): chosen}
        found = zip(record.all_results, self._places(record.all_results), strict=True)
        return TaskAttempts(
            instance_id=record.instance_id,
            attempts=tuple(self._tried(attempt, at, verdicts) for attempt, at in found),
            chosen=record.number,
            resolved=outcome is Outcome.RESOLVED,
        )

    def _tried(self, attempt: AttemptSummary, at: LadderPosition, verdicts: Mapping[str, Judged]) -> AttemptOutcome:
        how, outcome = self._verdict(attempt, verdicts)
        return AttemptOutcome(
            number=attempt.number,
            at=at,
            title=self.titles[at.place] if at.place < len(self.titles) else attempt.title,
            model=attempt.model,
            edit_format=attempt.edit_format,
            plausible=attempt.plausible,
            unverified=attempt.unverified,
            rank=attempt.rank,
            cost=attempt.cost,
            error=attempt.error,
            resolved=None if how is How.UNKNOWN else outcome is Outcome.RESOLVED,
            outcome=outcome,
            how=how,
        )

    def _verdict(self, attempt: AttemptSummary, verdicts: Mapping[str, Judged]) -> tuple[How, Outcome | None]:
        if attempt.error:
            return How.UNKNOWN, Outcome.NOT_MEASURED
        if not attempt.patch_id:
            return How.EMPTY, Outcome.PATCH_EMPTY
        if (found := verdicts.get(attempt.patch_id)) and found.outcome.measured:
            return How.SCORED if found.number == attempt.number else How.SAME_PATCH, found.outcome
        if self.visible_is_hidden and not attempt.plausible and attempt.visible_outcome in REFUTED:
            return How.VISIBLE, Outcome(attempt.visible_outcome)
        return How.UNKNOWN, found.outcome if found else None

    def _places(self, attempts: Sequence[AttemptSummary]) -> Iterator[LadderPosition]:
        """The n-th of a round is the ladder's n-th; where two runs of one ladder were joined, the rounds go on."""
        before, last, place, source, highest = 0, 0, 0, None, 0
        for attempt in attempts:
            name = attempt.dname
            if name != source:
                before, last, source = (highest if self.titles else 0), 0, name
            # Runs of long ago do not say their rounds.
            round_ = before + (attempt.round or 1 + (attempt.number - 1) // max(1, len(self.titles)))
            place = place + 1 if round_ == last else 0
            last, highest = round_, max(highest, round_)
            run = self.sources.index(name) if not self.titles and name in self.sources else 0
            yield LadderPosition(source=run, round=round_, place=place)
