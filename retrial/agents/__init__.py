"""Agents, one file or folder each. Some are part of Retrial; others are programs, which run in cells (`isolation`).

Imports `formats`, `benchmarks`, `reports` and what is below; `predict`, `score` and `cli` may import it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrial import registry
from retrial.attempts import Facts
from retrial.errors import UsageError
from retrial.options import HarnessOptions
from retrial.protocols import Agent

OF_PROGRAMS = ("agent_image", "agent_path", "agent_env", "agent_on_host")
"""Options that say what a program sees."""

_VALUE = re.compile(r"^(--agent-env=[^=]*|(?!--agent-env=)[^=]*)=.*", re.DOTALL)


def refuse_misplaced(options: HarnessOptions) -> None:
    """Raises: UsageError for options that this agent would not heed."""
    if options.command and options.agent != "command":
        raise UsageError("--command is what agent 'command' runs: add -a command.")
    if options.aider_python and options.agent != "aider":
        raise UsageError("--aider-python is where agent 'aider' is found: add -a aider.")
    is_program = getattr(registry.module("agents", options.agent), "SPENDS", False)
    for name in OF_PROGRAMS:
        if getattr(options, name) and not is_program:
            flag = "--" + name.replace("_", "-")
            raise UsageError(f"{flag} is for agents that are programs of their own: '{options.agent}' is part of us.")


def about(name: str, agent: Agent) -> Facts:
    """For run.json: what an agent says of itself, and whether it saw anything but what it was given."""
    said = agent.describe() if hasattr(agent, "describe") else {}
    return {"name": name, "isolated": True, **said}


def as_kept(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line as it may be written down: without the values, often keys, that it gives to an agent."""
    return tuple(
        _VALUE.sub(r"\1=…", text) if before == "--agent-env" or text.startswith("--agent-env=") else text
        for before, text in zip(("", *argv), argv, strict=False)
    )
