"""What every agent keeps to, run over every part in `retrial/agents/`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from retrial import registry
from retrial.attempts import AgentResult, Prediction
from retrial.benchmarks.exercism import Exercism
from retrial.chat import Reply, Request
from retrial.errors import OutOfTime
from retrial.grading import verdict_cache
from retrial.grading.visible_check import VisibleCheck
from retrial.models.prices import Price
from retrial.options import HarnessOptions, ModelChoice
from retrial.predict.ladder import Ladder, Rung, solve
from retrial.predict.plan import NoModel
from retrial.protocols import Agent, AgentContext, Chat, Model, Sandbox, Workspace, WorkspaceCheck
from retrial.types import Task
from tests import parts
from tests.conftest import PROJECT
from tests.support.drivers import a_ledger
from tests.support.exercises import RIGHT, reply, write_exercise
from tests.support.servers import ChatServer
from tests.support.servers import reply as answer

pytestmark = pytest.mark.real


class Parrot:
    """Always says the same; a model is any object that answers."""

    name = "parrot"

    def __init__(self, said: str) -> None:
        self._said = said

    def complete(self, request: Request) -> Reply:
        return Reply(text=self._said)


def predict(module: ModuleType, folder: Path, sandbox: Sandbox, said: str = reply(RIGHT)) -> Prediction:
    benchmark = Exercism(write_exercise(folder / "bench"), "here", 1)
    (task,) = benchmark.tasks()
    model: Model = Parrot(said) if getattr(module, "MODEL", "asked") == "asked" else NoModel()
    check = VisibleCheck(benchmark, task, sandbox, verdict_cache.Verdicts(folder / "cache"))
    # Programs ask on their own, or do what they are told.
    with ChatServer([answer(said)]) as server:
        options = HarnessOptions(command="true", api_base=server.url)
        context = AgentContext(options=options, benchmark=benchmark, model="gpt-test", edit_format="whole")
        rung = Rung(
            name="parrot",
            model=model,
            agent=made(module, context),
            edit_format="whole",
            price=Price(prompt=0.0, completion=0.0),
            options=options.of(ModelChoice(name="parrot")),
        )
        ladder = Ladder(rungs=(rung,), tries=1, seconds=300, name="x")
        return solve(task, ladder, check, a_ledger(folder, task.instance_id))


def made(module: ModuleType, context: AgentContext) -> Agent:
    if module.__name__.endswith(".aider"):
        parts.aider()
    agent: Agent = module.make(context)
    return agent


@pytest.mark.smoke
@pytest.mark.parametrize("name", registry.names("agents"))
def test_it_leaves_a_patch_or_none_and_never_raises(name: str, tmp_path: Path, bwrap: Sandbox) -> None:
    prediction = predict(registry.module("agents", name), tmp_path, bwrap)
    assert prediction.not_measured == ""
    assert len(prediction.attempts) == 1
    assert prediction.chosen.verdict is not None


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "plausible"), [("edit", True), ("gold", True), ("null", False)])
def test_the_built_in_ones_do_what_they_are_for(name: str, plausible: bool, tmp_path: Path, bwrap: Sandbox) -> None:
    assert predict(registry.module("agents", name), tmp_path, bwrap).chosen.plausible is plausible


@pytest.mark.smoke
def test_the_agent_in_the_guide_works(tmp_path: Path, bwrap: Sandbox) -> None:
    guide = (PROJECT / "docs" / "adding-a-part.md").read_text(encoding="utf-8")
    part = ModuleType("guide")
    exec(guide.partition("```python\n")[2].partition("```")[0], part.__dict__)
    assert predict(part, tmp_path, bwrap, said=RIGHT).chosen.plausible


class Late:
    """Runs out of time after it has edited."""

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        workspace.write(task.editable[0], RIGHT.encode())
        raise OutOfTime("too late")


def test_what_an_agent_has_when_its_time_is_over_counts(tmp_path: Path, bwrap: Sandbox) -> None:
    part = ModuleType("late")
    part.__dict__["make"] = lambda context: Late()
    chosen = predict(part, tmp_path, bwrap).chosen
    assert "return a + b" in chosen.counted
    assert (chosen.test_outcome, chosen.edit_outcome, chosen.error) == (True, False, "")


@pytest.mark.parametrize("name", registry.names("agents"))
def test_its_attempt_is_the_same_twice(name: str, tmp_path: Path, bwrap: Sandbox) -> None:
    first = predict(registry.module("agents", name), tmp_path / "1", bwrap)
    second = predict(registry.module("agents", name), tmp_path / "2", bwrap)
    assert first.chosen.patch == second.chosen.patch
