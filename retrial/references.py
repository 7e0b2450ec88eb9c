"""Reference runs: what the known solution shows in this environment. One cached thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrial import cache
from retrial.checks import run_check
from retrial.errors import EnvironmentMissing
from retrial.protocols import Sandbox
from retrial.types import Answer, Status, Task, Verdict

NOT_FOUND = 127
"""What a shell ends with when it cannot find the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the reference solution showed here."""

    verdict: Verdict
    cached: bool

    @property
    def expected(self) -> Mapping[str, Status] | None:
        """The tests a solution must pass; unknown when the reference itself fails."""
        return self.verdict.tests if self.verdict.resolved else None

    @property
    def void(self) -> str:
        """Why the task cannot tell right from wrong here; empty when it can."""
        return "" if self.verdict.resolved else f"its reference fails here: {self.verdict.reason}"


def reference(
    task: Task, answer: Answer, sandbox: Sandbox, verdicts: cache.Verdicts, *, fresh: bool = False
) -> Reference:
    """Runs the reference once for each environment. One that fails is run again the next time: it may have been load.

    Raises: EnvironmentMissing when its test command is not there, so that no patch can be blamed for it.
    """
    name = cache.key(task, answer.patch, answer.check, sandbox)
    found = None if fresh else verdicts.get(name)
    if found is not None:
        return Reference(verdict=found, cached=True)
    verdict = run_check(task, answer.patch, answer.check, sandbox)
    if verdict.exit_code == NOT_FOUND and not verdict.tests:
        raise EnvironmentMissing(
            f"The environment '{task.environment.name}' lacks a tool that {task.language} needs: "
            f"{verdict.output.strip()[:200]} (in Docker: build the target '{task.environment.image}' again)."
        )
    if verdict.resolved:
        verdicts.put(name, verdict)
    return Reference(verdict=verdict, cached=False)
