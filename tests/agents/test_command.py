"""The `command` agent: what it makes of a program's end, of its words and of what it says it spent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from retrial.agents import command, prompts
from retrial.agents.command import read_usage
from retrial.attempts import AgentResult
from retrial.benchmarks.exercism import Exercism
from retrial.chat import Message, Reply, Tool, Usage
from retrial.errors import UsageError
from retrial.options import HarnessOptions
from retrial.patches.workspace import Folder, open_workspace
from retrial.protocols import AgentContext
from retrial.types import Outcome, Task, Verdict
from tests.parts import ready
from tests.support.exercises import write_exercise

FAILED = Verdict(outcome=Outcome.TESTS_FAILED, stdout="no")
PASSED = Verdict(outcome=Outcome.RESOLVED)


class Attempt:
    """A chat of which a program needs no more than the clock; over after so many tests."""

    name = "some/model"
    temperature = 0.7
    seed = 3

    def __init__(self, *verdicts: Verdict) -> None:
        self._verdicts = list(verdicts)
        self.over = False

    def check(self) -> Verdict:
        verdict = self._verdicts.pop(0)
        self.over = not self._verdicts
        return verdict

    def left(self) -> float:
        return 0.0 if self.over else 60.0

    def ask(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Reply:
        raise AssertionError("it asks on its own")

    def spend(self, usage: Usage) -> None: ...


@pytest.fixture
def task(tmp_path: Path) -> Task:
    ready("bwrap")
    (task,) = Exercism(write_exercise(tmp_path / "bench"), "here", 1).tasks()
    return task


@pytest.fixture
def workspace(task: Task) -> Iterator[Folder]:
    with open_workspace(task.tree) as folder:
        yield folder


def solve(task: Task, workspace: Folder, text: str, *verdicts: Verdict) -> AgentResult:
    agent = command.make(AgentContext(options=HarnessOptions(agent="command", command=text), model="some/model"))
    attempt = Attempt(*verdicts)
    return agent.solve(task, workspace, attempt, attempt.check)


@pytest.mark.real
def test_its_effort_is_what_was_seen_of_it(task: Task, workspace: Folder) -> None:
    text = 'echo "$RETRIAL_MODEL $RETRIAL_SEED"; $RETRIAL_TEST; $RETRIAL_TEST; exit 0'
    effort = solve(task, workspace, text, FAILED, PASSED, FAILED)
    assert (effort.edit_outcome, effort.tests_outcomes, effort.notes) == (True, (False, True), ())
    [message] = effort.chat
    assert (message.role, message.content) == ("assistant", "some/model 3\nno\n\n")
    assert effort.spent == Usage(cost=None)


@pytest.mark.real
def test_one_that_fails_is_noted_and_its_edit_stays(task: Task, workspace: Folder) -> None:
    effort = solve(task, workspace, "echo half >sum_up.py; exit 3")
    assert (effort.edit_outcome, effort.notes) == (False, ("the command exited with status 3",))
    assert "+half" in workspace.diff()


@pytest.mark.real
def test_one_whose_time_is_over_is_noted_and_its_edit_stays(task: Task, workspace: Folder) -> None:
    effort = solve(task, workspace, "echo half >sum_up.py; $RETRIAL_TEST; sleep 1000", FAILED)
    assert (effort.edit_outcome, effort.notes) == (False, ("the attempt timed out",))
    assert effort.tests_outcomes == (False,)
    assert "+half" in workspace.diff()


@pytest.mark.real
def test_tests_that_say_nothing_are_not_counted(task: Task, workspace: Folder) -> None:
    unknown = Verdict(outcome=Outcome.UNVERIFIED, reason="there are none")
    assert solve(task, workspace, "$RETRIAL_TEST; exit 0", unknown, PASSED).tests_outcomes == ()


@pytest.mark.real
@pytest.mark.parametrize("text", ["no-such-agent", " no-such-agent --yes; true", "/no/such/agent"])
def test_a_program_that_is_not_there_is_said_before_anything_runs(text: str, task: Task) -> None:
    with pytest.raises(UsageError, match=r"no program '(/no/such/agent|no-such-agent)'.*--agent-path"):
        command.make(AgentContext(options=HarnessOptions(agent="command", command=text)))


@pytest.mark.real
@pytest.mark.parametrize(
    "text",
    ["X=1 echo", "'echo' 1", "(echo)", "if true; then echo; fi", "cd /tmp && echo", "$SHELL", "./here || :", "! false",
     "# only words", "\n echo"],
)  # fmt: skip
def test_whatever_else_a_command_begins_with_is_for_the_shell_to_say(text: str, task: Task) -> None:
    command.make(AgentContext(options=HarnessOptions(agent="command", command=text)))


@pytest.mark.real
@pytest.mark.parametrize("code", [126, 127, 137])
def test_one_that_gives_up_is_measured_whatever_it_ends_with(code: int, task: Task, workspace: Folder) -> None:
    assert solve(task, workspace, f"exit {code}").notes == (f"the command exited with status {code}",)


@pytest.mark.parametrize(
    ("said", "usage", "problem"),
    [
        ({"cost": 0.5, "completion_tokens": 5}, Usage(cost=0.5, completion_tokens=5), ""),
        ({"prompt_tokens": 10}, Usage(cost=None, prompt_tokens=10), ""),
        ({"cost": 0}, Usage(cost=0), ""),
        ({}, Usage(cost=None), ""),
        ({"cost": -1}, Usage(cost=None), "usage.json has a cost that is no amount"),
        ({"cost": "1"}, Usage(cost=None), "usage.json has a cost that is no amount"),
        ({"cost": True}, Usage(cost=None), "usage.json has a cost that is no amount"),
        ({"cost": float("inf")}, Usage(cost=None), "usage.json has a cost that is no amount"),
        ({"cost": float("nan")}, Usage(cost=None), "usage.json has a cost that is no amount"),
        ({"cost": 10**400}, Usage(cost=None), "usage.json has a cost that is no amount"),
        ({"prompt_tokens": 10**400}, Usage(cost=None), "usage.json has a prompt_tokens that is no amount"),
        ({"prompt_tokens": 1.5}, Usage(cost=None), "usage.json has a prompt_tokens that is no amount"),
        ({"completion_tokens": -1}, Usage(cost=None), "usage.json has a completion_tokens that is no amount"),
        ([1], Usage(cost=None), "usage.json is not a JSON object"),
    ],
)  # fmt: skip
def test_what_it_says_it_spent_is_checked(said: object, usage: Usage, problem: str) -> None:
    assert read_usage({"usage.json": json.dumps(said).encode()}) == (usage, problem)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_an_unknown_cost(content: bytes) -> None:
    assert read_usage({"usage.json": content}) == (Usage(cost=None), "usage.json is not a JSON object")


def test_the_instructions_name_the_files_and_the_test_command(task: Task) -> None:
    text = prompts.instructions(task)
    assert text.startswith(task.problem_statement)
    assert "modify the supplied files: sum_up.py\n" in text
    assert "$RETRIAL_TEST" in text
