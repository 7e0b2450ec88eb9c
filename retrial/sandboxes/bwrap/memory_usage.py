"""How much memory the processes of a bubble use, as the user who started it can see from outside.

Counted are private pages and page tables of every process, shared memory with and without a name, and files in the
bubble's tmpfs mounts. Other memory of the kernel, such as the buffers of sockets, cannot be seen without a cgroup.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

TMPFS = ("tmp", "dev/shm")
"""The only places in a bubble that grow in memory when they are written to."""
INODE_BYTES = 1024
"""Kernel memory of a file, however small."""
BLOCK = 512
KCMP = {"x86_64": 312, "aarch64": 272}
KCMP_VM = 1
FIELD = re.compile(rb"^(\w+):\s+(\d+)", re.MULTILINE)
INNER_PID = re.compile(rb"^NSpid:.*?(\d+)$", re.MULTILINE)
UNSEEN = (FileNotFoundError, NotADirectoryError, ProcessLookupError, PermissionError)
"""The process has ended, or may not be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of a bubble that has memory, in bytes; `pid` and `parent` are its numbers inside."""

    folder: str
    """In /proc: that of a thread, if the first one has ended and left the memory to the others."""
    pid: int
    parent: int
    size: int
    anonymous: int
    """Private pages. What a fork left shared is in the count of parent and child."""
    tables: int
    badness: int
    """The larger, the sooner the kernel would kill it."""


class Hidden(Exception):
    """A process keeps its memory from being counted: it is not dumpable, so its files and mappings cannot be read."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.pid)
        self.process = process


class BubbleMemory:
    def __init__(self, first: int) -> None:
        """`first`: the pid outside of its first process."""
        # Stays that process's own when the number is used again.
        self._first = os.open(f"/proc/{first}", os.O_PATH | os.O_DIRECTORY)
        self._root = f"/proc/self/fd/{self._first}/root"
        self._proc = f"{self._root}/proc"

    def close(self) -> None:
        os.close(self._first)

    def is_laid_out(self) -> bool:
        """Whether its mounts are in place: until then these paths may lead to the host's."""
        try:
            inside, outside = os.stat(f"{self._proc}/1"), os.stat("/proc")
        except UNSEEN:
            return False
        return inside.st_dev != outside.st_dev

    def processes(self) -> list[Process]:
        """All of them: a job cannot mount anything over the bubble's /proc."""
        names = (name for name in _listed(self._proc) if name.isdigit())
        return [process for name in names if (process := self._process(name))]

    def _process(self, name: str) -> Process | None:
        folder = f"{self._proc}/{name}"
        fields = _fields(folder)
        if b"RssAnon" not in fields and fields.get(b"Threads", 1) > 1:
            for thread in _listed(f"{folder}/task"):
                fields = _fields(f"{folder}/task/{thread}")
                if b"RssAnon" in fields:
                    folder = f"{folder}/task/{thread}"
                    break
        if b"RssAnon" not in fields:
            return None
        swap, tables = fields.get(b"VmSwap", 0), fields.get(b"VmPTE", 0)
        return Process(
            folder=folder,
            pid=int(name),
            parent=fields[b"PPid"],
            size=fields[b"VmSize"] << 10,
            anonymous=(fields[b"RssAnon"] + swap) << 10,
            tables=tables << 10,
            badness=(fields[b"VmRSS"] + swap + tables) << 10,
        )

    def cpu_seconds(self, processes: list[Process]) -> float:
        """Return the CPU time of these processes and of all that they have reaped."""
        ticks = 0
        for process in processes:
            fields = _read(f"{process.folder}/stat").rpartition(b") ")[2].split()
            ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def wants_cpu(self) -> bool:
        return any(is_runnable(f"{self._proc}/{process.pid}") for process in self.processes())

    def at_most(self, processes: list[Process]) -> int:
        """Return an upper bound, quickly. Raises: Hidden."""
        return sum(process.anonymous + process.tables for process in processes) + self._others(processes)

    def exactly(self, processes: list[Process]) -> int:
        """Count every private page once: for this the kernel walks all page tables. Raises: Hidden."""
        separate = [process for process in processes if not self._borrows(process, processes)]
        counted = [(process, _proportional(process) + process.tables) for process in separate]
        # What a process shared passes to the others when it ends: counted with both, it would count twice.
        return sum(size for process, size in counted if self.has(process)) + self._others(processes)

    def _others(self, processes: list[Process]) -> int:
        return _shared(processes) + sum(_files(f"{self._root}/{place}") for place in TMPFS)

    def _borrows(self, process: Process, processes: list[Process]) -> bool:
        """Return whether it runs in its parent's memory (vfork), as between a fork and the start of a program."""
        parent = next((each for each in processes if each.pid == process.parent), None)
        if not parent or parent.size != process.size:
            return False
        outside = self._outside()
        return process.pid in outside and parent.pid in outside and _same(outside[process.pid], outside[parent.pid])

    def _outside(self) -> Mapping[int, int]:
        """Pid inside → pid outside."""
        namespace = _inode(f"{self._proc}/1/ns/pid")
        found = {}
        for name in _listed("/proc"):
            if not namespace or not name.isdigit() or _inode(f"/proc/{name}/ns/pid") != namespace:
                continue
            if inner := INNER_PID.search(_read(f"/proc/{name}/status")):
                found[int(inner[1])] = int(name)
        return found

    def kill(self, process: Process) -> None:
        with suppress(*UNSEEN):
            folder = os.open(f"{self._proc}/{process.pid}", os.O_RDONLY | os.O_DIRECTORY)
            try:
                signal.pidfd_send_signal(folder, signal.SIGKILL)
            finally:
                os.close(folder)

    def has(self, process: Process) -> bool:
        """Return whether it still has memory."""
        return self._process(str(process.pid)) is not None


def is_runnable(folder: str) -> bool:
    """Return whether a thread of the process with this folder in /proc runs, or would if it got a processor."""
    stats = (_read(f"{folder}/task/{thread}/stat") for thread in _listed(f"{folder}/task"))
    # The name before it is in brackets, and may hold some itself.
    return any(stat.rpartition(b") ")[2].startswith(b"R") for stat in stats)


def _proportional(process: Process) -> int:
    fields = _fields(process.folder, "smaps_rollup")
    if b"Pss_Anon" in fields:
        return (fields[b"Pss_Anon"] + fields.get(b"SwapPss", 0)) << 10
    return process.anonymous if os.path.exists(process.folder) else 0


def _shared(processes: list[Process]) -> int:
    """Count shared memory that is in no tmpfs mount, each piece once.

    The size of a memfd is known while a process has it open. Of other shared memory only mappings are known; it keeps
    pages that no process maps any more, so all of it counts.
    """
    mapped: dict[int, int] = {}
    opened: dict[int, int] = {}
    for process in processes:
        for inode, end in _mappings(process.folder):
            mapped[inode] = max(end, mapped.get(inode, 0))
        opened |= _open_files(process)
    return sum({**mapped, **opened}.values())


def _mappings(folder: str) -> Iterator[tuple[int, int]]:
    """(Inode, offset at which the mapping ends) of shared memory."""
    device = b" %02x:%02x " % (os.major(_device()), os.minor(_device()))
    maps = _read(f"{folder}/maps")
    for line in maps.splitlines() if device in maps else ():
        if device in line:
            span, _, offset, _, inode, *_ = line.split()
            start, end = (int(address, 16) for address in span.split(b"-"))
            yield int(inode), int(offset, 16) + end - start


def _open_files(process: Process) -> dict[int, int]:
    """Inode → bytes of shared memory that is open as a file. Raises: Hidden."""
    found = {}
    folder = f"{process.folder}/fd"
    try:
        descriptors = os.listdir(folder)
    except PermissionError:
        # Files of a process that has lost its memory cannot be read either. The bubble's first process is bwrap's own.
        if process.pid != 1 and b"RssAnon" in _fields(process.folder):
            raise Hidden(process) from None
        descriptors = []
    except UNSEEN:
        descriptors = []
    for descriptor in descriptors:
        with suppress(OSError):
            seen = os.stat(f"{folder}/{descriptor}")
            if seen.st_dev == _device():
                found[seen.st_ino] = seen.st_blocks * BLOCK
    return found


@functools.cache
def _device() -> int:
    """The kernel's own mount, which all shared memory without a place in a file system is in."""
    descriptor = os.memfd_create("retrial")
    try:
        return os.fstat(descriptor).st_dev
    finally:
        os.close(descriptor)


def _files(mount: str) -> int:
    try:
        seen = os.statvfs(mount)
    except UNSEEN:
        return 0
    return (seen.f_blocks - seen.f_bfree) * seen.f_frsize + (seen.f_files - seen.f_ffree) * INODE_BYTES


def _same(first: int, second: int) -> bool:
    """Return whether two processes have the same memory; False where the kernel cannot tell."""
    call = KCMP.get(platform.machine())
    return call is not None and ctypes.CDLL(None).syscall(call, first, second, KCMP_VM, 0, 0) == 0


def _fields(folder: str, name: str = "status") -> dict[bytes, int]:
    return {field: int(number) for field, number in FIELD.findall(_read(f"{folder}/{name}"))}


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except UNSEEN:
        return b""


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except UNSEEN:
        return []


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except UNSEEN:
        return 0
