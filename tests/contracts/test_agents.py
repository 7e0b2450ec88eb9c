"""What every agent keeps to, run over every part in `retrial/agents/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrial import registry
from retrial.benchmarks.exercism import Exercism
from retrial.chat import Budget
from retrial.config import HarnessOptions
from retrial.phase1 import NoModel
from retrial.prices import Price
from retrial.protocols import Context, Model, Sandbox
from retrial.solve import Ladder, Rung, VisibleCheck, solve
from retrial.store import Journal
from retrial.types import Prediction, Reply, Request
from tests.exercises import RIGHT, reply, write_exercise

pytestmark = pytest.mark.real


class Parrot:
    """Always gives the right file; a model is any object that answers."""

    name = "parrot"

    def complete(self, request: Request) -> Reply:
        return Reply(text=reply(RIGHT))


def predict(name: str, folder: Path, sandbox: Sandbox) -> Prediction:
    benchmark = Exercism(write_exercise(folder / "bench"), "here", 1)
    (task,) = benchmark.tasks()
    module = registry.module("agents", name)
    context = Context(options=HarnessOptions(), benchmark=benchmark, edit_format="whole")
    model: Model = Parrot() if getattr(module, "ASKS_MODEL", True) else NoModel()
    rung = Rung(
        name="parrot",
        model=model,
        agent=module.make(context),
        edit_format="whole",
        price=Price(prompt=0.0, completion=0.0),
    )
    ladder = Ladder(
        rungs=(rung,), tries=1, seed=0, temperature=0, retry_temperature=0.7, max_tokens=99, seconds=60, name="x"
    )
    check = VisibleCheck(task, benchmark.visible(task.instance_id), sandbox)
    return solve(task, ladder, check, Journal(folder / "journal.jsonl"), Budget(None))


@pytest.mark.parametrize("name", registry.names("agents"))
def test_it_leaves_a_patch_or_none_and_never_raises(name: str, tmp_path: Path, bwrap: Sandbox) -> None:
    prediction = predict(name, tmp_path, bwrap)
    assert prediction.not_measured == ""
    assert len(prediction.attempts) == 1
    assert prediction.chosen.plausible == (name != "null")


@pytest.mark.parametrize("name", registry.names("agents"))
def test_its_attempt_is_the_same_twice(name: str, tmp_path: Path, bwrap: Sandbox) -> None:
    first = predict(name, tmp_path / "1", bwrap)
    second = predict(name, tmp_path / "2", bwrap)
    assert first.chosen.patch == second.chosen.patch
