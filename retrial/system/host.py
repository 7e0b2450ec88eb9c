"""What this machine has: cores, free memory, disk space with a reserve; and helper processes that we start on it."""

from __future__ import annotations

import errno
import functools
import logging
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from retrial.errors import UsageError
from retrial.types import Execution, HostCapacity, Limits

LEAST_SHARE = 0.25
"""Of that memory, what must be there now before another job is started."""
OWN_CORE = 0.8
"""Of a job's time, the share of a core that it must have had if its time-out is its own."""
IDLE_CORES = 0.5
"""So many were idle on average: whatever the job had to do, it was not kept waiting for a core."""
_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_QUOTAS = {"cpu.max": "", "cpu.cfs_quota_us": "cpu.cfs_period_us"}
"""File with a CPU quota → the file with its period, unless that is in the same one."""
_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
LEAST_FREE = 32 << 20
"""Bytes that stay free."""
PER_TASK = 256 << 10
"""Bytes more for each task under way: its replies, its prediction, its chat, the log of its tests."""
LEAST_FILES = 200
"""As many can be made."""
RESERVE = ".reserve"
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
MB = 1_000_000
_LOG = logging.getLogger(__name__)
_reserves: list[Path] = []
_HELPERS = threading.BoundedSemaphore(2 * len(os.sched_getaffinity(0)))
"""Helper processes (git, ruff): hundreds of tasks in flight must not start hundreds of them. Each has a time limit, and
one that starves among the others would be taken for one that hangs."""
_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def capacity() -> HostCapacity:
    return HostCapacity(cores=max(1, int(usable_cores())), memory_mb=free_mb())


def usable_cores() -> float:
    """Return what this process and its children may use: within their CPU affinity and every quota set for them."""
    return min([len(os.sched_getaffinity(0)), *_quotas()])


def _quotas() -> Iterator[float]:
    for folder, _ in _cgroups("cpu"):
        for name, period in _QUOTAS.items():
            with suppress(OSError, ValueError):
                texts = [_read(f"{folder}/{file}") for file in (name, period) if file]
                quota, every = map(int, " ".join(texts).split())
                if quota > 0 and every > 0:
                    yield quota / every


def has_room() -> bool:
    """Whether there is memory for one more job now."""
    return free_mb() >= LEAST_SHARE * Limits().memory_mb


def may_be_load(limits: Limits, execution: Execution) -> bool:
    """Whether a job ran out of wall time perhaps only because others used the machine: it had no core to itself, and
    none was idle. A limit of CPU time does not depend on others."""
    used, idle = execution.cpu_seconds, execution.idle_cores
    own = used is not None and used >= OWN_CORE * execution.seconds
    return execution.timed_out and limits.cpu_seconds is None and not own and (idle is None or idle < IDLE_CORES)


def idle_seconds() -> float:
    """Of all cores that we may use, since the machine was started."""
    names = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    lines = map(str.split, _read(f"{_PROC}/stat").splitlines())
    return sum(int(line[4]) for line in lines if line[0] in names) / os.sysconf("SC_CLK_TCK")


def free_mb() -> float:
    """What this process and its children can still get: of the machine, and within every limit that is set for us."""
    available = next(line for line in _read(f"{_PROC}/meminfo").splitlines() if line.startswith("MemAvailable:"))
    lefts = [_left(folder, *(_V2 if unified else _V1)) for folder, unified in _cgroups("memory")]
    return min([int(available.split()[1]) / 1024, *(left / (1 << 20) for left in lefts if left is not None)])


def _cgroups(controller: str) -> tuple[tuple[str, bool], ...]:
    """Return the cgroups of this process that may set a limit, and those above them; whether each is of version 2."""
    return _cgroups_in(_read(f"{_PROC}/self/cgroup"), controller, _CGROUPS)


@functools.cache
def _cgroups_in(memberships: str, controller: str, mount: Path) -> tuple[tuple[str, bool], ...]:
    """Cached, since free memory is asked for with every job."""
    found: list[tuple[str, bool]] = []
    for line in memberships.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = mount / controller if controllers else mount
        own = root / path.lstrip("/")
        found += ((str(folder), not controllers) for folder in (own, *own.parents) if folder.is_relative_to(root))
    return tuple(found)


def _left(folder: str, limit: str, used: str, idle: str) -> int | None:
    """Bytes, files that are only kept in memory not counted; None where there is no limit, or no such group to see."""
    try:
        most = _read(f"{folder}/{limit}").strip()
        now = int(_read(f"{folder}/{used}"))
        pairs = dict(line.split() for line in _read(f"{folder}/memory.stat").splitlines())
    except (OSError, ValueError):
        return None
    return max(0, int(most) - now + int(pairs.get(idle, 0))) if most.isdigit() else None


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


class DiskSpace:
    """Where a program writes, and how much must be free there."""

    def __init__(self, folders: Iterable[Path], under_way: int) -> None:
        self._temporary = Path(os.environ.get("TMPDIR") or tempfile.gettempdir())
        self._folders = tuple(dict.fromkeys((*folders, self._temporary)))
        self._under_way = under_way
        self._first = dict[Path, tuple[int, int]]()
        """What these folders were when they were looked at first."""
        self._floor = LEAST_FREE + PER_TASK * under_way

    def refuse_unwritable(self) -> None:
        """Make these folders, but not the one for temporary files, which is not ours.

        Raises: UsageError naming the first that nothing can be written to.
        """
        for folder in self._folders:
            try:
                if folder != self._temporary:
                    folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                if error.errno not in DISK_FULL:
                    raise UsageError(
                        f"{folder} cannot be written to: {error.strerror}. Make it a folder of yours, or name another "
                        "(RETRIAL_HOME, RETRIAL_CACHE, TMPDIR)."
                    ) from error

    @contextmanager
    def reserved(self, folder: Path) -> Iterator[None]:
        """Keep some room in this folder, to be given up for what has to be written when the disk is full."""
        path = folder / RESERVE
        # Where there is no room for it, nothing will be begun anyway.
        with suppress(OSError), path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, PER_TASK * (self._under_way + 4))
        _reserves.append(path)
        try:
            yield
        finally:
            _reserves.remove(path)
            path.unlink(missing_ok=True)

    def shortage(self) -> str:
        """Where there is too little room to begin anything, in one sentence; empty while there is enough."""
        return next((why for folder in self._folders if (why := self._shortage(folder))), "")

    def _shortage(self, folder: Path) -> str:
        try:
            seen, found = os.stat(folder), os.statvfs(folder)
        except OSError as error:
            return f"{folder} cannot be looked at: {error.strerror}"
        if self._first.setdefault(folder, (seen.st_dev, seen.st_ino)) != (seen.st_dev, seen.st_ino):
            return f"{folder} is not the folder that it was: somebody took that away"
        free = found.f_bavail * found.f_frsize
        if free < self._floor:
            return f"{free / MB:.0f} MB are free in {folder}, too few ({self._floor / MB:.0f} are needed): make room"
        if found.f_files and found.f_favail < LEAST_FILES:
            return f"only {found.f_favail} more files can be made in {folder}: remove some there"
        return ""


def give_up_reserve(error: OSError) -> None:
    """After a write that failed: where the disk is full, make room for another try.

    Raises: that error if there is nothing to give up, or the disk is not full.
    """
    if error.errno not in DISK_FULL or not _reserves:
        raise error
    _LOG.error("The disk is full: the reserve is given up.", extra={"error": str(error)})
    for path in _reserves:
        # Another thread may have been first.
        path.unlink(missing_ok=True)


def run_helper(command: tuple[str, ...], *, timeout: float, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run`, a few at a time; its time begins with its turn. Ctrl-C is for us: what runs may finish."""
    with _HELPERS, _undisturbed():
        return subprocess.run(command, timeout=timeout, start_new_session=True, **how)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """For a moment, before it has a session of its own, a program is in ours: it begins with these signals blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_US)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
