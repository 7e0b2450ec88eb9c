"""Values of a chat: what a model is asked and replies, the edits that a reply asks for, and why a call is retried."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import partial
from typing import Protocol, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value as JSON has it."""
REFUSALS = 8
"""Refusals in a row, while no other call is served, after which a call is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFunction:
    name: str
    description: str
    parameters: Mapping[str, object]
    """A JSON schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that a model may call, in OpenAI's schema."""

    type: str = "function"
    function: ToolFunction


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
    """`system`, `user`, `assistant`, or `tool` for the result of a call."""
    content: str
    calls: tuple[ToolCall, ...] = ()
    """Of an assistant's message."""
    call_id: str = ""
    """Of a tool's message: which call it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallId:
    """Where in a run a question is asked."""

    instance_id: str = ""
    attempt: int = 0
    call: int = 0
    """1, 2, … within the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How one attempt asks."""

    temperature: float
    seed: int
    max_tokens: int = 0
    seconds: float = 0.0
    """For the whole attempt."""


class CallControl(Protocol):
    """What a model asks of its caller during a call."""

    def lose(self, again: bool) -> None:
        """Note a reply that did not arrive whole but may have been billed, and whether it is to be asked for again.

        Raises: BudgetSpent, OutOfMoney, if it is.
        """
        ...

    def next_try(self, trouble: Backoff) -> bool:
        """Wait after a failed try as long as it has to, and for a slot, which is not the call's time. False when there
        is no hope. Raises: Stopped."""
        ...

    def check_stop(self) -> None:
        """Asked by a model that has let a call wait, before it is begun. Raises: Stopped."""
        ...


class Unmetered:
    """The control of a call outside a run: nothing is counted, and no limiter hands out slots."""

    def lose(self, again: bool) -> None:
        return

    def next_try(self, trouble: Backoff) -> bool:
        if trouble.tries < REFUSALS:
            time.sleep(trouble.seconds)
        return trouble.tries < REFUSALS

    def check_stop(self) -> None:
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One question to a model, complete: the same request is the same question."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    temperature: float = 0.0
    seed: int = 0
    max_tokens: int = 8192
    timeout: float = 300.0
    """Seconds for the whole call with its retries; not part of the question."""
    place: CallId = CallId()
    """Not part of the question either."""
    control: CallControl = field(default=Unmetered(), repr=False, compare=False)

    def __reduce__(self) -> tuple[Callable[..., Request], tuple[()]]:
        """Pickle the question alone: its control is in this process."""
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
    """Of the completion's, those of hidden reasoning."""
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


def unknown_is_infinite(cost: float | None) -> float:
    """Return the cost, or infinity for one that is not known: it may be anything."""
    return math.inf if cost is None else float(cost)


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


class Overload(StrEnum):
    """What a failure says of how much was asked at once."""

    RATE = "rate"
    """Too much in too little time: refused for that alone."""
    STRAIN = "strain"
    """It could not be done, perhaps because there was too much else to do."""
    BROKEN = "broken"
    """It could not even be begun."""
    NONE = "none"
    """Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Why something has to be tried again."""

    load: Overload
    why: str
    """For people."""
    seconds: float = 0.0
    """Before the next try."""
    tries: int = 1
    """So far."""
    everybody: bool = False
    """The others are to wait as long: that is what was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The new content of one file."""

    path: str
    content: str | None
    """None: the file is to go."""


class Fault(StrEnum):
    """What can be wrong with a reply."""

    EMPTY = "empty"
    """It says nothing."""
    CUT_OFF = "cut_off"
    """It ended at its limit, before its edits did."""
    NO_EDIT = "no_edit"
    """It has words, but no edit."""
    MALFORMED = "malformed"
    """Its edits break the format's grammar."""
    BROKEN_CALL = "broken_call"
    """It calls no function that there is, or with arguments that are not what was asked for."""
    NO_NAME = "no_name"
    """It does not say which file an edit is for."""
    NO_MATCH = "no_match"
    """The lines to replace are not in the file."""
    AMBIGUOUS = "ambiguous"
    """The lines to replace are in the file several times."""
    NOT_ALLOWED = "not_allowed"
    """It edits what may not be edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What a reply asks for: all of its edits, or why it is malformed (then the text goes back to the model)."""

    edits: tuple[Edit, ...] = ()
    problem: str = ""
    fault: Fault | None = None
    """What kind of problem it is."""
