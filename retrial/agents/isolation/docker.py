"""A cell in a container of an image that has the agent: its own root, read-only, the network, and what is named."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from docker.api import APIClient
from docker.types import Mount

from retrial.agents.isolation import ALWAYS, FILES, WORKSPACE, AgentCommand, AgentExit, runner
from retrial.agents.isolation.grants import Grants
from retrial.agents.isolation.runner import LIMITS, StagedFiles
from retrial.attempts import Facts
from retrial.errors import SandboxError
from retrial.protocols import Workspace, WorkspaceCheck
from retrial.sandboxes import docker as engines
from retrial.sandboxes import supervisor
from retrial.sandboxes.bwrap import process
from retrial.sandboxes.docker import exit_cause, host_config, images

PYTHON = "python3"
"""Of the image, for the test client."""


class DockerCell:
    def __init__(self, image: str, given: Grants) -> None:
        self._image, self._given = image, given

    def check(self) -> None:
        if not engines.listening():
            raise SandboxError("no Docker engine answers.")
        with engines.engine() as client:
            if not images.identity(client, self._image):
                raise SandboxError(f"the image {self._image} is not there: docker pull {self._image}")
        runner.try_out(self, self._given.paths)

    def describe(self) -> Facts:
        with engines.engine() as client:
            about = {"image": self._image, "image_id": images.identity(client, self._image)}
        return {"isolated": True, "cell": "docker", **about, **self._given.describe()}

    def run(
        self, errand: AgentCommand, workspace: Workspace, check: WorkspaceCheck, left: Callable[[], float]
    ) -> AgentExit:
        variables = {**ALWAYS, **errand.environment, **self._given.variables}
        with (
            runner.laid_out(errand, variables, workspace, check, python=PYTHON, isolated=True) as kit,
            engines.engine() as client,
        ):
            mounts = self._mounts(kit, workspace, errand.shown)
            with self._container(client, kit, mounts) as container:
                timed_out = _listen(client, container, kit, left)
                code = None if timed_out or kit.tests.broken else _status(client, container)
            return kit.ran(code, timed_out=timed_out)

    def _mounts(self, kit: StagedFiles, workspace: Workspace, more: tuple[Path, ...]) -> list[Mount]:
        shown = self._given.shown(more)
        return [
            _bind(workspace.root, WORKSPACE),
            _bind(kit.folder, FILES, read_only=True),
            _bind(kit.out, f"{FILES}/{kit.out.name}"),
            *(_bind(path, str(path), read_only=True) for path in shown),
            *map(_cover, self._given.covered(shown)),
        ]

    def _container(self, client: APIClient, kit: StagedFiles, mounts: list[Mount]) -> AbstractContextManager[str]:
        user = os.getuid() or process.USER
        return engines.container(
            client,
            self._image,
            entrypoint=list(kit.command),
            user=f"{user}:{os.getgid() if os.getuid() else process.USER}",
            working_dir="/",
            host_config=_host_config(client, mounts),
        )


def _bind(source: Path, target: str, *, read_only: bool = False) -> Mount:
    return Mount(target, os.path.realpath(source), type="bind", read_only=read_only)


def _cover(path: str) -> Mount:
    if os.path.isdir(path):
        return Mount(path, None, type="tmpfs")
    return _bind(Path("/dev/null"), path, read_only=True)


def _host_config(client: APIClient, mounts: list[Mount]) -> dict[str, Any]:
    config: dict[str, Any] = client.create_host_config(
        network_mode="host",
        extra_hosts=host_config.OWN_NAME,
        mounts=mounts,
        **host_config.read_only_root(LIMITS),
        **host_config.confined(LIMITS, supervisor.RLIMITS),
    )
    return config


def _listen(client: APIClient, container: str, kit: StagedFiles, left: Callable[[], float]) -> bool:
    """Attach first, then start: nothing is missed. True when the program ran out of time."""
    take = engines.Streams({1: kit.output.add, 2: kit.output.add}).feed
    with engines.attached(client, container) as raw:
        client.start(container)
        # If there is nobody any more, its own words say why.
        with suppress(BrokenPipeError, ConnectionResetError):
            raw.sendall(kit.greeting)
        engines.half_close(raw)
        return runner.listen(raw.fileno(), None, kit.tests, left, take)


def _status(client: APIClient, container: str) -> int:
    """Raises: SandboxError unless the program ended by itself."""
    exit_cause.refuse_if_from_outside(client, container)
    return int(client.inspect_container(container)["State"]["ExitCode"])
