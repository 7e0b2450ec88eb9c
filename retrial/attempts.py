"""The values of phase 1: what an agent did in one attempt, and all attempts at one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from retrial.chat import Message, Usage
from retrial.types import Verdict

Facts: TypeAlias = Mapping[str, str | bool | list[str]]
"""What an agent says of itself, for run.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResult:
    """What an agent says of its own work: counted, never believed."""

    edit_outcome: bool
    """The last reply's edits were well formed and could be applied."""
    tests_outcomes: tuple[bool, ...] = ()
    """One for each turn made: did the visible tests pass after it?"""
    malformed: int = 0
    reflections: int = 0
    lazy_comments: int = 0
    syntax_errors: int = 0
    indentation_errors: int = 0
    test_timeouts: int = 0
    exhausted: int = 0
    faults: tuple[str, ...] = ()
    """What was wrong with each malformed reply, in order (`protocols.Fault`)."""
    user_asks: int = 0
    """Questions that an agent asked its user, all of them answered with yes."""
    spent: Usage = field(default_factory=Usage)
    """What an agent says it spent on its own, beside what it asked through us."""
    edit_format: str = ""
    """Which one it used, where that was for it to say."""
    error: str = ""
    """Of an agent that is a program: how it failed (exit code, timeout); empty when it ended with 0."""
    notes: tuple[str, ...] = ()
    chat: tuple[Message, ...] = ()
    """Of an agent that asks on its own: what was said. What is asked through us is in the journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One agent, one model, one go, from scratch."""

    number: int
    """1, 2, … over the whole ladder of this task."""
    round: int
    """Which try (one round over all models) it belongs to."""
    model: str
    edit_format: str
    seed: int
    temperature: float
    patch: str = ""
    """As read from the workspace, unfiltered."""
    counted: str = ""
    """The part of the patch that counts."""
    dropped: tuple[str, ...] = ()
    edit_outcome: bool = False
    lint_outcome: bool = False
    test_outcome: bool | None = False
    """None: there were no tests that could say anything."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    effort: AgentResult | None = None
    verdict: Verdict | None = None
    """The visible check of `counted`."""
    served: tuple[str, ...] = ()
    """Which models answered, as the provider names them."""
    left_out: tuple[str, ...] = ()
    """Parameters of the questions that the model would not take."""
    error: str = ""
    """Why this attempt could not be measured: our, the machine's or the provider's fault."""

    @property
    def plausible(self) -> bool:
        return bool(self.counted) and self.edit_outcome and self.lint_outcome and bool(self.test_outcome)

    @property
    def unverified(self) -> bool:
        """As good as it can be told to be, where tests say nothing; never counted as plausible."""
        return bool(self.counted) and self.edit_outcome and self.lint_outcome and self.test_outcome is None

    @property
    def rank(self) -> int:
        return rank(patch=bool(self.counted), edit=self.edit_outcome, lint=self.lint_outcome, test=self.test_outcome)


UNVERIFIED = 1
"""The rank of an edit that is as good as it can be told to be, where tests say nothing."""


def rank(*, patch: bool, edit: bool, lint: bool, test: bool | None) -> int:
    """0 is best: patch+edit+lint+test, then +unknown, patch+edit+lint, patch+lint, patch+edit, patch, anything."""
    if not patch:
        return 6
    if edit and lint:
        return 0 if test else UNVERIFIED if test is None else 2
    if lint:
        return 3
    return 4 if edit else 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """All attempts at one task, and the chosen patch."""

    instance_id: str
    model_name_or_path: str
    attempts: tuple[Attempt, ...]
    tries: int
    """How many rounds over all models were allowed."""
    not_measured: str = ""
    """Why the ladder's result may not be counted; empty when it may."""

    @property
    def chosen(self) -> Attempt:
        """The first plausible attempt, else an unverified one, else the least bad; of equals the earliest."""
        return min(self.attempts, key=lambda attempt: (attempt.rank, attempt.number))
