"""A task's journal, read back attempt by attempt: what was asked at each place, and what came of it.

Every go at a task (one process's, to its end or its death) begins an attempt, goes on with what an earlier go left of
it, or keeps it as it ended there. A question takes the place of the one that was asked there before, and of all that
came after that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from retrial.chat import Reply, ToolCall, Usage
from retrial.store import json_io
from retrial.store.events import DISCARDED, ENDED, KEPT, RESUMED, STARTED
from retrial.store.journal import Line
from retrial.store.json_io import fields_of
from retrial.types import Verdict

_AGAIN = (RESUMED, KEPT)
"""How an attempt begins that an earlier go has begun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One question and, if it came, its reply, as a journal has them."""

    question: Mapping[str, Any]
    reply: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAttempt:
    """One attempt as it was recorded."""

    number: int
    calls: Mapping[int, Call] = field(default_factory=dict)
    checks: frozenset[tuple[int, str]] = frozenset()
    """After which call, and the key."""
    over: Line | None = None
    """Where its time or its money ended it: the event that says so."""
    ended: Line | None = None
    """Of an attempt that came to its end: the event that says so."""
    went_on: bool = False
    """Another attempt followed: after some errors none does."""

    @property
    def result(self) -> Mapping[str, Any] | None:
        """An entry of `all_results`."""
        return self.ended["result"] if self.ended else None

    @property
    def error(self) -> str:
        return str(self.result["error"]) if self.result else ""

    @property
    def answered(self) -> int:
        return sum(call.reply is not None for call in self.calls.values())

    def knows(self, call: int) -> bool:
        """Whether it says what became of this call: a process that was killed leaves a question without an end."""
        replied = call in self.calls and self.calls[call].reply is not None
        return replied or self.over is not None or self.result is not None


def sound_lines(lines: Sequence[Line]) -> Sequence[Line]:
    """Those since the attempts before were discarded, if they were."""
    places = [place for place, line in enumerate(lines, start=1) if line["event"] == DISCARDED]
    return lines[places[-1] :] if places else lines


def split_by_attempt(lines: Iterable[Line]) -> list[list[Line]]:
    """The lines of each attempt, in the order of their beginnings; with those of earlier goes that still hold."""
    found: list[list[Line]] = []
    own: dict[tuple[object, object], list[Line]] = {}
    for line in lines:
        number = line.get("attempt")
        key = (line.get("go"), number)
        first = line if line["event"] in (STARTED, *_AGAIN) else None if key in own else _lost_beginning(line)
        if first is not None:
            own[key] = _begun(first, latest(found, number) if first["event"] in _AGAIN else [])
            found.append(own[key])
        if first is line:
            continue
        if key in own:
            _add(own[key], line)
        elif number is None and found:
            _add(found[-1], line)
    for attempt in found:
        # What was damaged and made again stands at the end of the journal.
        attempt.sort(key=lambda line: line.get("call", 0))
    return found


def _lost_beginning(line: Line) -> Line | None:
    """Of an attempt whose first line was damaged: the others are worth as much as ever."""
    told = line.get("request") or line.get("result")
    if told is None or "attempt" not in line:
        return None
    sampling = {"seed": told["seed"], "temperature": told["temperature"]}
    model = line.get("model") or told["model"]
    return {"event": RESUMED, "attempt": line["attempt"], "model": model, "sampling": sampling}


def latest(attempts: Iterable[list[Line]], number: object) -> list[Line]:
    """What is gone on with: of those with this number the last in which anything came back, else the last."""
    found = [lines for lines in attempts if lines[0].get("attempt") == number]
    telling = [lines for lines in found if any(line["event"] in ("reply", ENDED) for line in lines)]
    return (telling or found or [[]])[-1]


def _begun(line: Line, before: Sequence[Line]) -> list[Line]:
    if not before:
        return [line]
    return [each for each in before if line["event"] == KEPT or each["event"] not in (ENDED, "over")]


def _add(attempt: list[Line], line: Line) -> None:
    asked = max((each["call"] for each in attempt if each["event"] == "request"), default=0)
    # Journals of older runs do not number calls: there each request was the next.
    call = line.get("call", asked + (line["event"] == "request"))
    if line["event"] == "request":
        attempt[:] = [each for each in attempt if each.get("call", 0) < call]
    attempt.append({**line, "call": call})


def last_ladder(attempts: Sequence[list[Line]]) -> list[list[Line]]:
    """The attempts since a task was begun for the last time."""
    begun = [place for place, lines in enumerate(attempts) if lines[0].get("attempt") == 1]
    return list(attempts[begun[-1] if begun else 0 :])


def read(lines: Iterable[Line]) -> list[RecordedAttempt]:
    attempts = split_by_attempt(lines)
    return [recorded_attempt(own, after) for own, after in zip_longest(attempts, attempts[1:], fillvalue=())]


def recorded_attempt(lines: Sequence[Line], after: Sequence[Line] = ()) -> RecordedAttempt:
    """One attempt; `after` are the lines of the one that followed."""
    calls: dict[int, Call] = {}
    checks = set()
    over = ended = None
    for line in lines:
        match line["event"]:
            case "request":
                calls[line["call"]] = Call(question=line["request"])
            case "reply" if line["call"] in calls:
                calls[line["call"]] = replace(calls[line["call"]], reply=line["reply"])
            case "check":
                checks.add((line["call"], line["key"]))
            case "over":
                over = line
            case "attempt_ended":
                ended = line
    number = lines[0]["attempt"]
    went_on = bool(after) and after[0]["attempt"] == number + 1
    return RecordedAttempt(
        number=number, calls=calls, checks=frozenset(checks), over=over, ended=ended, went_on=went_on
    )


def verdicts(lines: Iterable[Line]) -> dict[str, Verdict]:
    """What the visible check said, by its key; the last word counts."""
    found = {}
    for line in lines:
        if line["event"] == "check" and "verdict" in line:
            # Of another version of ours: as if it were not there.
            with suppress(KeyError, TypeError, ValueError, AttributeError):
                found[line["key"]] = json_io.decode_verdict(line["verdict"])
    return found


def usage(data: Mapping[str, Any]) -> Usage:
    return Usage(**fields_of(Usage, data))


def reply(data: Mapping[str, Any]) -> Reply:
    """As it was before it was written."""
    calls = tuple(ToolCall(**fields_of(ToolCall, call)) for call in data["calls"])
    left_out = tuple(data.get("left_out", ()))
    return Reply(**{**fields_of(Reply, data), "calls": calls, "left_out": left_out, "usage": usage(data["usage"])})
