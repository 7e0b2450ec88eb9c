"""Sandbox on the host with bubblewrap: namespaces, a read-only whitelist of paths, one sized tmpfs to write to."""

from __future__ import annotations

import functools
import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path, PurePosixPath

from retrial import registry
from retrial.errors import EnvironmentMissing, SandboxError
from retrial.protocols import Context, Language, Toolchain
from retrial.sandboxes import _cgroup, _nobody, _protocol, _stores, _stream
from retrial.sandboxes._probe import numbers
from retrial.types import Environment, Execution, Job, Limits, fingerprint

SHM_BYTES = 64 << 20
OWN_PROCESSES = 3
"""bwrap itself, its pid 1 inside, and the supervisor."""
MERGED = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
ETC_NETWORK = ("/etc/resolv.conf", "/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/tls/certs")
FILES: Mapping[str, bytes] = {
    "/etc/passwd": b"nobody:x:65534:65534:nobody:/tmp/home:/bin/sh\n",
    "/etc/group": b"nogroup:x:65534:\n",
    "/etc/hosts": b"127.0.0.1 localhost retrial\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
}
OUTER_VARIABLES = ("PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
NO_IMAGES = "these tasks live in images: start a Docker engine, and use it (--sandbox docker)."
NEEDED = ("--unshare-all", "--perms", "--size", "--remount-ro", "--die-with-parent", "--clearenv")


class Bwrap:
    name = "bwrap"

    def unavailable(self, environments: Iterable[Environment]) -> str:
        """By doing: an option that is listed may still be forbidden here."""
        wanted = tuple(environments)
        if any(environment.tree for environment in wanted):
            return NO_IMAGES
        try:
            _check_tool()
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
            _toolchain(environment.language)
        except EnvironmentMissing as error:
            return str(error)
        return ""

    def state(self, environment: Environment) -> str:
        version = _toolchain(environment.language).version
        if _stores.ready(environment.language, version):
            return f"ready ({version})"
        return f"{version}; its packages and caches will be prepared first"

    def prepare(self, environment: Environment, say: Callable[[str], None]) -> None:
        _check_tool()
        _stores.ensure(environment.language, _toolchain(environment.language).version, say)

    def digest(self, environment: Environment) -> str:
        version = _toolchain(environment.language).version
        store = _stores.digest(environment.language, version)
        return fingerprint(self.name, environment.name, version, *([store] if store else []))

    def describe(self) -> Mapping[str, str]:
        return {"sandbox": self.name, "version": _version(), "limits": _cgroup.method().name}

    def run(self, job: Job) -> Execution:
        _check_tool()
        session = _protocol.Session(job)
        try:
            with closing(_cgroup.method().open(_with_room(job.limits))) as slot:
                with _Process(job, slot) as process:
                    timed_out = _stream.converse(session, process.channel(session))
                return session.execution(timed_out=timed_out, oom=slot.oom())
        except OSError as error:
            raise SandboxError(f"bubblewrap could not be run: {error}.") from error


def make(context: Context) -> Bwrap:
    return Bwrap()


class _Process:
    """bwrap while it runs one job."""

    def __init__(self, job: Job, slot: _cgroup.Slot) -> None:
        self._slot = slot
        with ExitStack() as stack:
            nobody = _nobody.Nobody(stack) if os.geteuid() == 0 else None
            info, info_there = _nobody.pipe(stack)
            options, descriptors = _options(job, stack)
            identity = ["--info-fd", str(info_there.fileno()), *(nobody.options if nobody else _alone())]
            inside = (*(nobody.command if nobody else ()), *_inside(job.limits), *_protocol.command(job))
            self._popen = subprocess.Popen(
                [*slot.prefix, "bwrap", *options, *identity, "--", *inside],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(*descriptors, info_there.fileno(), *((nobody.descriptor,) if nobody else ())),
                start_new_session=True,
                # Not ours: pid 1 of the sandbox is a copy of bwrap, and shows what bwrap was started with.
                env={name: os.environ[name] for name in OUTER_VARIABLES if name in os.environ},
            )
            # Our copy of its end, so that its death is the end of the stream.
            info_there.close()
            child = _child(info)
            if child and nobody:
                nobody.introduce(child)
        if child:
            # In time: the supervisor starts nothing before it is told to, which is the next thing to happen.
            self._adopt(child)

    def _adopt(self, child: int) -> None:
        try:
            self._slot.adopt(child)
        except SandboxError:
            self.__exit__()
            raise

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *exception: object) -> None:
        self._kill()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe:
                pipe.close()

    def channel(self, session: _protocol.Session) -> _stream.Channel:
        stdin, stdout, stderr = self._popen.stdin, self._popen.stdout, self._popen.stderr
        assert stdin and stdout and stderr
        for pipe in (stdin, stdout, stderr):
            os.set_blocking(pipe.fileno(), False)
            if os.geteuid() == 0:
                # The supervisor opens them anew, as the user it is by then.
                os.fchown(pipe.fileno(), _nobody.ID, _nobody.ID)
        outputs = {stdout.fileno(): session.stdout, stderr.fileno(): session.stderr}
        return _stream.Channel(stdin=stdin.fileno(), close_stdin=stdin.close, outputs=outputs)

    def _kill(self) -> None:
        """With bwrap dies its pid namespace; the cgroup says when the last process is gone."""
        if self._popen.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)
            self._popen.wait()
        self._slot.kill()


def _alone() -> list[str]:
    """Who the job is when Retrial is an ordinary user: still that user for the host, but under another number."""
    options = ["--uid", str(_nobody.ID), "--gid", str(_nobody.ID)]
    return [*options, "--disable-userns"] if "--disable-userns" in _help() else options


def _child(info: FileIO) -> int:
    """The sandbox's pid 1 as the host sees it; 0 when bwrap ended before it had one."""
    text = b""
    while not text.rstrip().endswith(b"}") and (data := info.read(4096)):
        text += data
    return int(json.loads(text)["child-pid"]) if text else 0


def _inside(limits: Limits) -> tuple[str, ...]:
    commands = _cgroup.method().inside(limits)
    return ("sh", "-c", commands + 'exec "$@"', "sh") if commands else ()


def _with_room(limits: Limits) -> Limits:
    """A cgroup counts the sandbox's own processes too."""
    return replace(limits, processes=limits.processes + OWN_PROCESSES)


def _options(job: Job, stack: ExitStack) -> tuple[list[str], list[int]]:
    """For bwrap, and the descriptors they name."""
    toolchain = _toolchain(job.environment.language)
    files = {**FILES, **toolchain.files}
    store = _store(job.environment.language)
    prepared = store / job.environment.language
    binds = (*toolchain.binds, *(((str(prepared), str(prepared)),) if prepared.is_dir() else ()))
    options = [*_namespaces(job.network), *_writable(job.limits)]
    etc = (*ETC, *(ETC_NETWORK if job.network else ()))
    for folder in _parents((*etc, *files, *(path for _, path in (*binds, *toolchain.symlinks)))):
        options += ["--dir", folder]
    options += _system(etc)
    for source, target in binds:
        options += ["--ro-bind", source, target]
    for target, path in toolchain.symlinks:
        options += ["--symlink", target, path]
    descriptors = []
    for path, content in files.items():
        descriptors.append(_memory_file(content, stack))
        options += ["--perms", "0444", "--file", str(descriptors[-1]), path]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    variables = {**_protocol.ENVIRONMENT, "PATH": ":".join((*toolchain.path, *_protocol.PATH))}
    for name, value in (*variables.items(), (_protocol.STORE, str(store))):
        options += ["--setenv", name, value]
    return options, descriptors


def _parents(paths: Iterable[str]) -> list[str]:
    """All folders above these paths: bwrap makes what is missing for its own user only."""
    folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return sorted(folder for folder in folders if folder != "/" and not folder.startswith("/usr"))


def _namespaces(network: bool) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--hostname", "retrial")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv")
    if network:
        yield "--share-net"
    yield from ("--proc", "/proc", "--dev", "/dev")


def _system(etc: Iterable[str]) -> Iterator[str]:
    """The host's programs and libraries, path by path; never /etc or a home as a whole."""
    yield from ("--ro-bind", "/usr", "/usr")
    for folder in MERGED:
        if os.path.islink(folder):
            yield from ("--symlink", os.readlink(folder), folder)
        else:
            yield from ("--ro-bind-try", folder, folder)
    for path in etc:
        yield from ("--ro-bind-try", path, path)


def _writable(limits: Limits) -> Iterator[str]:
    yield from ("--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm")
    yield from ("--perms", "1777", "--size", str(limits.disk_mb << 20), "--tmpfs", "/tmp")


def _memory_file(content: bytes, stack: ExitStack) -> int:
    descriptor = os.memfd_create("retrial")
    stack.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


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
    return _stores.root(language, _toolchain(language).version)


@functools.cache
def _help() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout


@functools.cache
def _version() -> str:
    return subprocess.run(["bwrap", "--version"], capture_output=True, text=True).stdout.split()[-1]


def _check_tool() -> None:
    if not shutil.which("bwrap"):
        raise SandboxError("bubblewrap is not installed: install the package 'bubblewrap'.")
    if missing := [option for option in NEEDED if option not in _help()]:
        raise SandboxError(f"bubblewrap is too old: it has no {missing[0]}.")


def _trial(environment: Environment) -> Job:
    """Names what the job's user cannot read of the toolchain."""
    paths = shlex.join(target for _, target in _toolchain(environment.language).binds)
    script = f'for path in {paths}; do test -r "$path" || echo "$path"; done'
    return Job(environment=environment, script=script, files={})
