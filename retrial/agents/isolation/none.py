"""No cell at all: the program runs as whoever runs Retrial, with all that they can reach. Only where asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from retrial.agents.isolation import AgentCommand, AgentExit, runner
from retrial.agents.isolation.grants import Grants
from retrial.attempts import Facts
from retrial.languages.python import toolchain
from retrial.protocols import Workspace, WorkspaceCheck
from retrial.sandboxes.bwrap.process import PATIENCE
from retrial.system import locks


class HostCell:
    def __init__(self, given: Grants) -> None:
        self._given = given

    def check(self) -> None:
        """Nothing is kept from the program, so nothing can be missing."""

    def describe(self) -> Facts:
        return {"isolated": False, "cell": "host", **self._given.describe()}

    def run(
        self, errand: AgentCommand, workspace: Workspace, check: WorkspaceCheck, left: Callable[[], float]
    ) -> AgentExit:
        # If we are killed it lives on, until the next start of a program finds it by this.
        mark = {locks.VARIABLE: locks.register_resource(locks.ResourceKind.PROCESSES, "")}
        variables = {**errand.environment, **self._given.variables, **mark}
        python = toolchain.interpreter()
        with (
            runner.laid_out(errand, variables, workspace, check, python=python, isolated=False) as kit,
            _started(kit.command) as popen,
        ):
            return runner.supervise(popen, lambda: _kill(popen), kit, left)


@contextmanager
def _started(command: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """In a session of its own, so that it ends as a whole; what leaves that session stays."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0,
        start_new_session=True,
    ) as popen:  # fmt: skip
        try:
            yield popen
        finally:
            _kill(popen)


def _kill(popen: subprocess.Popen[bytes]) -> None:
    """All that is in its session, and wait until it is gone."""
    if popen.returncode is not None:
        return
    end = time.monotonic() + PATIENCE
    with suppress(ProcessLookupError):
        os.killpg(popen.pid, signal.SIGKILL)
        popen.wait()
        while time.monotonic() < end:
            os.killpg(popen.pid, signal.SIGKILL)
            time.sleep(0.002)
