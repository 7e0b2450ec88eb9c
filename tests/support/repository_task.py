"""A task that is a whole repository, held in memory, and the built-in agent at work on it; no tests say anything."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retrial import registry
from retrial.agents import edit
from retrial.attempts import Attempt, Prediction
from retrial.chat import Reply, Request
from retrial.checks import Check
from retrial.grading import verdict_cache
from retrial.grading.visible_check import VisibleCheck
from retrial.options import HarnessOptions, ModelChoice
from retrial.predict.ladder import Ladder, Rung, solve
from retrial.protocols import AgentContext, Context
from retrial.types import Environment, Task
from tests.support.drivers import a_ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTree:
    content: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    """Path → git mode."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(sorted(self.content.items())).encode()).hexdigest()

    def files(self) -> Mapping[str, bytes]:
        return self.content

    def modes(self) -> Mapping[str, str]:
        return self.links

    def some(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        return {path: self.content[path] for path in paths if path in self.content}


def repository(files: Mapping[str, bytes], problem: str, links: Mapping[str, str] | None = None) -> Task:
    return Task(
        instance_id="retrial__repository-1",
        benchmark="here",
        language="python",
        problem_statement=problem,
        tree=MemoryTree(content=files, links=links or {}),
        environment=Environment(name="x", image="x:1", language="", tree="/testbed"),
        editable=(),
        whole_repository=True,
        protected_globs=("tests/*", "test_*.py"),
    )


class Scripted:
    """A model that answers as a function of what it is told; remembers all of it."""

    name = "scripted"

    def __init__(self, *answers: Callable[[str], str] | str) -> None:
        self._answers = list(answers)
        self.told: list[str] = []

    def complete(self, request: Request) -> Reply:
        self.told.append(request.messages[-1].content)
        answer = self._answers.pop(0)
        return Reply(text=answer if isinstance(answer, str) else answer(self.told[-1]))


def attempt(
    task: Task, model: Scripted, folder: Path, *, edit_format: str = "whole", map_tokens: int = 2048
) -> Attempt:
    """One go of the built-in agent, by the same road as in a run."""
    prediction = predict(task, model, folder, edit_format=edit_format, map_tokens=map_tokens)
    assert prediction.not_measured == ""
    return prediction.chosen


def predict(
    task: Task,
    model: Scripted,
    folder: Path,
    *,
    edit_format: str = "whole",
    map_tokens: int = 2048,
    tries: int = 1,
    tests: Callable[[], Check | str] = lambda: "there are no tests",
) -> Prediction:
    """All attempts of the built-in agent; `tests` chooses the visible ones."""

    class Tests:
        def visible(self, instance_id: str, edited: Iterable[str], most: int | None) -> Check | str:
            return tests()

    options = HarnessOptions(map_tokens=map_tokens)
    context = AgentContext(options=options, model=model.name, edit_format=edit_format)
    rung = Rung(
        name=model.name,
        model=model,
        agent=edit.make(context),
        edit_format=edit_format,
        price=None,
        options=options.of(ModelChoice(name=model.name)),
    )
    ladder = Ladder(rungs=(rung,), tries=tries, seconds=300, name="x")
    # Never asked: there are no tests.
    sandbox = registry.module("sandboxes", "bwrap").make(Context(options=options))
    check = VisibleCheck(Tests(), task, sandbox, verdict_cache.Verdicts(folder))  # type: ignore[arg-type]
    return solve(task, ladder, check, a_ledger(folder, task.instance_id))
