"""The ladder: for every try, for every model, a fresh workspace, until an attempt is plausible; else the least bad."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from retrial.attempts import AgentResult, Attempt, Prediction
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
from retrial.grading.visible_check import VisibleCheck
from retrial.models.prices import Price
from retrial.options import ModelOptions
from retrial.patches.workspace import open_workspace
from retrial.predict.metering.driver_service import TaskDriver
from retrial.predict.metering.metered_chat import MeteredChat, Sampling
from retrial.predict.metering.resume import Earlier, Resumed
from retrial.protocols import Agent, Model, Workspace
from retrial.store.events import ENDED, KEPT, RESUMED, STARTED
from retrial.store.predictions import attempt_record
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

    def steps(self) -> Iterator[tuple[int, Rung, Sampling]]:
        """(round, rung, how it asks), in order."""
        asked: Counter[Hashable] = Counter()
        for round_ in range(1, self.tries + 1):
            for rung in self.rungs:
                model = (rung.name, rung.options)
                asked[model] += 1
                yield round_, rung, rung.sampling(asked[model], self.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt of a ladder, and whether it is the last."""

    attempt: Attempt
    last: bool
    asked: bool = True
    """False: there was no money to ask anything, which is no attempt."""


def solve(task: Task, ladder: Ladder, check: VisibleCheck, driver: TaskDriver) -> Prediction:
    """All attempts at one task; what an earlier go left of them is gone on with.

    Raises: Stopped, and else only for defects of our own: broken machinery is noted on the attempt.
    """
    attempts: list[Attempt] = []
    earlier = Earlier(driver.lines())
    for number, (round_, rung, sampling) in enumerate(ladder.steps(), start=1):
        blank = Attempt(
            number=number,
            round=round_,
            model=rung.name,
            edit_format=rung.edit_format,
            seed=sampling.seed,
            temperature=sampling.temperature,
        )
        left = earlier.attempt(blank)
        step = _kept(left, driver, blank, sampling) or _step(task, rung, sampling, check, driver, blank, left)
        if attempts and not step.asked:
            break
        attempts.append(step.attempt)
        if step.last or step.attempt.plausible or step.attempt.unverified:
            break
    return Prediction(
        instance_id=task.instance_id,
        model_name_or_path=ladder.name,
        attempts=tuple(attempts),
        tries=ladder.tries,
        not_measured=_not_measured(attempts),
    )


def _kept(left: Resumed, driver: TaskDriver, blank: Attempt, sampling: Sampling) -> Step | None:
    """An attempt that ended in an earlier go, and was measured."""
    attempt = left.ended()
    if attempt is None:
        return None
    driver.append(KEPT, attempt=blank.number, model=blank.model, sampling=sampling)
    _LOG.info("kept an attempt that had ended", extra={"attempt": blank.number})
    return Step(attempt=attempt, last=left.out_of_money)


def _step(
    task: Task, rung: Rung, sampling: Sampling, check: VisibleCheck, driver: TaskDriver, blank: Attempt, left: Resumed
) -> Step:
    event = RESUMED if left.answered else STARTED
    # What an agent spends on its own is not known before its end: that it was begun must be.
    begin, spends = (driver.append, {"spends": True}) if rung.spends else (driver.append_with_next, {})
    begin(event, attempt=blank.number, model=rung.name, sampling=sampling, **spends)
    if left.answered:
        _LOG.info("going on with an attempt", extra={"attempt": blank.number, "answered": left.answered})
    chat = MeteredChat(rung.model, sampling, driver, rung.price, task.instance_id, blank.number, left)
    attempt, fatal = _attempt(task, rung, chat, check, blank)
    asked = bool(chat.usage.calls) or not chat.out_of_money
    if not asked:
        # If it is the first, that is no answer.
        attempt = replace(blank, error=chat.out_of_money)
    step = Step(attempt=attempt, last=fatal or bool(chat.out_of_money), asked=asked)
    if asked or blank.number == 1:
        _write_end(driver, attempt)
    return step


def _write_end(driver: TaskDriver, attempt: Attempt) -> None:
    # Mostly all of a patch counts.
    counted = {} if attempt.counted == attempt.patch else {"counted": attempt.counted}
    driver.append(ENDED, attempt=attempt.number, **counted, result=attempt_record(attempt))


def _attempt(task: Task, rung: Rung, chat: MeteredChat, check: VisibleCheck, blank: Attempt) -> tuple[Attempt, bool]:
    """One go from scratch, and whether to stop the ladder."""
    started = time.monotonic()
    try:
        with open_workspace(task.tree) as workspace:
            attempt = _go(task, rung, chat, workspace, check, blank)
    except Stopped:
        # No end of an attempt: it is gone on with.
        raise
    except NotMeasured as error:
        attempt = replace(blank, error=str(error) or type(error).__name__)
        # What the next attempt would meet too.
        fatal = isinstance(error, BudgetSpent | NotRecorded | TreeError | EnvironmentMissing | Overloaded)
    else:
        fatal = False
    seconds = time.monotonic() - started + chat.replayed
    return replace(attempt, usage=chat.usage, served=chat.served, left_out=chat.left_out, seconds=seconds), fatal


def _go(
    task: Task, rung: Rung, chat: MeteredChat, workspace: Workspace, check: VisibleCheck, blank: Attempt
) -> Attempt:
    def visible() -> Verdict:
        started = time.monotonic()
        verdict = check(workspace.diff(), chat.checked)[1]
        chat.wait(time.monotonic() - started)
        return verdict

    try:
        if rung.spends:
            chat.check()
        effort = rung.agent.solve(task, workspace, chat, visible)
        chat.spend(effort.spent)
        chat.show(effort.chat)
    except (AttemptOver, PatchError) as error:
        # The agent's own end: what it has by then counts.
        effort = AgentResult(edit_outcome=False, notes=(str(error),))
    # We read the patch and run the check ourselves: what the agent says of its success is only counted.
    patch = workspace.diff()
    selection, verdict = check(patch, chat.checked)
    return replace(
        blank,
        patch=patch,
        counted=selection.patch,
        dropped=selection.dropped,
        edit_outcome=effort.edit_outcome,
        edit_format=effort.edit_format or blank.edit_format,
        lint_outcome=not verdict.lint,
        test_outcome=None if verdict.outcome is Outcome.UNVERIFIED else verdict.resolved,
        effort=effort,
        verdict=verdict,
    )


def _not_measured(attempts: list[Attempt]) -> str:
    """An edit that ended the ladder counts whatever else broke; without one, a broken attempt leaves it open."""
    broken = [attempt for attempt in attempts if attempt.error]
    if not broken or attempts[-1].plausible or attempts[-1].unverified:
        return ""
    return f"attempt {broken[-1].number} ({broken[-1].model}): {broken[-1].error}"
