"""Writes the reference solution: every task must be resolved, or harness or task is broken."""

from __future__ import annotations

from retrial.attempts import AgentResult
from retrial.patches import apply
from retrial.protocols import AgentContext, Benchmark, Chat, Workspace, WorkspaceCheck
from retrial.types import Outcome, Task

MODEL = "none"


class Gold:
    def __init__(self, benchmark: Benchmark) -> None:
        self._benchmark = benchmark

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        apply.apply(workspace.root, self._benchmark.answer(task.instance_id).patch)
        verdict = check()
        known = verdict.outcome is not Outcome.UNVERIFIED
        return AgentResult(edit_outcome=True, tests_outcomes=(verdict.resolved,) if known else ())


def make(context: AgentContext) -> Gold:
    assert context.benchmark is not None, "the gold agent reads answers of a benchmark"
    return Gold(context.benchmark)
