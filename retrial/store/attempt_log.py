"""A task's journal, read back attempt by attempt: what was asked at each place, and what came of it.

Every go at a task (one process's, to its end or its death) begins an attempt, goes on with what an earlier go left of
it, or keeps it as it ended there. A question takes the place of the one that was asked there before, and of all that
came after that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile, zip_longest

from retrial.chat import Message, Reply, Request, Sampling
from retrial.store.events import (
    AttemptBegun,
    AttemptEnded,
    AttemptKept,
    AttemptOver,
    AttemptResumed,
    AttemptsDiscarded,
    AttemptStarted,
    Event,
    Question,
    Replied,
    Requested,
    VisibleChecked,
)
from retrial.store.json_io import decode, to_fields, to_jsonl
from retrial.types import Verdict

Compared = tuple[str, str | None, str | None]
"""Where, the line then, the line now."""
PARTS = ("tools", "temperature", "seed", "max_tokens")
"""Of a question, what makes it besides its messages."""
_SHOWN = 60
_BEFORE = 20
"""Of a long line: so many characters, beginning so many before the first that differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One question and, if it came, its reply, as a journal has them."""

    question: Question
    reply: Reply | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEvents:
    """How an attempt began, and what followed; every event has the number of its call."""

    begun: AttemptBegun
    events: list[Event]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAttempt:
    number: int
    calls: Mapping[int, Call] = field(default_factory=dict)
    checks: frozenset[tuple[int, str]] = frozenset()
    """After which call, and the key."""
    over: AttemptOver | None = None
    """Where its time or its money ended it."""
    ended: AttemptEnded | None = None
    """Of an attempt that came to its end."""
    went_on: bool = False
    """Another attempt followed: after some errors none does."""

    @property
    def error(self) -> str:
        return self.ended.result.error if self.ended else ""

    @property
    def answered(self) -> int:
        return sum(call.reply is not None for call in self.calls.values())

    def knows(self, call: int) -> bool:
        """Whether it says what became of this call: a process that was killed leaves a question without an end."""
        replied = call in self.calls and self.calls[call].reply is not None
        return replied or self.over is not None or self.ended is not None


def after_discarded(events: Sequence[Event]) -> Sequence[Event]:
    """Those since the attempts before were discarded, if they were."""
    places = [place for place, event in enumerate(events, start=1) if isinstance(event, AttemptsDiscarded)]
    return events[places[-1] :] if places else events


def split_by_attempt(events: Iterable[Event]) -> list[AttemptEvents]:
    """The events of each attempt, in the order of their beginnings; with those of earlier goes that still hold."""
    found: list[AttemptEvents] = []
    own: dict[tuple[str | None, int | None], AttemptEvents] = {}
    for event in events:
        key = (event.go, event.attempt)
        begun = event if isinstance(event, AttemptBegun) else None if key in own else _lost_beginning(event)
        if begun is not None:
            own[key] = _begin(begun, found)
            found.append(own[key])
        if begun is event:
            continue
        if key in own:
            _add(own[key].events, event)
        elif event.attempt is None and found:
            _add(found[-1].events, event)
    for attempt in found:
        # What was damaged and made again stands at the end of the journal.
        attempt.events.sort(key=lambda event: event.call or 0)
    return found


def _lost_beginning(event: Event) -> AttemptBegun | None:
    """Of an attempt whose first line was damaged: the others are worth as much as ever."""
    match event:
        case Requested(attempt=int(number), request=told):
            model = event.model or ""
        case AttemptEnded(attempt=number, result=told):
            model = event.model or told.model
        case _:
            return None
    sampling = Sampling(temperature=told.temperature, seed=told.seed)
    return AttemptResumed(attempt=number, model=model, sampling=sampling)


def _begin(begun: AttemptBegun, found: Sequence[AttemptEvents]) -> AttemptEvents:
    before = None if isinstance(begun, AttemptStarted) else latest(found, begun.attempt)
    if before is None:
        return AttemptEvents(begun=begun, events=[])
    kept = isinstance(begun, AttemptKept)
    events = [each for each in before.events if kept or not isinstance(each, AttemptEnded | AttemptOver)]
    return AttemptEvents(begun=before.begun, events=events)


def latest(attempts: Iterable[AttemptEvents], number: int) -> AttemptEvents | None:
    """What is gone on with: of those with this number the last in which anything came back, else the last."""
    found = [attempt for attempt in attempts if attempt.begun.attempt == number]
    telling = [
        attempt for attempt in found if any(isinstance(event, Replied | AttemptEnded) for event in attempt.events)
    ]
    return (telling or found)[-1] if found else None


def _add(events: list[Event], event: Event) -> None:
    asked = max((each.call or 0 for each in events if isinstance(each, Requested)), default=0)
    if event.call is None:
        # Journals of older runs do not number calls: there each request was the next.
        event = replace(event, call=asked + isinstance(event, Requested))
    if isinstance(event, Requested):
        events[:] = [each for each in events if (each.call or 0) < (event.call or 0)]
    events.append(event)


def last_ladder(attempts: Sequence[AttemptEvents]) -> Sequence[AttemptEvents]:
    """The attempts since a task was begun for the last time."""
    begun = [place for place, attempt in enumerate(attempts) if attempt.begun.attempt == 1]
    return attempts[begun[-1] if begun else 0 :]


def read(events: Iterable[Event]) -> list[RecordedAttempt]:
    attempts = split_by_attempt(events)
    return [recorded_attempt(own, after) for own, after in zip_longest(attempts, attempts[1:])]


def recorded_attempt(attempt: AttemptEvents, after: AttemptEvents | None = None) -> RecordedAttempt:
    """One attempt; `after` is the one that followed."""
    calls: dict[int, Call] = {}
    checks = set()
    over = ended = None
    for event in attempt.events:
        call = event.call or 0
        match event:
            case Requested():
                calls[call] = Call(question=event.request)
            case Replied() if call in calls:
                calls[call] = replace(calls[call], reply=event.reply)
            case VisibleChecked():
                checks.add((call, event.key))
            case AttemptOver():
                over = event
            case AttemptEnded():
                ended = event
    number = attempt.begun.attempt
    went_on = after is not None and after.begun.attempt == number + 1
    return RecordedAttempt(
        number=number, calls=calls, checks=frozenset(checks), over=over, ended=ended, went_on=went_on
    )


def verdicts(events: Iterable[Event]) -> dict[str, Verdict]:
    """What the visible check said, by its key; the last word counts."""
    return {
        event.key: event.verdict for event in events if isinstance(event, VisibleChecked) and event.verdict is not None
    }


def question(request: Request) -> Question:
    """As a journal has it."""
    return decode(json.loads(to_jsonl(decode(request, Question))), Question)


def first_difference(then: Question, now: Question) -> str:
    """What differs first and how it was and is; empty when the questions are the same."""
    for where, old, new in _lines(then, now):
        if old != new:
            same = takewhile(lambda pair: pair[0] == pair[1], zip(old or "", new or "", strict=False))
            start = max(0, len(list(same)) - _BEFORE)
            return f"{where}: {_shown(old, start)} then, {_shown(new, start)} now"
    return ""


def _lines(then: Question, now: Question) -> Iterator[Compared]:
    """In the order in which people look for differences."""
    for number, (old, new) in enumerate(zip_longest(then.messages, now.messages), start=1):
        yield from _message_lines(f"message {number}", old, new)
    for name in PARTS:
        yield from _text_lines(name, _text(getattr(then, name)), _text(getattr(now, name)))


def _message_lines(where: str, old: Message | None, new: Message | None) -> Iterator[Compared]:
    if old is None or new is None:
        yield where, _summary(old), _summary(new)
        return
    yield f"{where}, role", old.role, new.role
    yield from _text_lines(f"{where} ({new.role})", old.content, new.content)
    yield from _text_lines(f"{where} ({new.role}), calls", _text(old.calls), _text(new.calls))
    yield from _text_lines(f"{where} ({new.role}), call_id", old.call_id, new.call_id)


def _text_lines(where: str, old: str, new: str) -> Iterator[Compared]:
    several = "\n" in old or "\n" in new
    for number, (before, after) in enumerate(zip_longest(old.split("\n"), new.split("\n")), start=1):
        yield f"{where}, line {number}" if several else where, before, after


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1, default=to_fields)


def _summary(message: Message | None) -> str | None:
    return None if message is None else f"{message.role}: {message.content}".partition("\n")[0]


def _shown(line: str | None, start: int) -> str:
    if line is None:
        return "nothing"
    part = line[start : start + _SHOWN]
    return f"'{'…' if start else ''}{part}{'…' if start + _SHOWN < len(line) else ''}'"
