"""What a run's journals hold, read back: what was asked at each place and what came of it. For `-m replay:RUN`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import zip_longest
from typing import Any

from retrial import cache, past, paths
from retrial.attempts import Place, Reply, Request, ToolCall, Usage
from retrial.config import HarnessOptions, ModelChoice
from retrial.errors import AttemptOver, ModelError, NotRecorded, OutOfMoney, OutOfTime, UsageError
from retrial.questions import first_difference, question
from retrial.store import Run, find_run
from retrial.types import Verdict

Line = Mapping[str, Any]

PREFIX = "replay:"
PAID = {"price": "0/0"}
"""What was replied once is free."""
_OVER: Mapping[str, type[AttemptOver]] = {"OutOfTime": OutOfTime, "OutOfMoney": OutOfMoney}
_KEPT = 256
"""Tasks whose journals are held in memory, the last used ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One question and, if it came, its reply, as a journal has them."""

    question: Mapping[str, Any]
    reply: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """One attempt as it was recorded."""

    number: int
    calls: tuple[Call, ...]
    over: Line | None = None
    """Where its time or its money ended it: the event that says so."""
    result: Mapping[str, Any] | None = None
    """Of an attempt that came to its end: an entry of `all_results`."""
    went_on: bool = False
    """Another attempt followed: after some errors none does."""

    @property
    def error(self) -> str:
        return str(self.result["error"]) if self.result else ""

    def knows(self, call: int) -> bool:
        """Whether it says what became of this call: a process that was killed leaves a question without an end."""
        replied = call <= len(self.calls) and self.calls[call - 1].reply is not None
        return replied or self.over is not None or self.result is not None


def by_attempt(lines: Iterable[Line]) -> list[list[Line]]:
    """A journal cut before every attempt."""
    found: list[list[Line]] = []
    for line in lines:
        if line.get("event") == "attempt_started":
            found.append([])
        if found:
            found[-1].append(line)
    return found


def last_ladder(attempts: Sequence[list[Line]]) -> list[list[Line]]:
    """The attempts since a task was begun for the last time."""
    begun = [place for place, lines in enumerate(attempts) if lines[0].get("attempt") == 1]
    return list(attempts[begun[-1] if begun else 0 :])


def _go(lines: Sequence[Line], after: Sequence[Line]) -> Go:
    calls: list[Call] = []
    over = result = None
    for line in lines:
        match line.get("event"):
            case "request":
                calls.append(Call(question=line["request"]))
            case "reply" if calls:
                calls[-1] = replace(calls[-1], reply=line["reply"])
            case "over":
                over = line
            case "attempt_ended":
                result = line["result"]
    number = lines[0]["attempt"]
    went_on = bool(after) and after[0]["attempt"] == number + 1
    return Go(number=number, calls=tuple(calls), over=over, result=result, went_on=went_on)


class Recording:
    """One run of harness.py, to be played again."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.stored = run.config()
        self.identity = past.identity(run, self.stored)
        self._goes = lru_cache(maxsize=_KEPT)(self._read)

    @property
    def choices(self) -> tuple[ModelChoice, ...]:
        """The models of its ladder, as people would choose them."""
        names = self.identity["models"]
        own = self.identity.get("model_options") or [{}] * len(names)
        return tuple(ModelChoice(name=name, own={**each, **PAID}) for name, each in zip(names, own, strict=True))

    def options(self) -> dict[str, Any]:
        """Its options as a configuration file would have them, as far as they make a run what it is."""
        known = {item.name for item in fields(HarnessOptions)}
        return {
            **{name: value for name, value in self.stored.get("limits", {}).items() if name in known},
            **{name: value for name, value in self.identity.items() if name in known},
            "name": self.identity["model_name_or_path"],
            "hide_editor_files": self.identity.get("editor_files") == "hidden",
            "task": self._tasks(),
        }

    def _tasks(self) -> list[str]:
        """All but those that it never came to."""
        begun = {path.stem for path in self.run.journal_paths()}
        return [task for task in self.stored["selected"] if task in begun or self.run.has_prediction(task)]

    def has_replies(self) -> bool:
        journals = (self.run.journal(path.stem) for path in self.run.journal_paths())
        return any(line.get("event") == "reply" for journal in journals for line in journal.lines())

    def reply(self, request: Request) -> Reply:
        """What was replied to this question at its place.

        Raises: NotRecorded when another question was asked there, or none; ModelError and AttemptOver as then.
        """
        place = request.place
        go = self._deciding(place)
        if go is None or place.call > len(go.calls):
            raise self._end(go, place)
        call = go.calls[place.call - 1]
        different = first_difference(call.question, question(request))
        if different:
            raise NotRecorded(f"{self._at(place)} was asked something else: {different}.")
        if call.reply is None:
            raise self._end(go, place)
        return _reply(call.reply)

    def _read(self, instance_id: str) -> list[Go]:
        attempts = by_attempt(self.run.journal(instance_id).lines())
        return [_go(lines, after) for lines, after in zip_longest(attempts, attempts[1:], fillvalue=())]

    def _deciding(self, place: Place) -> Go | None:
        """The latest attempt of that number that says what became of the call."""
        found = [go for go in self._goes(place.instance_id) if go.number == place.attempt and go.knows(place.call)]
        return found[-1] if found else None

    def _end(self, go: Go | None, place: Place) -> ModelError | AttemptOver:
        """Why there is no reply."""
        if go is None:
            return NotRecorded(f"{self._at(place)} was asked nothing, or its journal ends before the reply.")
        if go.over is not None:
            return _OVER[go.over["kind"]](go.over["reason"])
        if go.error:
            return ModelError(go.error) if go.went_on else NotRecorded(go.error)
        lost = place.call <= len(go.calls)
        why = "has lost the reply: its journal is torn" if lost else "was asked nothing more: the attempt had ended"
        return NotRecorded(f"{self._at(place)} {why}.")

    def _at(self, place: Place) -> str:
        return f"Task {place.instance_id}, attempt {place.attempt}, call {place.call}: run '{self.run.name}'"

    def verdicts(self, instance_id: str) -> dict[str, Verdict]:
        """What the visible check said, by its key; the last word counts."""
        found = {}
        for line in self.run.journal(instance_id).lines():
            if line.get("event") == "check" and "verdict" in line:
                # Of another version of ours: as if it were not there.
                with suppress(KeyError, TypeError, ValueError):
                    found[line["key"]] = cache.verdict(line["verdict"])
        return found


def named(models: Iterable[str]) -> Recording | None:
    """The run that `-m replay:RUN` names; None where no model does.

    Raises: UsageError when there is no such run, or nothing to play in it.
    """
    names = list(models)
    text = next((name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)), None)
    if text is None:
        return None
    if len(names) > 1:
        raise UsageError(f"-m {PREFIX}{text} stands alone: it brings the models of the recorded run.")
    run = find_run(paths.home(), text) if text else None
    if run is None:
        raise UsageError(f"-m {PREFIX}RUN needs a run of harness.py, and '{text}' is none.")
    past.read(run)
    recording = Recording(run)
    if not recording.has_replies():
        agent = recording.identity.get("agent")
        raise UsageError(f"Run '{run.name}' (agent {agent}) has no replies in its journals: there is nothing to play.")
    return recording


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
    """With `-m replay:RUN`, the options of that run in place of those that are not given.

    Raises: UsageError as `named` does.
    """
    chosen = given.get("model") or []
    models = chosen if isinstance(chosen, list) else [chosen]
    recording = named(str(each.get("name") if isinstance(each, dict) else each) for each in models)
    if recording is None:
        return dict(given)
    if given.get("edit_format"):
        raise UsageError("--edit-format does not go with -m replay:RUN: its models bring theirs.")
    return {**recording.options(), **given}


def _reply(data: Mapping[str, Any]) -> Reply:
    calls = tuple(ToolCall(**call) for call in data["calls"])
    left_out = tuple(data.get("left_out", ()))
    return Reply(**{**data, "calls": calls, "left_out": left_out, "usage": Usage(**data["usage"]), "recorded": True})
