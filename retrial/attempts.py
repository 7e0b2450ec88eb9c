"""The values of phase 1: what a model is asked and says, what an agent did, what came of one go and of all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial

from retrial.executors.adaptive import REFUSALS, Trouble
from retrial.types import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    name: str
    arguments: str
    """JSON, or what a model took for it."""
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a chat."""

    role: str
    """`system`, `user`, `assistant`, or `tool` for what came of a call."""
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message."""
    call_id: str = ""
    """Of a tool's message: which call it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a run a question is asked."""

    instance_id: str = ""
    attempt: int = 0
    call: int = 0
    """1, 2, … within the attempt."""


def _rest(trouble: Trouble) -> bool:
    """Where nobody gives turns."""
    if trouble.tries < REFUSALS:
        time.sleep(trouble.seconds)
    return trouble.tries < REFUSALS


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model, complete: the same request is the same question."""

    messages: tuple[Message, ...]
    tools: tuple[Mapping[str, object], ...] = ()
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int = 8192
    timeout: float = 300.0
    """Seconds for the whole call with its retries; not part of the question."""
    place: Place = Place()
    """Not part of the question either."""
    lost: Callable[[bool], None] = field(default=lambda again: None, repr=False, compare=False)
    """To be called for every reply that did not arrive whole but may have been billed, with whether it is to be asked
    for again. Raises: BudgetSpent, OutOfMoney, if it is."""
    next_try: Callable[[Trouble], bool] = field(default=_rest, repr=False, compare=False)
    """To be called when a try failed and another may follow: waits as long as it has to, and for a turn, which is not
    the call's time. False when there is no hope. Raises: Stopped."""
    still: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    """To be called by a model that has let a question wait, before it is begun. Raises: Stopped."""

    def __reduce__(self) -> tuple[Callable[..., Request], tuple[()]]:
        """Elsewhere it is the question alone: whom to call about it is here."""
        return partial(Request, **{each.name: getattr(self, each.name) for each in fields(self) if each.compare}), ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What calls took. A cost of None is unknown, never free; sums with it are unknown too."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Of the prompt's, those that the provider had at hand."""
    cache_write_tokens: int = 0
    """Of the prompt's, those that it put by."""
    reasoning_tokens: int = 0
    """Of the completion's, those that nobody sees."""
    cost: float | None = 0.0
    seconds: float = 0.0
    retries: int = 0
    """Calls that failed on the way."""

    def __add__(self, other: Usage) -> Usage:
        cost = None if self.cost is None or other.cost is None else self.cost + other.cost
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost=cost,
            seconds=self.seconds + other.seconds,
            retries=self.retries + other.retries,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    finish: str = "stop"
    """`length` when the reply was cut at max_tokens or at the context's end."""
    usage: Usage = Usage(calls=1)
    model: str = ""
    """Which one answered, as the provider says."""
    fingerprint: str = ""
    """Of the provider's set-up, where it tells."""
    left_out: tuple[str, ...] = ()
    """Parameters that this model refuses, so that it was asked without them."""
    recorded: bool = False
    """It comes from a run that is played again: its cost was paid there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
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
    spent: Usage = Usage()
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
    usage: Usage = Usage()
    seconds: float = 0.0
    effort: Effort | None = None
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
        """0 is best: patch+edit+lint+test, then +unknown, patch+edit+lint, patch+lint, patch+edit, patch, anything."""
        if not self.counted:
            return 6
        if self.edit_outcome and self.lint_outcome:
            return 0 if self.test_outcome else 1 if self.test_outcome is None else 2
        if self.lint_outcome:
            return 3
        return 4 if self.edit_outcome else 5


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
