"""A cell of bubblewrap: this host's /usr, the network, and nothing else of the host but what is named."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from retrial.agents.isolation import ALWAYS, FILES, WORKSPACE, AgentCommand, AgentExit, runner
from retrial.agents.isolation.grants import Grants
from retrial.agents.isolation.runner import LIMITS, StagedFiles
from retrial.attempts import Facts
from retrial.languages.python import toolchain
from retrial.protocols import Workspace, WorkspaceCheck
from retrial.sandboxes import supervisor
from retrial.sandboxes.bwrap import limits, process

VISIBLE = ("/usr", *process.MERGED, *process.ETC_NETWORK)
"""What is there in any case."""


class BwrapCell:
    def __init__(self, given: Grants) -> None:
        self._given = given

    def check(self) -> None:
        process.check_tool()
        runner.try_out(self, self._given.paths)

    def describe(self) -> Facts:
        about = {"cell": "bwrap", "bwrap": process.version(), "limits": limits.method().name}
        return {"isolated": True, **about, **self._given.describe()}

    def run(
        self, errand: AgentCommand, workspace: Workspace, check: WorkspaceCheck, left: Callable[[], float]
    ) -> AgentExit:
        python, folders = toolchain.interpreter(), map(Path, toolchain.base_folders())
        shown = self._given.shown((*errand.shown, *folders), VISIBLE)
        variables = {**ALWAYS, "PATH": _search_path(shown), **errand.environment, **self._given.variables}
        with (
            runner.laid_out(errand, variables, workspace, check, python=python, isolated=True) as kit,
            closing(limits.method().open(LIMITS)) as slot,
            _start(kit, self._view(kit, workspace, shown), slot) as bubble,
        ):
            bubble.open_pipes()
            return runner.supervise(bubble.popen, bubble.kill, kit, left)

    def _view(self, kit: StagedFiles, workspace: Workspace, shown: tuple[Path, ...]) -> process.View:
        return process.View(
            binds=((str(kit.folder), FILES), *((str(path), str(path)) for path in shown)),
            writable=((str(workspace.root), WORKSPACE), (str(kit.out), f"{FILES}/{kit.out.name}")),
            covered=self._given.covered((*shown, Path("/usr"))),
            # Models may be served under names that only this file knows; the sandbox's own name is not in it.
            files={"/etc/hosts": Path("/etc/hosts").read_bytes() + b"\n127.0.0.1 retrial\n"},
            # Until the program's own variables are there, which nobody may read in a list of processes.
            variables={"PATH": ":".join(supervisor.PATH)},
            disk_mb=LIMITS.disk_mb,
            network=True,
        )


def _start(kit: StagedFiles, view: process.View, slot: limits.JobLimits) -> process.Bubble:
    return process.Bubble(kit.command, view, slot, stderr=subprocess.STDOUT)


def _search_path(shown: Iterable[Path]) -> str:
    """The user's own PATH, as far as it is in view, and where a system's programs are."""
    in_view = (*shown, *map(Path, VISIBLE))
    own = (folder for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/"))
    kept = [folder for folder in own if any(Path(folder).is_relative_to(path) for path in in_view)]
    return ":".join(dict.fromkeys((*kept, *supervisor.PATH)))
