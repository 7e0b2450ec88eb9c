"""The real aider, in an environment and a cell of its own: it asks its model itself, and tests through ours.

`driver.py` runs it there. What it did to the workspace we see for ourselves; what it says of it is counted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from retrial.agents import isolation
from retrial.agents.aider import driver_report as aider_report
from retrial.agents.aider import install
from retrial.agents.aider.driver_report import AiderReport, Route
from retrial.agents.aider.install import Installation
from retrial.agents.edit import FAILED, FEEDBACK_LINES, LAZY, count_errors
from retrial.agents.isolation import AgentCommand, AgentExit, Isolation
from retrial.agents.prompts import TASK, WHOLE_REPOSITORY
from retrial.attempts import AgentResult, Facts
from retrial.chat import Json, Usage
from retrial.errors import ModelError, NotMeasured, UsageError
from retrial.models.failures import Failure, sentence
from retrial.options import HarnessOptions
from retrial.protocols import AgentContext, Chat, Workspace, WorkspaceCheck
from retrial.system import paths
from retrial.system.console import say
from retrial.types import Outcome, Task, Verdict

MODEL = "named"
SPENDS = True
FORMATS = ("whole", "diff", "diff-fenced", "udiff", "patch")
"""Those of ours that aider has too."""

FAILED_THERE = """\
{output}

####

See the testing errors above.
The tests are correct.
Fix the code to resolve the errors."""
PROMPTS = (TASK, WHOLE_REPOSITORY, FAILED, FAILED_THERE)
"""Part of a run's identity; all else that the model reads is aider's own."""

OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""Else the list of prices would be fetched."""
DRIVER = Path(__file__).with_name("driver.py")
# Where the driver lies differs from cell to cell: a variable says it.
COMMAND = ("/bin/sh", "-c", 'exec "$0" -I -X utf8 "$RETRIAL_DRIVER"')


class AiderAgent:
    def __init__(
        self, *, installation: Installation, cell: Isolation, route: Route, edit_format: str, options: HarnessOptions
    ) -> None:
        self._installation, self._cell, self._route = installation, cell, route
        self._format, self._options = edit_format, options

    def describe(self) -> Facts:
        found = self._installation
        about = {"name": "aider", "version": found.version, "python": found.python_version}
        return {**about, **self._cell.describe()}

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        verdicts: list[Verdict] = []

        def test() -> Verdict:
            verdicts.append(check())
            return verdicts[-1]

        ran = self._cell.run(self._errand(task, model.temperature), workspace, test, model.left)
        report = aider_report.read(ran.results)
        if report is None:
            raise NotMeasured(f"aider left no report: {_last_line(ran)}")
        spent = replace(report.effort.spent, cost=None) if self._options.price else report.effort.spent
        try:
            self._refuse_broken(report, ran, model.name)
        except NotMeasured:
            model.spend(spent)
            raise
        return _effort(report, verdicts, spent, ran)

    def _errand(self, task: Task, temperature: float) -> AgentCommand:
        settings = json.dumps({**self._settings(task), "temperature": temperature})
        return AgentCommand(
            command=(*COMMAND, self._installation.python),
            environment={**OFFLINE, **self._route.variables},
            shown=self._installation.shown,
            files={"driver.py": DRIVER.read_bytes(), "settings.json": settings.encode()},
        )

    def _settings(self, task: Task) -> dict[str, Json]:
        options = self._options
        names = ", ".join(task.offered)
        opening, failed = (WHOLE_REPOSITORY, FAILED_THERE) if task.whole_repository else (TASK, FAILED)
        timeout = options.request_timeout_seconds
        return {
            "model": self._route.model,
            "edit_format": self._format,
            "opening": opening.format(instructions=task.problem_statement, files=names),
            "failed": failed.format(output="{output}", files=names),
            "feedback_lines": FEEDBACK_LINES,
            "turns": options.turns,
            "reflections": options.reflections,
            "reasoning_effort": options.reasoning_effort,
            "extra_body": json.loads(options.extra_body or "{}"),
            "extra_params": {"timeout": timeout} if timeout else {},
            "repository": task.whole_repository,
            "editable": [] if task.whole_repository else task.offered,
            "read_only": list(task.read_only),
            "map_tokens": options.map_tokens if task.whole_repository else 0,
        }

    def _refuse_broken(self, report: AiderReport, ran: AgentExit, name: str) -> None:
        """Raises: NotMeasured when it was not aider's doing, nor its model's, that it came to no end of its own.

        Once the model has answered, an aider that breaks down does so over what it was told.
        """
        endpoint, failure = self._route.endpoint, report.failure
        if failure is None and ran.timed_out and report.waiting and not report.effort.spent.calls:
            failure = Failure(kind="timeout")
        if failure is not None and not failure.context_exceeded:
            raise ModelError(sentence(name, endpoint, failure, report.tries))
        if failure is None and not _ended(report, ran) and (report.waiting or not report.effort.spent.calls):
            raise NotMeasured(f"aider broke down: {_last_line(ran)}")


def _effort(report: AiderReport, verdicts: Sequence[Verdict], spent: Usage, ran: AgentExit) -> AgentResult:
    errors = {
        "the attempt timed out": ran.timed_out,
        f"aider broke down: {_last_line(ran)}": not _ended(report, ran) and report.failure is None,
    }
    notes = {**errors, "its linter found errors that were left": not report.lint_outcome}
    effort = replace(
        report.effort,
        tests_outcomes=tuple(each.resolved for each in verdicts if each.outcome is not Outcome.UNVERIFIED),
        lazy_comments=sum(len(LAZY.findall(reply)) for reply in report.replies),
        # Of all failures only a context that is too long leads here.
        exhausted=report.effort.exhausted + (report.failure is not None),
        spent=spent,
        error=", ".join(text for text, applies in errors.items() if applies),
        notes=tuple(note for note, applies in notes.items() if applies),
    )
    for verdict in verdicts:
        effort = count_errors(effort, verdict)
    return effort


def _ended(report: AiderReport, ran: AgentExit) -> bool:
    """By itself, or by our clock."""
    return report.ended or ran.timed_out


def _last_line(ran: AgentExit) -> str:
    if ran.timed_out:
        return "the attempt timed out"
    lines = [line.strip() for line in ran.output.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"it ended with {ran.exit_code} and said nothing"


def make(context: AgentContext) -> AiderAgent:
    """Raises: UsageError; EnvironmentMissing when its environment cannot be made."""
    options = context.options
    if context.edit_format and context.edit_format not in FORMATS:
        raise UsageError(f"aider has no edit format '{context.edit_format}'; it has {', '.join(FORMATS)}.")
    route = aider_report.find_route(context.model, options.api_base, os.environ)
    cell = isolation.choose(options)
    return AiderAgent(
        installation=_installation(options, cell),
        cell=cell,
        route=route,
        edit_format=context.edit_format,
        options=options,
    )


def _installation(options: HarnessOptions, cell: Isolation) -> Installation:
    if options.agent_image:
        return install.in_image(options.aider_python or "python3", cell)
    if options.aider_python:
        return install.given(options.aider_python)
    return install.own(paths.cache(), say)
