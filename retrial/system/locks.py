"""Locks between processes, on files: the kernel releases them when their holder ends, however it ends.

A run is locked by one process: two would ask the same questions, and neither would know what the other spends. On a
folder that several machines share its lock holds between them as far as the file system carries locks: NFS does, unless
it was mounted with `nolock` or `local_lock`. Where the file system has no locks, a note says so and nothing is guarded.

A process has a lease: a lock on `<cache>/alive/<name>` until it ends, and notes there where it makes what kind of
things, so that what an expired lease left can be removed. Pids are not compared: they are reused, and mean
something else in another container. Who is not here cannot be judged: neither an owner whose file lies in another
cache, nor one of another machine that shares this cache, for locks do not reach that far on every file system.
"""

from __future__ import annotations

import atexit
import datetime
import errno
import fcntl
import functools
import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from retrial.errors import UsageError
from retrial.system import paths
from retrial.system.console import say

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
ALIVE = "alive"
VARIABLE = "RETRIAL_OWNER"
"""Of processes that may outlive us."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLock:
    """What only one process may do to a run at a time."""

    file: str
    taken: str
    """Completes "Run NAME …" while another process holds the lock."""
    help: str


PREDICTING = RunLock(
    file="run.lock", taken="is under way in another process", help="wait for it, end it, or name another run with --run"
)
SCORING = RunLock(file="scoring.lock", taken="is being scored by another process", help="wait for it, or end it")


@contextmanager
def file_lock(
    path: Path, *, shared: bool = False, wait: bool = True, on_wait: Callable[[], None] | None = None
) -> Iterator[int]:
    """Hold a lock on this file, which is made if it is missing. Yields its descriptor: a child process that inherits it
    holds the lock too, until it ends.

    `on_wait` is called before waiting for another process.

    Raises: BlockingIOError when another process holds it and this one shall not wait.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                raise
            if on_wait:
                on_wait()
            fcntl.flock(file, kind)
        yield file.fileno()


def release(lock: int) -> None:
    """Give up a lock that a child process may hold as well: closing the file would leave it to the child."""
    fcntl.flock(lock, fcntl.LOCK_UN)


@contextmanager
def run_lock(folder: Path, name: str, claim: RunLock) -> Iterator[Callable[[], str]]:
    """Lock the folder of the run with this name until the end, also of a process that is killed. Yields a function that
    returns why it is no longer held.

    Raises: UsageError while another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / claim.file
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        _lock(opened, path, name, claim)
        _say_who(opened)
        yield partial(_lost, opened, path)
    finally:
        os.close(opened)


def _lock(opened: int, path: Path, name: str, claim: RunLock) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"Run '{name}' {claim.taken}{_holder(path)}: {claim.help}.") from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        say(f"note: {path.parent} knows no locks: nothing keeps a second process from this run")


def _lost(opened: int, path: Path) -> str:
    """In one sentence; empty while it is held."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(opened), os.stat(path)):
            return ""
    return f"the lock file {path} was removed"


def _say_who(opened: int) -> None:
    """Only for people to read: what counts is the lock, so a full disk is no reason not to go on."""
    since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with suppress(OSError):
        os.ftruncate(opened, 0)
        os.pwrite(opened, json.dumps({"pid": os.getpid(), "host": os.uname().nodename, "since": since}).encode(), 0)


def _holder(path: Path) -> str:
    try:
        told = json.loads(path.read_bytes())
        return f" (pid {told['pid']} on {told['host']}, since {told['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        # It has only just begun.
        return ""


class ResourceKind(StrEnum):
    """What outlives its maker, in the order in which it can be removed."""

    PROCESSES = "processes"
    """Of this host, with a variable that names the owner."""
    CONTAINERS = "containers"
    """Of the engine at that address, with a label that names the owner."""
    CGROUPS = "cgroups"
    """In that folder, their names beginning with the owner's."""
    FOLDERS = "folders"
    """In that folder, named as `scratch` names them."""
    FILES = "files"
    """In that folder, not whole yet, named as `store` names them."""

    @property
    def one(self) -> str:
        return self.removesuffix("es" if self is ResourceKind.PROCESSES else "s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A running kernel; `machine` is the same after it was started again."""

    machine: str
    boot: str
    namespaces: str
    """Of mounts and processes: in a container, others than its host's."""

    def reaches(self, other: Host) -> bool:
        """Whether our locks are theirs too, or all that they had running has ended with that boot."""
        return self.boot == other.boot or self.machine == other.machine

    def sees(self, other: Host) -> bool:
        """Whether their folders and processes are ours too; an engine can be reached from anywhere."""
        return self.boot != other.boot or self.namespaces == other.namespaces


@functools.cache
def this_host() -> Host:
    known = [os.uname().nodename]
    with suppress(OSError):
        known.append(Path("/etc/machine-id").read_text(encoding="ascii").strip())
    return Host(
        machine=" ".join(known),
        boot=Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        namespaces=" ".join(os.readlink(f"/proc/self/ns/{kind}") for kind in ("mnt", "pid")),
    )


class Lease:
    """This process. If it can have no file (the cache is read-only, or has no locks) nobody ever takes it for dead."""

    def __init__(self, folder: Path) -> None:
        self.name = secrets.token_hex(6)
        self._path = folder / self.name
        self._places: set[tuple[ResourceKind, str]] = set()
        self._lock = threading.Lock()
        self._leaves = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
            fcntl.flock(self._file, fcntl.LOCK_EX)
            self._write({**asdict(this_host()), "pid": os.getpid()})
        except OSError as error:
            _LOG.warning("What is left if this process is killed will not be removed: %s", error)
            self._file = -1

    def register(self, kind: ResourceKind, place: str) -> None:
        """To be said before something is made there."""
        if (kind, place) in self._places:
            return
        with self._lock:
            if self._file >= 0:
                self._write({"kind": kind, "place": place})
            self._places.add((kind, place))

    def abandon(self, what: str) -> None:
        """Something could not be removed: it is left to the next start of a program."""
        _LOG.warning("Left to the next start: %s", what)
        self._leaves = True

    def end(self) -> None:
        if self._file >= 0 and not self._leaves:
            self._path.unlink(missing_ok=True)

    def _write(self, line: Mapping[str, str | int]) -> None:
        # A full disk is no reason not to work: then something may stay behind if we are killed.
        with suppress(OSError):
            os.write(self._file, json.dumps(line).encode() + b"\n")


_owners: dict[tuple[int, Path], Lease] = {}
_meeting = threading.Lock()


def current_lease() -> Lease:
    # A forked process is somebody else, and holds the lock of its parent beside its own.
    key = (os.getpid(), paths.cache())
    found = _owners.get(key)
    if found is None:
        with _meeting:
            if not _owners:
                atexit.register(_end)
            found = _owners[key] = _owners.get(key) or Lease(paths.cache() / ALIVE)
    return found


def register_resource(kind: ResourceKind, place: Path | str) -> str:
    """Our name, for something of that kind that is about to be made at that place."""
    owner = current_lease()
    owner.register(kind, str(place.absolute() if isinstance(place, Path) else place))
    return owner.name


def _end() -> None:
    for (pid, _), owner in _owners.items():
        if pid == os.getpid():
            owner.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiredLease:
    """An owner that was killed, or could not remove all that it had made."""

    name: str
    pid: int
    made: tuple[tuple[ResourceKind, str], ...]
    """Kinds and places, in the order in which they can be removed."""
    whole: bool
    """That is all; else somebody else has to remove the rest."""
    _path: Path

    def forget(self) -> None:
        # In somebody else's cache: then they will.
        with suppress(OSError):
            self._path.unlink(missing_ok=True)


def expired_leases() -> Generator[ExpiredLease, None, None]:
    """Each locked while it is looked at: of two programs that start at once, one removes what it left."""
    try:
        names = sorted(os.listdir(paths.cache() / ALIVE))
    except OSError:
        return
    for name in names:
        # Held by its owner or by another who removes, just forgotten, or another user's.
        with suppress(OSError), (paths.cache() / ALIVE / name).open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if found := _read(Path(file.name), file.read()):
                yield found


def _read(path: Path, content: bytes) -> ExpiredLease | None:
    """None when it cannot be judged from here, or has only just begun to live."""
    first, *rest = content.splitlines() or [b""]
    try:
        told = json.loads(first)
        theirs = Host(machine=told["machine"], boot=told["boot"], namespaces=told.get("namespaces", ""))
        pid = int(told["pid"])
    except (ValueError, KeyError, TypeError):
        return None
    if not this_host().reaches(theirs):
        return None
    made, kinds = {each for line in rest if (each := _made(line))}, list(ResourceKind)
    seen = {each for each in made if each[0] is ResourceKind.CONTAINERS or this_host().sees(theirs)}
    in_order = tuple(sorted(seen, key=lambda each: (kinds.index(each[0]), each[1])))
    return ExpiredLease(name=path.name, pid=pid, made=in_order, whole=seen == made, _path=path)


def _made(line: bytes) -> tuple[ResourceKind, str] | None:
    try:
        told = json.loads(line)
        return ResourceKind(told["kind"]), str(told["place"])
    except (ValueError, KeyError, TypeError):
        # Torn: it was killed before it made anything there.
        return None
