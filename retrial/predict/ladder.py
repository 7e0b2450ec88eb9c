"""The ladder: for every try, for every model, a fresh workspace, until an attempt is plausible; else the least bad."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from retrial.attempts import AgentResult, Attempt, Prediction
from retrial.chat import Sampling
from retrial.errors import (
    AttemptOver,
    BudgetSpent,
    EnvironmentMissing,
    NotMeasured,
    NotRecorded,
    Overloaded,
    PatchError,
    Stopped,
    TreeError,
)
from retrial.grading.visible_check import Checked, VisibleCheck
from retrial.models.prices import Price
from retrial.options import ModelOptions
from retrial.patches.workspace import open_workspace
from retrial.predict.metering.model_session import ModelSession, TaskLedger
from retrial.predict.metering.resume import Resumed
from retrial.protocols import Agent, Model, Workspace
from retrial.store.events import AttemptEnded, AttemptKept, AttemptResumed, AttemptStarted
from retrial.store.records import attempt_record
from retrial.types import Outcome, Task, Verdict

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One model with the agent that uses it."""

    name: str
    """As on the command line, without the format."""
    model: Model
    agent: Agent
    edit_format: str
    price: Price | None
    options: ModelOptions
    spends: bool = False
    """The agent asks on its own, and says afterwards what that cost."""

    @property
    def unpriced(self) -> bool:
        """Whether what it costs is unknown for want of a price."""
        return self.price is None and not self.spends

    def sampling(self, go: int, seconds: float) -> Sampling:
        """The same question with the same seed is the same reply: a model's later goes must differ."""
        options = self.options
        return Sampling(
            temperature=options.temperature if go == 1 else options.retry_temperature,
            seed=options.seed + go - 1,
            max_tokens=options.max_tokens,
            seconds=seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    rungs: tuple[Rung, ...]
    tries: int
    seconds: float
    """For one attempt's agent."""
    name: str
    """model_name_or_path."""
    max_cost: float | None = None
    """USD for one task."""

    def steps(self) -> Iterator[Step]:
        """In order."""
        asked: Counter[Hashable] = Counter()
        rounds = [(round_, rung) for round_ in range(1, self.tries + 1) for rung in self.rungs]
        for number, (round_, rung) in enumerate(rounds, start=1):
            model = (rung.name, rung.options)
            asked[model] += 1
            yield Step(number=number, round=round_, rung=rung, sampling=rung.sampling(asked[model], self.seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt that is to be made."""

    number: int
    round: int
    rung: Rung
    sampling: Sampling

    @property
    def blank(self) -> Attempt:
        """The attempt before it is made."""
        return Attempt(
            number=self.number,
            round=self.round,
            model=self.rung.name,
            edit_format=self.rung.edit_format,
            seed=self.sampling.seed,
            temperature=self.sampling.temperature,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One attempt that was made, and whether it is the last."""

    attempt: Attempt
    last: bool
    asked: bool = True
    """False: there was no money to ask anything, which is no attempt."""


def solve(task: Task, ladder: Ladder, check: VisibleCheck, ledger: TaskLedger) -> Prediction:
    """Run all attempts at one task, resuming those that an earlier run left unfinished.

    Raises: Stopped, and else only for defects of our own: broken machinery is noted on the attempt.
    """
    attempts: list[Attempt] = []
    for step in ladder.steps():
        left = ledger.earlier.attempt(step.blank) if ledger.earlier else None
        made = _keep(step, left, ledger) or _make(step, left, task, check, ledger)
        if attempts and not made.asked:
            break
        attempts.append(made.attempt)
        if made.last or made.attempt.plausible or made.attempt.unverified:
            break
    return Prediction(
        instance_id=task.instance_id,
        model_name_or_path=ladder.name,
        attempts=tuple(attempts),
        tries=ladder.tries,
        not_measured=_not_measured(attempts),
    )


def _keep(step: Step, left: Resumed | None, ledger: TaskLedger) -> Made | None:
    """An attempt that ended in an earlier go, and was measured."""
    attempt = left.ended() if left else None
    if left is None or attempt is None:
        return None
    ledger.append(AttemptKept(attempt=step.number, model=step.rung.name, sampling=step.sampling))
    _LOG.info("kept an attempt that had ended", extra={"attempt": step.number})
    return Made(attempt=attempt, last=left.out_of_money)


def _make(step: Step, left: Resumed | None, task: Task, check: VisibleCheck, ledger: TaskLedger) -> Made:
    rung = step.rung
    answered = left.answered if left else 0
    begun = AttemptResumed if answered else AttemptStarted
    # What an agent spends on its own is not known before its end: that it was begun must be.
    begin = ledger.append if rung.spends else ledger.append_with_next
    begin(begun(attempt=step.number, model=rung.name, sampling=step.sampling, spends=rung.spends))
    if answered:
        _LOG.info("going on with an attempt", extra={"attempt": step.number, "answered": answered})
    session = ModelSession(rung.model, rung.price, step.sampling, ledger, step.number, left)
    attempt, fatal = _measure(step, task, session, check)
    asked = bool(session.usage.calls) or not session.out_of_money
    if not asked:
        # If it is the first, that is no answer.
        attempt = replace(step.blank, error=session.out_of_money)
    if asked or step.number == 1:
        _write_end(ledger, attempt)
    return Made(attempt=attempt, last=fatal or bool(session.out_of_money), asked=asked)


def _write_end(ledger: TaskLedger, attempt: Attempt) -> None:
    # Mostly all of a patch counts.
    counted = None if attempt.counted == attempt.patch else attempt.counted
    ledger.append(AttemptEnded(attempt=attempt.number, counted=counted, result=attempt_record(attempt)))


def _measure(step: Step, task: Task, session: ModelSession, check: VisibleCheck) -> tuple[Attempt, bool]:
    """One attempt from scratch, and whether to stop the ladder."""
    started = time.monotonic()
    try:
        with open_workspace(task.tree) as workspace:
            attempt = _edit_and_check(step, task, session, AttemptCheck(check, workspace, session))
    except Stopped:
        # No end of an attempt: it is gone on with.
        raise
    except NotMeasured as error:
        attempt = replace(step.blank, error=str(error) or type(error).__name__)
        # What the next attempt would meet too.
        fatal = isinstance(error, BudgetSpent | NotRecorded | TreeError | EnvironmentMissing | Overloaded)
    else:
        fatal = False
    seconds = time.monotonic() - started + session.replayed
    found = replace(attempt, usage=session.usage, served=session.served, left_out=session.left_out, seconds=seconds)
    return found, fatal


def _edit_and_check(step: Step, task: Task, session: ModelSession, check: AttemptCheck) -> Attempt:
    try:
        if step.rung.spends:
            session.check_budget()
        effort = step.rung.agent.solve(task, check.workspace, session, check)
        session.spend(effort.spent)
        session.show(effort.chat)
    except (AttemptOver, PatchError) as error:
        # The agent's own end: what it has by then counts.
        effort = AgentResult(edit_outcome=False, notes=(str(error),))
    # We read the patch and run the check ourselves: what the agent says of its success is only counted.
    patch = check.workspace.diff()
    checked = check.run(patch)
    verdict = checked.verdict
    return replace(
        step.blank,
        patch=patch,
        counted=checked.selection.patch,
        dropped=checked.selection.dropped,
        edit_outcome=effort.edit_outcome,
        edit_format=effort.edit_format or step.rung.edit_format,
        lint_outcome=not verdict.lint,
        test_outcome=None if verdict.outcome is Outcome.UNVERIFIED else verdict.resolved,
        effort=effort,
        verdict=verdict,
    )


class AttemptCheck:
    """The visible check of one attempt's workspace, as its agent sees it; every use is journalled."""

    def __init__(self, check: VisibleCheck, workspace: Workspace, session: ModelSession) -> None:
        self.workspace = workspace
        self._check, self._session = check, session

    def __call__(self) -> Verdict:
        started = time.monotonic()
        return self.run(self.workspace.diff(), started).verdict

    def run(self, patch: str, waiting_since: float | None = None) -> Checked:
        checked = self._check(patch)
        self._session.checked(checked, waited=0.0 if waiting_since is None else time.monotonic() - waiting_since)
        return checked


def _not_measured(attempts: list[Attempt]) -> str:
    """An edit that ended the ladder counts whatever else broke; without one, a broken attempt leaves it open."""
    broken = [attempt for attempt in attempts if attempt.error]
    if not broken or attempts[-1].plausible or attempts[-1].unverified:
        return ""
    return f"attempt {broken[-1].number} ({broken[-1].model}): {broken[-1].error}"
