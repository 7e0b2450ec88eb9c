"""One bubblewrap: what can be seen and done in it, and how it lives and dies. For the jobs of tests, and for agents.

A user namespace of one's own does not make root harmless: its one user stays the host's user 0 for every file that the
sandbox shows, and that user may write `/proc/sys` and change the mode of `/dev/null`, capabilities or not (seen). So
the namespace gets a second user: bwrap lays out the sandbox as the first, and the job becomes the second.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import platform
import resource
import select
import shutil
import signal
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from retrial.errors import SandboxError
from retrial.sandboxes import supervisor
from retrial.system import locks

if TYPE_CHECKING:
    from retrial.sandboxes.bwrap.limits import JobLimits

PATIENCE = 60.0
"""Seconds for killed processes to go and for an empty cgroup to be removable: a dead fork bomb takes its time on a busy
machine. What is not gone by then is not measured, and a patch must not be able to choose that."""
SHM_BYTES = 64 << 20
OWN_PROCESSES = 3
"""bwrap itself, its pid 1 inside, and the supervisor. A cgroup counts them too."""
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
NAMESPACES = (
    "--unshare-all", "--unshare-user", "--hostname", "retrial",
    "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"
)  # fmt: skip
NEEDED = ("--unshare-all", "--perms", "--size", "--remount-ro", "--die-with-parent", "--clearenv", "--seccomp")

USER = 65534
"""Number of the second user."""
WATCHERS, WATCHED = 12, 16_384
# Inside, still as the first user: no further user namespaces (what --disable-userns does), then become the second.
# What watches files is counted for the first user too, who is root: one job could take all that root has.
BECOME = f"""\
echo 0 >/proc/sys/user/max_user_namespaces || exit 125
for kind in inotify fanotify; do
    for most in instances={WATCHERS} groups={WATCHERS} watches={WATCHED} marks={WATCHED}; do
        file=/proc/sys/user/max_${{kind}}_${{most%=*}}
        [ ! -e $file ] || echo ${{most#*=}} >$file
    done
done
exec setpriv --reuid {USER} --regid {USER} --clear-groups --inh-caps=-all -- "$@"
"""


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

    def __init__(self, command: Iterable[str], view: View, slot: JobLimits, *, stderr: int) -> None:
        """`stderr` as for a subprocess; stdin and stdout are pipes."""
        self._slot = slot
        self._ended = -1
        with ExitStack() as stack:
            nobody = Nobody(stack) if os.geteuid() == 0 else None
            info, info_there = pipe(stack)
            options, descriptors = _options(view, stack)
            identity = ["--info-fd", str(info_there.fileno()), *(nobody.options if nobody else _alone())]
            limited = ("sh", "-c", slot.inside + 'exec "$@"', "sh") if slot.inside else ()
            inside = (*(nobody.command if nobody else ()), *limited, *command)
            # With our name: bwrap dies with us, but the copy that it makes of itself does so only once it is laid out.
            own_name = locks.register_resource(locks.ResourceKind.PROCESSES, "")
            variables = {name: os.environ[name] for name in OUTER_VARIABLES if name in os.environ}
            self.popen = subprocess.Popen(
                [*slot.prefix, "bwrap", *options, *identity, "--", *inside],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                pass_fds=(*descriptors, info_there.fileno(), *((nobody.descriptor,) if nobody else ())),
                start_new_session=True,
                # Not ours: pid 1 of the sandbox is a copy of bwrap, and shows what bwrap was started with.
                env={**variables, locks.VARIABLE: own_name},
            )
            self._streams = [each for each in (self.popen.stdin, self.popen.stdout, self.popen.stderr) if each]
            # Our copy of its end, so that its death is the end of the stream.
            info_there.close()
            child = first_process(info)
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
            for process in (child, *children(child)):
                # A bwrap that is root's own may not be told; then the supervisor's own limit is all.
                with suppress(ProcessLookupError, PermissionError):
                    for name, most in supervisor.RLIMITS.items():
                        resource.prlimit(process, getattr(resource, f"RLIMIT_{name.upper()}"), (most, most))
        except SandboxError:
            self.__exit__()
            raise

    def __enter__(self) -> Bubble:
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()
        for stream in self._streams:
            stream.close()

    def open_pipes(self) -> None:
        """Never to wait for them; and a program inside may open them anew, as the user it is by then."""
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)
            if os.geteuid() == 0:
                os.fchown(stream.fileno(), USER, USER)

    def kill(self) -> None:
        """With bwrap dies its pid namespace; its pid 1, and the cgroup, say when the last process is gone."""
        if self.popen.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.popen.pid, signal.SIGKILL)
            self.popen.wait()
        if self._ended >= 0:
            ending = select.poll()
            ending.register(self._ended, select.POLLIN)
            ending.poll(1000 * PATIENCE)
            # Forgotten first: an interrupt between the two must not lead to closing it twice.
            ended, self._ended = self._ended, -1
            os.close(ended)
        self._slot.kill()


class Nobody:
    """The handshake with one bwrap in which we, who may, say which users its namespace has."""

    command = ("sh", "-c", BECOME, "sh")

    def __init__(self, stack: ExitStack) -> None:
        if not shutil.which("setpriv"):
            raise SandboxError("A sandbox for root needs 'setpriv': install the package 'util-linux'.")
        self._ready_there, self._ready = pipe(stack)
        self.descriptor = self._ready_there.fileno()
        # bwrap itself waits for the first. Only for the second does its child close the descriptor, too: else the job
        # would inherit it.
        self.options = ["--userns-block-fd", str(self.descriptor), "--block-fd", str(self.descriptor)]
        for name in ("CAP_SETUID", "CAP_SETGID", "CAP_SYS_RESOURCE"):
            self.options += ["--cap-add", name]

    def introduce(self, child: int) -> None:
        """Tell bwrap's child who it may be; if anything goes wrong it will end, and its own words say why."""
        with suppress(OSError):
            for kind in ("uid", "gid"):
                Path(f"/proc/{child}/{kind}_map").write_text(f"0 0 1\n{USER} {USER} 1\n")
            self._ready.write(b"\n")


def pipe(stack: ExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return stack.enter_context(FileIO(read, "r")), stack.enter_context(FileIO(write, "w"))


def first_process(info: FileIO) -> int:
    """Return the pid outside of a bubble's first process, as bwrap tells it; 0 when bwrap ended before it had one."""
    text = b""
    while not text.rstrip().endswith(b"}") and (data := info.read(4096)):
        text += data
    return int(json.loads(text)["child-pid"]) if text else 0


def check_tool() -> None:
    """Raises: SandboxError."""
    if not shutil.which("bwrap"):
        raise SandboxError("bubblewrap is not installed: install the package 'bubblewrap'.")
    if missing := [option for option in NEEDED if option not in _printed("--help")]:
        raise SandboxError(f"bubblewrap is too old: it has no {missing[0]}.")


def version() -> str:
    return _printed("--version").split()[-1]


@functools.cache
def _printed(option: str) -> str:
    return subprocess.run(["bwrap", option], capture_output=True, text=True).stdout


def _alone() -> list[str]:
    """Who the job is when Retrial is an ordinary user: still that user for the host, but under another number."""
    options = ["--uid", str(USER), "--gid", str(USER)]
    return [*options, "--disable-userns"] if "--disable-userns" in _printed("--help") else options


def children(process: int) -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _options(view: View, stack: ExitStack) -> tuple[list[str], list[int]]:
    """For bwrap, and the descriptors they name."""
    files = {**FILES, **view.files}
    etc = (*ETC, *(ETC_NETWORK if view.network else ()))
    options = [*NAMESPACES, *(["--share-net"] if view.network else []), "--proc", "/proc", "--dev", "/dev"]
    for folder, size in (("/dev/shm", SHM_BYTES), ("/tmp", view.disk_mb << 20)):
        options += ["--perms", "1777", "--size", str(size), "--tmpfs", folder]
    mounted = (path for _, path in (*view.binds, *view.writable, *view.symlinks))
    for folder in _parents(frozenset((*etc, *files, *mounted))):
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
    if refused := _seccomp_filter():
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


@functools.lru_cache(maxsize=32)
def _parents(paths: frozenset[str]) -> tuple[str, ...]:
    """All folders above these paths: bwrap makes what is missing for its own user only. Most jobs share them."""
    folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return tuple(sorted(folder for folder in folders if folder != "/" and not folder.startswith("/usr")))


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


def _memory_file(content: bytes, stack: ExitStack) -> int:
    file = stack.enter_context(FileIO(os.memfd_create("retrial"), "r+"))
    file.write(content)
    file.seek(0)
    return file.fileno()


# Refused calls: keys (a process inherits its parent's session keyring and may read it), sockets to the machine's own
# host (vsock: they belong to no network namespace), and rings (io_uring), which make sockets without a call that could
# be looked at. An engine has a filter of its own for its containers.
VSOCK = 40
LOAD, IF_EQUAL, IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, KIND, FIRST_ARGUMENT = 0, 4, 16
"""Where they are in what the kernel shows a filter."""
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
OTHER_NUMBERS = 0x40000000
"""From here on x86 has the same calls once more."""
MACHINES = {
    "x86_64": (0xC000003E, (248, 249, 250, 425), 41),
    "aarch64": (0xC00000B7, (217, 218, 219, 425), 198),
}
"""Kind, as the kernel's audit names it, and the numbers of calls: those for keys and rings, and `socket`. A program of
another kind (32 bits) has other numbers, and is refused all."""


def _seccomp_filter() -> bytes:
    """A filter as bwrap takes it; empty where the numbers of calls are not known."""
    machine = MACHINES.get(platform.machine())
    return b"".join(struct.pack("=HBBI", *each) for each in _program(*machine)) if machine else b""


def _program(kind: int, refused: tuple[int, ...], socket: int) -> Iterator[tuple[int, int, int, int]]:
    """(What to do, instructions to skip if so, and if not, with which number)."""
    count = len(refused)
    yield LOAD, 0, 0, KIND
    yield IF_EQUAL, 0, count + 6, kind
    yield LOAD, 0, 0, NUMBER
    yield IF_AT_LEAST, count + 4, 0, OTHER_NUMBERS
    for left, number in zip(range(count, 0, -1), refused, strict=True):
        yield IF_EQUAL, left + 3, 0, number
    yield IF_EQUAL, 0, 2, socket
    yield LOAD, 0, 0, FIRST_ARGUMENT
    yield IF_EQUAL, 1, 0, VSOCK
    yield RETURN, 0, 0, ALLOW
    yield RETURN, 0, 0, REFUSE
