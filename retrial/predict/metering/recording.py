"""A run of harness.py, to be played again from its journals: `-m replay:RUN`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from retrial.chat import CallId, Reply, Request
from retrial.errors import AttemptOver, ModelError, NotRecorded, OutOfMoney, OutOfTime, UsageError
from retrial.options import HarnessOptions, ModelChoice
from retrial.store import attempt_log, history
from retrial.store.attempt_log import RecordedAttempt, first_difference, question
from retrial.store.events import Replied
from retrial.store.history import find_run
from retrial.store.runs import Run
from retrial.system import paths
from retrial.types import Verdict

PREFIX = "replay:"
PAID = {"price": "0/0"}
"""What was replied once is free."""
_KEPT = 256
"""Tasks whose journals are held in memory, the last used ones."""


class Recording:
    """One run of harness.py, to be played again."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.manifest = history.identified(run)
        self._goes = lru_cache(maxsize=_KEPT)(self._read)

    @property
    def choices(self) -> tuple[ModelChoice, ...]:
        """The models of its ladder, as people would choose them."""
        names = self.manifest.setting("models")
        own = self.manifest.setting("model_options") or [{}] * len(names)
        return tuple(ModelChoice(name=name, overrides={**each, **PAID}) for name, each in zip(names, own, strict=True))

    def options(self) -> dict[str, Any]:
        """Its options as a configuration file would have them, as far as they make a run what it is."""
        known = {item.name for item in fields(HarnessOptions)}
        return {
            **{name: value for name, value in self.manifest.limits.items() if name in known},
            **{name: value for name, value in (self.manifest.identity or {}).items() if name in known},
            "name": self.manifest.setting("model_name_or_path"),
            "hide_editor_files": self.manifest.setting("editor_files") == "hidden",
            "task": self._tasks(),
        }

    def _tasks(self) -> list[str]:
        """All but those that it never came to."""
        begun = {path.stem for path in self.run.journal_paths()}
        return [task for task in self.manifest.selected if task in begun or self.run.has_prediction(task)]

    def has_replies(self) -> bool:
        journals = (self.run.journal(path.stem) for path in self.run.journal_paths())
        return any(isinstance(event, Replied) for journal in journals for event in journal.events())

    def reply(self, request: Request) -> Reply:
        """What was replied to this question at its place.

        Raises: NotRecorded when another question was asked there, or none; ModelError and AttemptOver as then.
        """
        place = request.place
        go = self._deciding(place)
        if go is None or place.call not in go.calls:
            raise self._end(go, place)
        call = go.calls[place.call]
        different = first_difference(call.question, question(request))
        if different:
            raise NotRecorded(f"{self._at(place)} was asked something else: {different}.")
        if call.reply is None:
            raise self._end(go, place)
        return replace(call.reply, recorded=True)

    def _read(self, instance_id: str) -> list[RecordedAttempt]:
        return attempt_log.read(self.run.journal(instance_id).events())

    def _deciding(self, place: CallId) -> RecordedAttempt | None:
        """The latest attempt of that number that says what became of the call."""
        found = [go for go in self._goes(place.instance_id) if go.number == place.attempt and go.knows(place.call)]
        return found[-1] if found else None

    def _end(self, go: RecordedAttempt | None, place: CallId) -> ModelError | AttemptOver:
        """Why there is no reply."""
        if go is None:
            return NotRecorded(f"{self._at(place)} was asked nothing, or its journal ends before the reply.")
        if go.over is not None:
            kind: type[AttemptOver] = OutOfMoney if go.over.kind == OutOfMoney.__name__ else OutOfTime
            return kind(go.over.reason)
        if go.error:
            return ModelError(go.error) if go.went_on else NotRecorded(go.error)
        lost = place.call in go.calls
        why = "has lost the reply: its journal is torn" if lost else "was asked nothing more: the attempt had ended"
        return NotRecorded(f"{self._at(place)} {why}.")

    def _at(self, place: CallId) -> str:
        return f"Task {place.instance_id}, attempt {place.attempt}, call {place.call}: run '{self.run.name}'"

    def verdicts(self, instance_id: str) -> dict[str, Verdict]:
        """What the visible check said, by its key; the last word counts."""
        return attempt_log.verdicts(self.run.journal(instance_id).events())


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
    history.read(run)
    recording = Recording(run)
    if not recording.has_replies():
        agent = recording.manifest.setting("agent")
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


class RecordedModel:
    """A model of a recorded run; answers what it answered then, at the same place."""

    def __init__(self, name: str, recording: Recording) -> None:
        self.name = name
        self._recording = recording

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when something else was asked at this place, or nothing."""
        return self._recording.reply(request)
