"""Sandbox on the host with bubblewrap: namespaces, a read-only whitelist of paths, one sized tmpfs to write to."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path

from retrial import registry
from retrial.errors import EnvironmentMissing, SandboxError
from retrial.language import Language, Toolchain
from retrial.protocols import Context
from retrial.sandboxes import job_session, supervisor
from retrial.sandboxes.bwrap import limits as job_limits
from retrial.sandboxes.bwrap import process, toolchain_store
from retrial.sandboxes.probe import numbers
from retrial.system import host
from retrial.system.paths import secret_paths, secrets_below
from retrial.types import Environment, Execution, HostCapacity, Job, fingerprint

NO_IMAGES = "these tasks live in images: start a Docker engine, and use it (--sandbox docker)."

UNBOUNDED = "limited for each process, not for a job as a whole"


class Bwrap:
    name = "bwrap"

    def __init__(self, hidden: tuple[Path, ...] = ()) -> None:
        """`hidden`: places of this host that no job may see, even if they lie among programs."""
        self._hidden = hidden

    def unavailable(self, environments: Iterable[Environment]) -> str:
        """By doing: an option that is listed may still be forbidden here."""
        wanted = tuple(environments)
        if any(environment.tree for environment in wanted):
            return NO_IMAGES
        try:
            process.check_tool()
            for environment in wanted:
                if unreadable := self.run(_trial(environment)).stdout.strip():
                    return f"The job's user cannot read {unreadable.splitlines()[0]}: make it readable for all."
        except SandboxError as error:
            return str(error)
        return ""

    def missing(self, environment: Environment) -> str:
        if environment.tree:
            return NO_IMAGES
        try:
            lacking = _toolchain(environment.language).lacking
        except EnvironmentMissing as error:
            return str(error)
        return next((lacking[tool] for tool in environment.needs if tool in lacking), "")

    def state(self, environment: Environment) -> str:
        version = _toolchain(environment.language).version
        if toolchain_store.ready(environment.language, version):
            return f"ready ({version})"
        return f"{version}; its packages and caches will be prepared first"

    def prepare(self, environment: Environment, say: Callable[[str], None]) -> None:
        process.check_tool()
        toolchain_store.ensure(environment.language, _toolchain(environment.language).version, say)

    def digest(self, environment: Environment) -> str:
        version = _toolchain(environment.language).version
        store = toolchain_store.digest(environment.language, version)
        method = job_limits.method()
        # Limits that the kernel does not hold may end a job where it would not.
        limits = [] if method.by_kernel else [method.name]
        return fingerprint(self.name, environment.name, version, *([store] if store else []), *limits)

    def describe(self) -> Mapping[str, str]:
        method = job_limits.method()
        memory = {} if method.bounded else {"memory": UNBOUNDED}
        return {"sandbox": self.name, "version": process.version(), "limits": method.name, **memory}

    def machine(self) -> HostCapacity:
        return host.capacity()

    def run(self, job: Job) -> Execution:
        process.check_tool()
        session = job_session.SupervisorSession(job)
        try:
            with closing(job_limits.method().open(job.limits)) as slot:
                command, view = supervisor.command(job), _view(job, self._hidden)
                with process.Bubble(command, view, slot, stderr=subprocess.PIPE) as bubble:
                    timed_out = job_session.converse(session, _channel(bubble, session), slot)
                return session.execution(timed_out=timed_out, oom=slot.oom(), cpu_seconds=slot.cpu_seconds())
        except OSError as error:
            raise SandboxError(f"bubblewrap could not be run: {error}.") from error


def make(context: Context) -> Bwrap:
    return Bwrap(secret_paths(getattr(context.options, "benchmark", "")))


def _channel(bubble: process.Bubble, session: job_session.SupervisorSession) -> job_session.Channel:
    stdin, stdout, stderr = bubble.popen.stdin, bubble.popen.stdout, bubble.popen.stderr
    assert stdin and stdout and stderr
    bubble.open_pipes()
    outputs = {stdout.fileno(): session.stdout, stderr.fileno(): session.stderr}
    return job_session.Channel(stdin=stdin.fileno(), close_stdin=stdin.close, outputs=outputs)


def _view(job: Job, hidden: tuple[Path, ...]) -> process.View:
    """The toolchain, and what was prepared for it."""
    toolchain = _toolchain(job.environment.language)
    store = _store(job.environment.language)
    prepared = str(store / job.environment.language)
    path = ":".join((*toolchain.path, *supervisor.PATH))
    shown = ("/usr", *(target for source, target in toolchain.binds if source == target))
    return process.View(
        binds=(*toolchain.binds, *(((prepared, prepared),) if os.path.isdir(prepared) else ())),
        covered=secrets_below(shown, hidden),
        symlinks=toolchain.symlinks,
        files=toolchain.files,
        variables={**supervisor.ENVIRONMENT, "PATH": path, supervisor.STORE: str(store)},
        disk_mb=job.limits.disk_mb,
        network=job.network,
    )


@functools.cache
def _toolchain(language: str) -> Toolchain:
    if not language:
        raise EnvironmentMissing("This task needs an image: bwrap shows only toolchains of this host.")
    part: Language = registry.module("languages", language).make()
    found = part.toolchain()
    if isinstance(found, str):
        raise EnvironmentMissing(found)
    if numbers(found.version) < numbers(part.minimum):
        raise EnvironmentMissing(f"{found.version} is older than {part.minimum}, which {language} tasks need.")
    return found


@functools.cache
def _store(language: str) -> Path:
    """Asked for every job; to name it, all that it is made from is read."""
    return toolchain_store.root(language, _toolchain(language).version)


def _trial(environment: Environment) -> Job:
    """Names what the job's user cannot read of the toolchain."""
    paths = shlex.join(target for _, target in _toolchain(environment.language).binds)
    script = f'for path in {paths}; do test -r "$path" || echo "$path"; done'
    return Job(environment=environment, script=script, files={})
