"""Does nothing: no task may be resolved."""

from __future__ import annotations

from collections.abc import Callable

from retrial.attempts import AgentResult
from retrial.protocols import AgentContext, Chat, Workspace
from retrial.types import Task, Verdict

MODEL = "none"


class Null:
    def solve(self, task: Task, workspace: Workspace, model: Chat, check: Callable[[], Verdict]) -> AgentResult:
        return AgentResult(edit_outcome=True)


def make(context: AgentContext) -> Null:
    return Null()
