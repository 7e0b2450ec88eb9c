"""Any program: a shell command that edits the workspace in a cell of its own, with our test client beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from retrial.agents import isolation, prompts
from retrial.agents.isolation import AgentCommand, AgentExit, Isolation
from retrial.agents.isolation.runner import on_no_task
from retrial.attempts import AgentResult, Facts
from retrial.chat import Message, Usage
from retrial.errors import NotMeasured, UsageError
from retrial.protocols import AgentContext, Chat, Workspace, WorkspaceCheck
from retrial.types import Outcome, Task, Verdict

MODEL = "named"
SPENDS = True
PROMPTS = (prompts.TASK, prompts.WHOLE_REPOSITORY, prompts.READ_ONLY, prompts.ON_ITS_OWN)
"""Part of a run's identity."""
USAGE = "usage.json"
LAST_LINE = 300
"""Characters of a program's output in a sentence."""
COUNTS = ("prompt_tokens", "completion_tokens")
MOST = 1e12
"""Of anything that a program says it spent; more is a slip or a lie, and cannot be added up."""
_PLAIN_WORD = re.compile(r"\s*([\w.+-]+|/[\w./+-]+)(?=\s|$)")
"""What a command begins with, where that says which program it is."""


class CommandAgent:
    def __init__(self, command: str, model: str, cell: Isolation) -> None:
        self._command, self._model, self._cell = command, model, cell

    def describe(self) -> Facts:
        return {"name": "command", "command": self._command, **self._cell.describe()}

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        verdicts: list[Verdict] = []

        def test() -> Verdict:
            verdicts.append(check())
            return verdicts[-1]

        errand = AgentCommand(
            command=("/bin/sh", "-c", self._command),
            environment={"RETRIAL_MODEL": self._model, "RETRIAL_SEED": str(model.seed)},
            files={"prompt.md": prompts.instructions(task).encode()},
        )
        ran = self._cell.run(errand, workspace, test, model.left)
        spent, problem = read_usage(ran.results)
        return AgentResult(
            edit_outcome=ran.exit_code == 0,
            tests_outcomes=tuple(each.resolved for each in verdicts if each.outcome is not Outcome.UNVERIFIED),
            test_timeouts=sum(each.outcome is Outcome.TIMED_OUT for each in verdicts),
            spent=spent,
            error=_error(ran),
            notes=tuple(note for note in (_ending(ran), problem) if note),
            chat=(Message(role="assistant", content=ran.output),),
        )


def make(context: AgentContext) -> CommandAgent:
    """Raises: UsageError."""
    if not context.options.command:
        raise UsageError("Agent 'command' runs a command of yours: give it with --command 'CMD'.")
    cell = isolation.choose(context.options)
    _refuse_missing(context.options.command, cell)
    return CommandAgent(context.options.command, context.model, cell)


def _refuse_missing(command: str, cell: Isolation) -> None:
    """Before anything runs: later, a shell that finds no program and a program that gives up end with the same code.

    Raises: UsageError when the program that the command begins with cannot be run in the cell.
    """
    word = _PLAIN_WORD.match(command)
    try:
        if word and on_no_task(cell, ("/bin/sh", "-c", 'command -v "$1"', "sh", word[1]))[0].exit_code:
            raise UsageError(f"--command: there is no program '{word[1]}' where the agent runs: see --agent-path.")
    except NotMeasured as error:
        raise UsageError(f"Agent 'command' cannot be run: {error}") from error


def read_usage(results: Mapping[str, bytes]) -> tuple[Usage, str]:
    """What a program says it spent, unknown where it does not; and what is wrong with how it says it."""
    if USAGE not in results:
        return Usage(cost=None), ""
    try:
        said = json.loads(results[USAGE])
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return Usage(cost=None), f"{USAGE} is not a JSON object"
    cost, tokens = said.get("cost"), {name: said.get(name, 0) for name in COUNTS}
    wrong = [name for name, count in tokens.items() if not (type(count) is int and 0 <= count <= MOST)]
    if cost is not None and not (type(cost) in (int, float) and 0 <= cost <= MOST):
        wrong.append("cost")
    if wrong:
        return Usage(cost=None), f"{USAGE} has a {wrong[0]} that is no amount"
    return Usage(cost=cost, **tokens), ""


def _error(ran: AgentExit) -> str:
    """How it ended, if not with 0, and its last line, which usually says why."""
    ending, lines = _ending(ran), [line.strip() for line in ran.output.splitlines() if line.strip()]
    return f"{ending}: {lines[-1][:LAST_LINE]}" if ending and lines else ending


def _ending(ran: AgentExit) -> str:
    if ran.timed_out:
        return "the attempt timed out"
    return "" if ran.exit_code == 0 else f"the command exited with status {ran.exit_code}"
