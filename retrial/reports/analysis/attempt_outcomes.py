"""Every attempt that was made, with its place in the ladder and what is known of its patch: the chosen one's verdict is
measured, the others' may follow from it, or be measured as well (`report.py --attempts`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from retrial.store import history
from retrial.store.history import PredictionSummary
from retrial.types import Outcome

REFUTED = (Outcome.TESTS_FAILED, Outcome.BUILD_FAILED, Outcome.PATCH_DID_NOT_APPLY, Outcome.TAMPERED)
"""What visible tests may say that the same tests would say again. Time may run out on a busy machine only."""


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
    """One attempt."""

    number: int
    at: LadderPosition
    title: str
    model: str
    edit_format: str
    plausible: bool
    unverified: bool
    rank: int
    """By the rule that chooses: 0 is best."""
    cost: float | None
    error: str
    """Why the attempt itself came to nothing, which is nobody's failure."""
    resolved: bool | None
    """None is unknown."""
    outcome: str | None
    how: How

    @property
    def settled(self) -> bool:
        """It ends a ladder."""
        return self.plausible or self.unverified

    def record(self) -> dict[str, object]:
        """For results.json."""
        return {
            "try": self.number,
            "model": self.model,
            "edit_format": self.edit_format,
            "plausible": self.plausible,
            "cost": self.cost,
            "outcome": self.outcome,
            "resolved": self.resolved,
            "how": self.how,
        }


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
        """Without attempts that came to nothing through nobody's failure: there is no patch to pick."""
        return tuple(each for each in self.attempts if not each.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeResolver:
    """What all attempts of a run are looked at with."""

    visible_is_hidden: bool
    titles: Sequence[str] = ()
    """Of the rungs of the one ladder, in order; empty where there are several, or nobody knows."""
    sources: Sequence[str] = ()
    """Of a run made of several, in the order given."""
    judged: Mapping[str, Mapping[str, Judged]] = field(default_factory=dict)
    """What was scored beside the chosen patches: task → patch → verdict."""

    def tries(self, record: PredictionSummary, outcome: Outcome) -> TaskAttempts:
        """`outcome` is that of the chosen patch."""
        chosen: Mapping[str, Any] = next((each for each in record["all_results"] if each["try"] == record["try"]), {})
        verdicts = {
            **self.judged.get(record["instance_id"], {}),
            history.patch_id(chosen): Judged(outcome=outcome, number=record["try"]),
        }
        found = zip(record["all_results"], self._places(record["all_results"]), strict=True)
        return TaskAttempts(
            instance_id=record["instance_id"],
            attempts=tuple(self._tried(attempt, at, verdicts) for attempt, at in found),
            chosen=record["try"],
            resolved=outcome is Outcome.RESOLVED,
        )

    def _tried(self, attempt: Mapping[str, Any], at: LadderPosition, verdicts: Mapping[str, Judged]) -> AttemptOutcome:
        how, outcome = self._verdict(attempt, verdicts)
        return AttemptOutcome(
            number=attempt["try"],
            at=at,
            title=self.titles[at.place] if at.place < len(self.titles) else _title(attempt),
            model=attempt["model"],
            edit_format=attempt["edit_format"],
            plausible=attempt["plausible"],
            unverified=bool(attempt.get("unverified")),
            rank=history.rank(attempt),
            cost=attempt["cost"],
            error=attempt["error"],
            resolved=None if how is How.UNKNOWN else outcome is Outcome.RESOLVED,
            outcome=outcome,
            how=how,
        )

    def _verdict(self, attempt: Mapping[str, Any], verdicts: Mapping[str, Judged]) -> tuple[How, Outcome | None]:
        if attempt["error"]:
            return How.UNKNOWN, Outcome.NOT_MEASURED
        patch = history.patch_id(attempt)
        if not patch:
            return How.EMPTY, Outcome.PATCH_EMPTY
        if (found := verdicts.get(patch)) and found.outcome.measured:
            return How.SCORED if found.number == attempt["try"] else How.SAME_PATCH, found.outcome
        visible = history.visible_outcome(attempt)
        if self.visible_is_hidden and not attempt["plausible"] and visible in REFUTED:
            return How.VISIBLE, Outcome(visible)
        return How.UNKNOWN, found.outcome if found else None

    def _places(self, attempts: Sequence[Mapping[str, Any]]) -> Iterator[LadderPosition]:
        """The n-th of a round is the ladder's n-th; where two runs of one ladder were joined, the rounds go on."""
        before, last, place, source, highest = 0, 0, 0, None, 0
        for attempt in attempts:
            name = str(attempt.get("dname") or "")
            if name != source:
                before, last, source = (highest if self.titles else 0), 0, name
            round_ = before + self._round(attempt)
            place = place + 1 if round_ == last else 0
            last, highest = round_, max(highest, round_)
            yield LadderPosition(source=self._source(name), round=round_, place=place)

    def _round(self, attempt: Mapping[str, Any]) -> int:
        """Runs of long ago do not say it."""
        known = attempt.get("round")
        return known if isinstance(known, int) else 1 + (attempt["try"] - 1) // max(1, len(self.titles))

    def _source(self, name: str) -> int:
        return self.sources.index(name) if not self.titles and name in self.sources else 0


def _title(attempt: Mapping[str, Any]) -> str:
    return f"{attempt['model']}:{attempt['edit_format']}" if attempt["edit_format"] else str(attempt["model"])
