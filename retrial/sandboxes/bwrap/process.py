"""One bubblewrap: what can be seen in it, and how it lives and dies. For the jobs of tests, and for agents."""

from __future__ import annotations

import functools
import os
import resource
import select
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from retrial.errors import SandboxError
from retrial.sandboxes import supervisor
from retrial.sandboxes.bwrap import limits as job_limits
from retrial.sandboxes.bwrap import privileges
from retrial.system import locks
from retrial.types import Limits

SHM_BYTES = 64 << 20
OWN_PROCESSES = 3
"""bwrap itself, its pid 1 inside, and the supervisor."""
MERGED = ("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin")
ETC = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
ETC_NETWORK = (
    "/etc/resolv.conf", "/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted"
)  # fmt: skip
FILES: Mapping[str, bytes] = {
    "/etc/passwd": b"nobody:x:65534:65534:nobody:/tmp/home:/bin/sh\n",
    "/etc/group": b"nogroup:x:65534:\n",
    "/etc/hosts": b"127.0.0.1 localhost retrial\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
}
OUTER_VARIABLES = ("PATH", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
NEEDED = ("--unshare-all", "--perms", "--size", "--remount-ro", "--die-with-parent", "--clearenv", "--seccomp")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What there is inside, beside /usr: all of it read-only, but for /tmp, /dev/shm and `writable`."""

    binds: tuple[tuple[str, str], ...] = ()
    """(Path on the host, path inside), those above others first."""
    writable: tuple[tuple[str, str], ...] = ()
    covered: tuple[str, ...] = ()
    """What would be in view, and is not: such a folder is empty, such a file cannot be read."""
    symlinks: tuple[tuple[str, str], ...] = ()
    """(Target, path inside)."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Beside `FILES`, which they may replace."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Anybody on this host can read them in the list of processes."""
    disk_mb: int
    network: bool = False


class Bubble:
    """bwrap while it runs one command; afterwards every process in it is dead."""

    def __init__(
        self, command: Iterable[str], view: View, slot: job_limits.JobLimits, limits: Limits, *, stdin: int, stderr: int
    ) -> None:
        """`stdin` and `stderr` as for a subprocess; stdout is a pipe."""
        self._slot = slot
        self._ended = -1
        with ExitStack() as stack:
            nobody = privileges.Nobody(stack) if os.geteuid() == 0 else None
            info, info_there = privileges.pipe(stack)
            options, descriptors = _options(view, stack)
            identity = ["--info-fd", str(info_there.fileno()), *(nobody.options if nobody else _alone())]
            inside = (*(nobody.command if nobody else ()), *_inside(limits), *command)
            self.popen = subprocess.Popen(
                [*slot.prefix, "bwrap", *options, *identity, "--", *inside],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                pass_fds=(*descriptors, info_there.fileno(), *((nobody.descriptor,) if nobody else ())),
                start_new_session=True,
                # Not ours: pid 1 of the sandbox is a copy of bwrap, and shows what bwrap was started with.
                env=_outer_variables(),
            )
            # Our copy of its end, so that its death is the end of the stream.
            info_there.close()
            child = privileges.first_process(info)
            if child and nobody:
                nobody.introduce(child)
        if child:
            # In time: what is inside starts nothing before it is told to, or before it has been introduced.
            self._adopt(child)

    def _adopt(self, child: int) -> None:
        try:
            with suppress(ProcessLookupError):
                self._ended = os.pidfd_open(child)
            self._slot.adopt(child)
            for process in (child, *job_limits.children(child)):
                _limit(process)
        except SandboxError:
            self.__exit__()
            raise

    def __enter__(self) -> Bubble:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe:
                pipe.close()

    def open_pipes(self) -> None:
        """Never to wait for them; and a program inside may open them anew, as the user it is by then."""
        for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
            if pipe:
                os.set_blocking(pipe.fileno(), False)
                if os.geteuid() == 0:
                    os.fchown(pipe.fileno(), privileges.ID, privileges.ID)

    def kill(self) -> None:
        """With bwrap dies its pid namespace; its pid 1, and the cgroup, say when the last process is gone."""
        if self.popen.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        if self._ended >= 0:
            ending = select.poll()
            ending.register(self._ended, select.POLLIN)
            ending.poll(1000 * job_limits.PATIENCE)
            # Forgotten first: an interrupt between the two must not lead to closing it twice.
            ended, self._ended = self._ended, -1
            os.close(ended)
        self._slot.kill()


def _outer_variables() -> dict[str, str]:
    """With our name: bwrap dies with us, but the copy that it makes of itself does so only once it is laid out."""
    found = {name: os.environ[name] for name in OUTER_VARIABLES if name in os.environ}
    return {**found, locks.VARIABLE: locks.register_resource(locks.ResourceKind.PROCESSES, "")}


def check_tool() -> None:
    """Raises: SandboxError."""
    if not shutil.which("bwrap"):
        raise SandboxError("bubblewrap is not installed: install the package 'bubblewrap'.")
    if missing := [option for option in NEEDED if option not in _help()]:
        raise SandboxError(f"bubblewrap is too old: it has no {missing[0]}.")


@functools.cache
def version() -> str:
    return subprocess.run(["bwrap", "--version"], capture_output=True, text=True).stdout.split()[-1]


@functools.cache
def _help() -> str:
    return subprocess.run(["bwrap", "--help"], capture_output=True, text=True).stdout


def with_room(limits: Limits) -> Limits:
    """A cgroup counts the sandbox's own processes too."""
    return replace(limits, processes=limits.processes + OWN_PROCESSES)


def _alone() -> list[str]:
    """Who the job is when Retrial is an ordinary user: still that user for the host, but under another number."""
    options = ["--uid", str(privileges.ID), "--gid", str(privileges.ID)]
    return [*options, "--disable-userns"] if "--disable-userns" in _help() else options


def _limit(process: int) -> None:
    # A bwrap that is root's own may not be told; then the supervisor's own limit is all.
    with suppress(ProcessLookupError, PermissionError):
        for name, most in supervisor.RLIMITS.items():
            resource.prlimit(process, getattr(resource, f"RLIMIT_{name.upper()}"), (most, most))


def _inside(limits: Limits) -> tuple[str, ...]:
    commands = job_limits.method().inside(limits)
    return ("sh", "-c", commands + 'exec "$@"', "sh") if commands else ()


def _options(view: View, stack: ExitStack) -> tuple[list[str], list[int]]:
    """For bwrap, and the descriptors they name."""
    files = {**FILES, **view.files}
    etc = (*ETC, *(ETC_NETWORK if view.network else ()))
    options = [*_namespaces(view.network), *_writable(view.disk_mb)]
    mounted = (path for _, path in (*view.binds, *view.writable, *view.symlinks))
    for folder in _parents((*etc, *files, *mounted)):
        options += ["--dir", folder]
    options += _system(etc)
    for _, option in sorted(_mounts(view)):
        options += option
    for target, path in view.symlinks:
        options += ["--symlink", target, path]
    descriptors = []
    for path, content in files.items():
        descriptors.append(_memory_file(content, stack))
        options += ["--perms", "0444", "--file", str(descriptors[-1]), path]
    # Some belong to the job's user, who could fill memory there.
    for path in filter(os.path.isdir, view.covered):
        options += ["--remount-ro", path]
    options += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]
    if refused := privileges.seccomp_filter():
        descriptors.append(_memory_file(refused, stack))
        options += ["--seccomp", str(descriptors[-1])]
    for name, value in view.variables.items():
        options += ["--setenv", name, value]
    return options, descriptors


def _mounts(view: View) -> Iterator[tuple[str, list[str]]]:
    """By path, so that what lies below another mount comes after it."""
    for source, target in view.binds:
        yield target, ["--ro-bind", source, target]
    for source, target in view.writable:
        yield target, ["--bind", source, target]
    for path in view.covered:
        hide = ["--perms", "0755", "--tmpfs"] if os.path.isdir(path) else ["--ro-bind", "/dev/null"]
        yield path, [*hide, path]


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


def _writable(disk_mb: int) -> Iterator[str]:
    yield from ("--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm")
    yield from ("--perms", "1777", "--size", str(disk_mb << 20), "--tmpfs", "/tmp")


def _memory_file(content: bytes, stack: ExitStack) -> int:
    descriptor = os.memfd_create("retrial")
    stack.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
