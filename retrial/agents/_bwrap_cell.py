"""A cell of bubblewrap: this host's /usr, the network, and nothing else of the host but what is named."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path

from retrial.agents import _errands
from retrial.agents._cell import ALWAYS, FILES, WORKSPACE, Errand, Ran
from retrial.agents._errands import LIMITS, Kit
from retrial.agents._given import Given
from retrial.agents._tests_socket import TestsSocket
from retrial.errors import SandboxError
from retrial.languages import _python_toolchain
from retrial.protocols import Workspace
from retrial.sandboxes import _bubble, _cgroup, _nobody, _protocol
from retrial.types import Verdict

VISIBLE = ("/usr", *_bubble.MERGED, *_bubble.ETC_NETWORK)
"""What is there in any case."""


class BwrapCell:
    isolated = True

    def __init__(self, given: Given) -> None:
        self._given = given

    def unavailable(self) -> str:
        try:
            _bubble.check_tool()
        except SandboxError as error:
            return str(error)
        return _errands.trial(self, self._given.paths)

    def describe(self) -> Mapping[str, object]:
        about = {"cell": "bwrap", "bwrap": _bubble.version(), "limits": _cgroup.method().name}
        return {"isolated": self.isolated, **about, **self._given.describe()}

    def run(self, errand: Errand, workspace: Workspace, check: Callable[[], Verdict], left: Callable[[], float]) -> Ran:
        python, folders = _python_toolchain.interpreter(), map(Path, _python_toolchain.base_folders())
        shown = self._given.shown((*errand.shown, *folders), VISIBLE)
        variables = {**ALWAYS, "PATH": _search_path(shown), **errand.environment, **self._given.variables}
        try:
            if os.geteuid() == 0:
                workspace.hand_over(_nobody.ID)
            with (
                _errands.laid_out(errand, variables, workspace=WORKSPACE, files=FILES, python=python) as kit,
                TestsSocket(kit.folder, check) as tests,
                closing(_cgroup.method().open(_bubble.with_room(LIMITS))) as slot,
                _start(kit, self._view(kit, workspace, shown), slot) as bubble,
            ):
                bubble.open_pipes()
                return _errands.attend(bubble.popen, bubble.kill, kit, tests, left)
        except OSError as error:
            raise SandboxError(f"The agent could not be run: {error}.") from error

    def _view(self, kit: Kit, workspace: Workspace, shown: tuple[Path, ...]) -> _bubble.View:
        covered = self._given.covered((*shown, Path("/usr")))
        return _bubble.View(
            binds=((str(kit.folder), FILES), *((str(path), str(path)) for path in shown)),
            writable=((str(workspace.root), WORKSPACE), (str(kit.out), f"{FILES}/{kit.out.name}")),
            covered=tuple(map(str, covered)),
            # Models may be served under names that only this file knows; the sandbox's own name is not in it.
            files={"/etc/hosts": Path("/etc/hosts").read_bytes() + b"\n127.0.0.1 retrial\n"},
            # Until the program's own variables are there, which nobody may read in a list of processes.
            variables={"PATH": ":".join(_protocol.PATH)},
            disk_mb=LIMITS.disk_mb,
            network=True,
        )


def _start(kit: Kit, view: _bubble.View, slot: _cgroup.Slot) -> _bubble.Bubble:
    return _bubble.Bubble(kit.command, view, slot, LIMITS, stdin=subprocess.PIPE, stderr=subprocess.STDOUT)


def _search_path(shown: Iterable[Path]) -> str:
    """The user's own PATH, as far as it is in view, and where a system's programs are."""
    in_view = (*shown, *map(Path, VISIBLE))
    own = (folder for folder in os.environ.get("PATH", "").split(":") if folder.startswith("/"))
    kept = [folder for folder in own if any(Path(folder).is_relative_to(path) for path in in_view)]
    return ":".join(dict.fromkeys((*kept, *_protocol.PATH)))
