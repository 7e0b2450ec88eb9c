"""Sandbox in containers, through Docker's API, at the socket that DOCKER_HOST names."""

from __future__ import annotations

import functools
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from typing import Any

from docker.api import APIClient
from docker.constants import DEFAULT_UNIX_SOCKET
from docker.errors import APIError, ImageNotFound, InvalidVersion
from docker.utils import kwargs_from_env

from retrial.errors import EnvironmentMissing, SandboxError
from retrial.protocols import Context
from retrial.sandboxes import job_session, supervisor
from retrial.sandboxes.docker import disk_watch, exit_cause, host_config, images
from retrial.sandboxes.docker.image_cache import Shelf, refuse_too_small
from retrial.system import host, locks
from retrial.types import Environment, Execution, HostCapacity, Job

LABEL = "retrial"
"""Its value names the owner."""
PID = "retrial.pid"
"""For people: pids are used again."""
PING_SECONDS = 2.0
CALL_SECONDS = 60.0
"""For one call of the API: starting a container on a busy machine takes its time."""
REMOVALS = 3
"""A dead fork bomb takes its time on a busy machine, and an engine gives up on it sooner than we may."""
QUIET_SECONDS = 600.0
"""How long an engine may say nothing while it brings an image: unpacking a large layer is one such time."""


class Docker:
    name = "docker"

    def __init__(self, disk_gb: float | None = None) -> None:
        self._shelf = Shelf(disk_gb)

    def unavailable(self, environments: Iterable[Environment]) -> str:
        nobody = f"no Docker engine answers at {os.environ.get('DOCKER_HOST', 'its usual socket')}."
        if not listening():
            return nobody
        try:
            with engine(PING_SECONDS) as client:
                client.ping()
            # A registry may take longer to answer than an engine.
            # Images with trees are hundreds, and are brought one by one: what cannot be had is said of its own task.
            asked = [one for one in environments if not one.tree]
            with engine() as client:
                reasons = [reason for one in asked if (reason := images.out_of_reach(client, one))]
        except SandboxError as error:
            return f"{nobody.rstrip('.')} ({error})"
        return reasons[0] if reasons else ""

    def missing(self, environment: Environment) -> str:
        return ""

    def state(self, environment: Environment) -> str:
        with engine() as client:
            return images.state(client, environment)

    def prepare(self, environment: Environment, say: Callable[[str], None]) -> None:
        with engine(QUIET_SECONDS) as client:
            if environment.tree:
                self._shelf.ensure(client, environment, say)
            else:
                images.ensure(client, environment, say)

    def digest(self, environment: Environment) -> str:
        image = images.name(environment)
        with engine() as client:
            found = images.identity(client, image)
        if not found and environment.tree:
            # Brought once and removed to make room: its verdicts stay, and it comes back as it was.
            found = self._shelf.remembered(image)
        if not found:
            raise EnvironmentMissing(f"The image {image} is not there.")
        return found

    def describe(self) -> Mapping[str, str]:
        with engine() as client:
            version = client.version()
        return {"sandbox": self.name, "version": str(version["Version"]), "limits": "engine"}

    def machine(self) -> HostCapacity:
        """The engine's. Behind a socket of this host it is this one, or a part of it, where others use memory too."""
        with engine() as client:
            said = client.info()
        memory_mb = said["MemTotal"] / (1 << 20)
        return HostCapacity(cores=said["NCPU"], memory_mb=min(memory_mb, host.free_mb()) if _is_here() else memory_mb)

    def run(self, job: Job) -> Execution:
        session = job_session.SupervisorSession(job)
        with engine() as client, _of_job(client, job) as container:
            with _watched(job, container) as watch:
                timed_out = _talk(client, container, session)
            if not listening():
                raise SandboxError("The Docker engine went away while the job ran.")
            oom = exit_cause.by_memory(client, container)
            if session.broken_off and watch and watch.full:
                session.stderr(disk_watch.FULL.format(megabytes=job.limits.disk_mb).encode())
            elif session.broken_off and not oom:
                exit_cause.refuse_if_from_outside(client, container)
        return session.execution(timed_out=timed_out, oom=oom, here=_is_here())


def refuse_disk(disk_gb: float, environments: Iterable[Environment]) -> None:
    """Raise UsageError if the image of one of these alone is larger."""
    with engine() as client:
        refuse_too_small(disk_gb, client, sorted(each.image for each in environments if each.tree))


def make(context: Context) -> Docker:
    return Docker(getattr(context.options, "disk", None))


def address() -> str:
    return os.environ.get("DOCKER_HOST") or DEFAULT_UNIX_SOCKET


def _is_here() -> bool:
    return "unix" in address().partition("://")[0]


def listening(where: str = "") -> bool:
    """Whether anybody is at the engine's socket: the client would leave its own open if there is nobody."""
    kind, _, path = (where or address()).partition("://")
    if not kind.endswith("unix"):
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PING_SECONDS)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


@contextmanager
def engine(seconds: float = CALL_SECONDS, where: str = "") -> Iterator[APIClient]:
    """A connection of one's own: they cannot be shared between threads. The engine's failures come in our words.

    `where` is the address of another engine than the one to be used now.
    """
    try:
        how = kwargs_from_env({**os.environ, **({"DOCKER_HOST": where} if where else {})})
        with closing(APIClient(version="auto" if where else _api_version(), timeout=int(seconds), **how)) as client:
            yield client
    except ImageNotFound as error:
        raise EnvironmentMissing(f"An image is missing: {error.explanation}") from error
    except images.FAILURES as error:
        raise SandboxError(f"The Docker engine failed: {error}") from error


@functools.cache
def _api_version() -> str:
    """What the engine speaks, asked once."""
    with closing(APIClient(version="auto", timeout=int(PING_SECONDS), **kwargs_from_env())) as client:
        return str(client.api_version)


@contextmanager
def container(client: APIClient, image: str, **settings: Any) -> Iterator[str]:
    """A container of ours; gone afterwards, and everything in it."""
    owner = locks.register_resource(locks.ResourceKind.CONTAINERS, address())
    name = f"{LABEL}-{owner}-{secrets.token_hex(6)}"
    labels = {LABEL: owner, PID: str(os.getpid())}
    try:
        client.create_container(
            image, name=name, hostname=host_config.HOSTNAME, labels=labels, stdin_open=True, **settings
        )
        yield name
    finally:
        # By its name, so that one is removed too whose making was interrupted; killing a client would stop nothing.
        removed = False
        try:
            if listening():
                _remove(client, name)
                removed = True
        finally:
            if not removed:
                locks.current_lease().abandon(f"container {name}")


def _of_job(client: APIClient, job: Job) -> AbstractContextManager[str]:
    return container(
        client,
        images.name(job.environment),
        # As entry point: an image's own must not come before it.
        entrypoint=list(supervisor.command(job)),
        user=host_config.user(job),
        working_dir="/",
        environment=host_config.variables(job),
        host_config=host_config.host_config(client, job),
    )


def _watched(job: Job, container: str) -> AbstractContextManager[disk_watch.DiskWatch | None]:
    """Only a layer that is written to can grow; a tmpfs has its size."""
    return disk_watch.DiskWatch(engine, container, job.limits.disk_mb) if job.environment.tree else nullcontext()


def remove_orphans(owner: str, where: str) -> Iterator[str]:
    """Containers of an owner who was killed: unlike a process, a container does not end with who made it.

    Raises: SandboxError when the engine at that address cannot be asked.
    """
    if not listening(where):
        raise SandboxError(f"No Docker engine answers at {where}.")
    with engine(PING_SECONDS, where) as client:
        client.ping()
    with engine(where=where) as client:
        for container in client.containers(all=True, filters={"label": f"{LABEL}={owner}"}):
            _remove(client, container["Id"])
            yield f"container {container['Names'][0].lstrip('/')}"


def _remove(client: APIClient, container: str, tries: int = REMOVALS) -> None:
    try:
        client.remove_container(container, force=True, v=True)
    except APIError as error:
        # Somebody else has removed it, or is about to.
        if error.status_code in (404, 409):
            return
        if tries <= 1:
            raise
        _remove(client, container, tries - 1)


def _talk(client: APIClient, container: str, session: job_session.SupervisorSession) -> bool:
    """Attach first, then start: nothing is missed. True when the job ran out of time."""
    with attached(client, container) as raw:
        client.start(container)
        feed = Streams({1: session.stdout, 2: session.stderr}).feed
        channel = job_session.Channel(
            stdin=raw.fileno(), close_stdin=lambda: half_close(raw), outputs={raw.fileno(): feed}
        )
        return job_session.converse(session, channel, _Meter(client, container))


class _Meter:
    """A running container, as the engine sees it; what one has used is forgotten when it ends."""

    def __init__(self, client: APIClient, container: str) -> None:
        self._client, self._container = client, container

    def cpu_seconds(self) -> float | None:
        try:
            seen = self._client.stats(self._container, stream=False, one_shot=True)
            return int(seen["cpu_stats"]["cpu_usage"]["total_usage"]) / 1e9 or None
        except (APIError, InvalidVersion, KeyError):
            return None

    def wants_cpu(self) -> bool:
        try:
            processes = self._client.top(self._container, "-L -o pid,stat")["Processes"]
        except APIError:
            return False
        return any(state.startswith("R") for _, state in processes or ())


@contextmanager
def attached(client: APIClient, container: str) -> Iterator[socket.socket]:
    """The streams of a container, as one socket that never blocks."""
    wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
    wrapped: Any = client.attach_socket(container, params=wanted)
    # The client wraps the socket; only the socket itself can be closed in one direction.
    raw: socket.socket = getattr(wrapped, "_sock", wrapped)
    with closing(raw), closing(wrapped), ExitStack() as stack:
        # The client has hung the HTTP response onto it; closed first, while it still can be.
        if response := getattr(wrapped, "_response", None):
            stack.callback(response.close)
        raw.setblocking(False)
        yield raw


def half_close(raw: socket.socket) -> None:
    with suppress(OSError):
        raw.shutdown(socket.SHUT_WR)


class Streams:
    """Takes apart what the engine sends as one: frames of a kind, three zeros, a length in four bytes, and the data."""

    HEADER = 8

    def __init__(self, takers: Mapping[int, Callable[[bytes], None]]) -> None:
        self._takers = takers
        self._header = bytearray()
        self._kind = self._left = 0
        """Of the frame whose data comes: its kind, and how much is still to come."""

    def feed(self, data: bytes) -> None:
        while data:
            if not self._left:
                missing = self.HEADER - len(self._header)
                self._header += data[:missing]
                data = data[missing:]
                if len(self._header) < self.HEADER:
                    return
                self._kind, self._left = self._header[0], int.from_bytes(self._header[4:], "big")
                self._header.clear()
            part, data = data[: self._left], data[self._left :]
            self._left -= len(part)
            if part and self._kind in self._takers:
                self._takers[self._kind](part)
