"""The events of a task's journal: what was asked and answered, checked and spent, and how attempts began and ended.

Fields are written in the order in which they stand here. Events of other versions are read as `Event`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from retrial.chat import CallId, Message, Reply, Sampling, Tool, Usage
from retrial.store.json_io import IF_GIVEN, decode, from_json
from retrial.store.records import AttemptRecord, with_number
from retrial.types import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What any line may say: which go at the task wrote it, and where in the task."""

    tag: ClassVar[str] = ""

    go: str | None = field(default=None, metadata=IF_GIVEN)
    attempt: int | None = field(default=None, metadata=IF_GIVEN)
    call: int | None = field(default=None, metadata=IF_GIVEN)
    model: str | None = field(default=None, metadata=IF_GIVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptBegun(Event):
    """How an attempt begins, in one of three ways."""

    attempt: int
    model: str
    sampling: Sampling
    spends: bool = field(default=False, metadata=IF_GIVEN)
    """Its agent spends on its own: if it was killed, the cost is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(AttemptBegun):
    """From scratch."""

    tag: ClassVar[str] = "attempt_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResumed(AttemptBegun):
    """With the replies that an earlier go left."""

    tag: ClassVar[str] = "attempt_resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptKept(AttemptBegun):
    """As it ended in an earlier go."""

    tag: ClassVar[str] = "attempt_kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request as a journal has it."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]
    temperature: float
    seed: int
    max_tokens: int
    timeout: float = 0.0
    place: CallId = field(default_factory=CallId)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested(Event):
    tag: ClassVar[str] = "request"

    reserved: float | None = 0.0
    """USD; None without a price."""
    request: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied(Event):
    tag: ClassVar[str] = "reply"

    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailed(Event):
    tag: ClassVar[str] = "failed"

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyLost(Event):
    """A reply did not arrive, or the line that had it is damaged: it may have been billed."""

    tag: ClassVar[str] = "lost"

    cost: float | None
    """The most that it can have cost; None if that is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpent(Event):
    tag: ClassVar[str] = "spent"

    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptOver(Event):
    """The attempt's time or the task's money ended it."""

    tag: ClassVar[str] = "over"

    kind: str
    """The name of the error."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleChecked(Event):
    tag: ClassVar[str] = "check"

    key: str
    verdict: Verdict | None = field(default=None, metadata=IF_GIVEN)
    """None when an earlier line has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChat(Event):
    """What an agent that asks on its own said and heard."""

    tag: ClassVar[str] = "agent_chat"

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Event):
    tag: ClassVar[str] = "attempt_ended"

    attempt: int
    counted: str | None = field(default=None, metadata=IF_GIVEN)
    """The part of the patch that counts; None when all of it does."""
    result: AttemptRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskNotMeasured(Event):
    tag: ClassVar[str] = "not_measured"

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptsDiscarded(Event):
    """All attempts before it: the agent did not work, and the task is done again."""

    tag: ClassVar[str] = "attempts_discarded"

    reason: str


_KINDS: Mapping[str, type[Event]] = {
    kind.tag: kind
    for kind in (
        *(AttemptStarted, AttemptResumed, AttemptKept, AttemptEnded, Requested, Replied, CallFailed, ReplyLost),
        *(AgentSpent, AttemptOver, VisibleChecked, AgentChat, TaskNotMeasured, AttemptsDiscarded),
    )
}


def parse(line: bytes, *, sealed: bool = True) -> Event:
    """Read a line of a journal. One without a checksum must say its cost, if it has one.

    Raises: ValueError.
    """
    try:
        value = from_json(line)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(value, dict) or not isinstance(value.get("event"), str):
        raise ValueError("it is no event")
    kind = _KINDS.get(value["event"], Event)
    if kind is AttemptEnded:
        value["result"] = with_number(value.get("result"))
    try:
        event = decode(value, kind)
    except ValueError:
        if kind is not VisibleChecked or not value.pop("verdict", None):
            raise
        # A verdict of another version is as good as none.
        return decode(value, kind)
    if not sealed and not _says_cost(event, value):
        raise ValueError("its cost is missing")
    return event


def _says_cost(event: Event, value: Any) -> bool:
    """Whether an event that has a cost says it: one that was lost to damage must not count as nothing."""
    match event:
        case Replied():
            return "cost" in value["reply"].get("usage", ())
        case AgentSpent():
            return "cost" in value["usage"]
    return True
