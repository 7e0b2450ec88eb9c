"""Does nothing: no task may be resolved."""

from __future__ import annotations

from retrial.attempts import AgentResult
from retrial.protocols import AgentContext, Chat, Workspace, WorkspaceCheck
from retrial.types import Task

MODEL = "none"


class Null:
    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        return AgentResult(edit_outcome=True)


def make(context: AgentContext) -> Null:
    return Null()
