"""Where a program that is an agent runs: apart from this host, with its workspace, the network, and what it was given.

In every cell the workspace is the folder to start in, and a folder of ours holds the errand's files, the test client,
and `out` for what the program wants to tell; variables say where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from retrial.attempts import Facts
from retrial.errors import NotMeasured, UsageError
from retrial.options import HarnessOptions
from retrial.protocols import Workspace, WorkspaceCheck

WORKSPACE = "/workspace"
FILES = "/run/retrial"
ALWAYS = {"HOME": "/tmp/home", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "USER": "nobody", "TERM": "dumb"}
"""Variables in a cell that is isolated."""
HELP = "Or name an image with --agent-image; or lift the isolation with --agent-on-host."


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCommand:
    """One program to be run on one workspace."""

    command: tuple[str, ...]
    """No shell reads it. Where the workspace and the files are differs from cell to cell: the variables say it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beside these: RETRIAL_WORKSPACE, RETRIAL_TEST (the test client), RETRIAL_OUT, and one for each of `files`."""
    shown: tuple[Path, ...] = ()
    """Of this host, read-only, at the same path inside (an image's own programs may not be able to run them)."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Read-only, beside the test client. `prompt.md` is named by the variable RETRIAL_PROMPT, and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentExit:
    """What came of an errand; by now every process of it is dead (in a cell that is isolated)."""

    exit_code: int | None
    """None when it was killed."""
    output: str
    """stdout and stderr as they came, the first and the last part if there was much; keys that were given, masked."""
    timed_out: bool = False
    results: Mapping[str, bytes] = field(default_factory=dict)
    """Small plain files that it left in $RETRIAL_OUT."""


class Isolation(Protocol):
    def check(self) -> None:
        """Raises: NotMeasured, with one sentence, when nothing can be run in it here."""
        ...

    def describe(self) -> Facts:
        """For run.json; with `isolated`, whether it sees nothing of this host but what it was given."""
        ...

    def run(
        self, errand: AgentCommand, workspace: Workspace, check: WorkspaceCheck, left: Callable[[], float]
    ) -> AgentExit:
        """Runs until the program ends or `left()` is 0; `check` answers its test client, and that time is not its own.

        Raises: what `check` raises, when the program is dead; SandboxError when the cell itself failed.
        """
        ...


def choose(options: HarnessOptions) -> Isolation:
    """Raises: UsageError when programs cannot be run apart from this host, and nobody said that they need not be."""
    from retrial.agents.isolation import grants

    given = grants.read(options)
    if options.agent_on_host and options.agent_image:
        raise UsageError("--agent-on-host and --agent-image exclude each other.")
    if options.agent_on_host:
        from retrial.agents.isolation.none import HostCell

        return HostCell(given)
    cell: Isolation
    if options.agent_image:
        from retrial.agents.isolation.docker import DockerCell

        cell = DockerCell(options.agent_image, given)
    else:
        from retrial.agents.isolation.bwrap import BwrapCell

        cell = BwrapCell(given)
    try:
        cell.check()
    except NotMeasured as error:
        why_not = str(error).rstrip(".")
        raise UsageError(f"Agent '{options.agent}' cannot be run apart from this host: {why_not}. {HELP}") from error
    return cell
