"""The real aider in its real cell, asked by a real server: what comes back to the model, and what to us."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.agents import aider
from retrial.agents.aider.install import Installation
from retrial.attempts import AgentResult
from retrial.errors import ModelError
from retrial.options import HarnessOptions
from retrial.patches.workspace import open_workspace
from retrial.protocols import AgentContext
from retrial.types import Task
from tests import parts
from tests.support.aider_parts import RIGHT, a_chat, a_task, verdict
from tests.support.servers import Answer, ChatServer, reply, status

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]


def whole(content: str) -> Answer:
    return reply(f"calc/core.py\n```\n{content}```\n")


def block(search: str, replacement: str) -> Answer:
    edit = f"<<<<<<< SEARCH\n{search}=======\n{replacement}>>>>>>> REPLACE\n"
    return reply(f"calc/core.py\n```python\n{edit}```\n")


@pytest.fixture(scope="module")
def installation() -> Installation:
    return parts.aider()


Solve = Callable[..., tuple[AgentResult, str]]


@pytest.fixture
def solve(tmp_path: Path, installation: Installation) -> Solve:
    """Runs the agent on a task, in its cell, as the ladder does; returns what it says and the patch."""

    def run(task: Task, url: str, edit_format: str = "whole", turns: int = 2) -> tuple[AgentResult, str]:
        harness = HarnessOptions(agent="aider", api_base=url, aider_python=installation.python, turns=turns)
        agent = aider.make(AgentContext(options=harness, model="gpt-test", edit_format=edit_format))
        with open_workspace(task.tree) as workspace:
            effort = agent.solve(task, workspace, a_chat(tmp_path), lambda: verdict(workspace))
            return effort, workspace.diff()

    return run


def test_malformed_replies_lint_errors_and_test_output_come_back_to_the_model(tmp_path: Path, solve: Solve) -> None:
    with ChatServer(
        [
            block("no such line\n", "x\n"),
            block("    pass\n", "    return undefined\n"),
            block("    return undefined\n", "    return a - b\n"),
            block("    return a - b\n", "    return a + b\n"),
        ]
    ) as server:
        effort, patch = solve(a_task(tmp_path), server.url, "diff")
    told = [asked.body["messages"][-1]["content"] for asked in server.requests]
    assert "failed to match" in told[1] and "undefined name" in told[2] and "1 + 2 is not 3" in told[3]
    assert (effort.malformed, effort.reflections, effort.tests_outcomes) == (1, 2, (False, True))
    assert (effort.edit_outcome, effort.edit_format, effort.spent.calls) == (True, "diff", 4)
    assert {asked.body["temperature"] for asked in server.requests} == {0.7}
    assert "+    return a + b" in patch and patch.count("diff --git") == 1


def test_in_a_repository_it_adds_the_files_that_are_named_and_nothing_of_its_own(tmp_path: Path, solve: Solve) -> None:
    repository = replace(a_task(tmp_path), whole_repository=True, editable=())
    with ChatServer([reply("I must see calc/core.py."), whole(RIGHT)]) as server:
        effort, patch = solve(repository, server.url)
    first, second = (json.dumps(asked.body["messages"]) for asked in server.requests)
    assert "calc/core.py" in first and "    pass" not in first
    assert "    pass" in second
    assert effort.tests_outcomes == (True,)
    assert patch.count("diff --git") == 1 and ".aider" not in patch


def test_a_context_that_is_too_long_is_the_models_own_failure(tmp_path: Path, solve: Solve) -> None:
    too_long = status(400, "This model's maximum context length is 8 tokens", code="context_length_exceeded")
    with ChatServer([too_long]) as server:
        effort, patch = solve(a_task(tmp_path), server.url, turns=1)
    assert (effort.exhausted, effort.edit_outcome, effort.tests_outcomes, patch) == (1, False, (False,), "")


def test_a_provider_that_cannot_be_reached_is_not_the_models_failure(tmp_path: Path, solve: Solve) -> None:
    with ChatServer() as server:
        url = server.url
    with pytest.raises(ModelError, match="could not be reached after 3 tries"):
        solve(a_task(tmp_path), url)
