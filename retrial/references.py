"""Reference runs: what the known solution shows in this environment. One cached thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from retrial import cache, patches
from retrial.checks import run_check, select
from retrial.protocols import Sandbox
from retrial.types import Answer, Status, Task, Verdict


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
    """Runs the reference once for each environment. One that fails is not cached: it may have been load."""
    check = replace(answer.check, optional=True)
    name = cache.key(task, answer.patch, check, sandbox)
    found = None if fresh else verdicts.get(name)
    if found is not None:
        return Reference(verdict=found, cached=True)
    verdict = run_check(task, answer.patch, check, sandbox)
    if verdict.resolved:
        verdicts.put(name, verdict)
    return Reference(verdict=verdict, cached=False)


def recorded(task: Task, answer: Answer, sandbox: Sandbox, verdicts: cache.Verdicts) -> Reference | None:
    """What the reference showed here when `--gold` was run; None when it was not."""
    selection = select(task, answer.patch, patches.touched(answer.patch))
    found = None
    if not isinstance(selection, Verdict):
        found = verdicts.get(cache.key(task, selection.patch, answer.check, sandbox))
    return Reference(verdict=found, cached=True) if found else None


def stub_void(task: Task, answer: Answer, known: Reference, sandbox: Sandbox, verdicts: cache.Verdicts) -> str:
    """Why the task tells nothing although its reference passes; as far as `--null` has been run here."""
    check = answer.check if answer.check.required else replace(answer.check, expected=known.expected)
    stub = verdicts.get(cache.key(task, "", check, sandbox))
    return "its untouched stub passes" if stub is not None and stub.resolved else ""
