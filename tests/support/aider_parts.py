"""What tests of the agent aider share: a task, a chat that pays, a check."""

from __future__ import annotations

from pathlib import Path

from retrial.benchmarks.exercism.exercise import FolderTree
from retrial.chat import Sampling
from retrial.models.prices import Price
from retrial.predict.metering.model_session import ModelSession
from retrial.predict.plan import NoModel
from retrial.protocols import Workspace
from retrial.types import Environment, Outcome, Task, Verdict
from tests.support.drivers import a_ledger

STUB = "def add(a, b):\n    pass\n"
RIGHT = "def add(a, b):\n    return a + b\n"


def a_task(folder: Path) -> Task:
    """A small tree in `folder`, whose `add` does not add."""
    tree = {"calc/core.py": STUB, "calc/other.py": "class Other:\n    '''Uses nothing.'''\n", "README.md": "# calc\n"}
    for path, content in tree.items():
        (folder / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "tree" / path).write_text(content, encoding="utf-8")
    return Task(
        instance_id="calc-1",
        benchmark="calc",
        language="python",
        problem_statement="/add does not add. See https://example.com/the-answer",
        tree=FolderTree(root=folder / "tree", paths=tuple(tree)),
        environment=Environment(name="x", image="x:1", language=""),
        editable=("calc/core.py",),
    )


def a_chat(folder: Path) -> ModelSession:
    sampling = Sampling(temperature=0.7, seed=1, max_tokens=99, seconds=300.0)
    return ModelSession(NoModel("gpt-test"), Price(prompt=1, completion=1), sampling, a_ledger(folder, "x"), 1)


def verdict(workspace: Workspace) -> Verdict:
    right = workspace.read("calc/core.py") == RIGHT.encode()
    return Verdict(
        outcome=Outcome.RESOLVED if right else Outcome.TESTS_FAILED, stdout="" if right else "1 + 2 is not 3"
    )
