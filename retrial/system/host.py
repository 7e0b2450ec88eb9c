"""What a machine has for sandboxes: cores, and memory that can still be used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from retrial.types import Execution, Limits, Machine

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


def here() -> Machine:
    return Machine(cores=max(1, int(usable_cores())), memory_mb=free_mb())


def usable_cores() -> float:
    """Return what this process and its children may use: within their CPU affinity and every quota set for them."""
    return min([len(os.sched_getaffinity(0)), *_quotas()])


def _quotas() -> Iterator[float]:
    for folder in _cgroups("cpu"):
        for name, period in _QUOTAS.items():
            with suppress(OSError, ValueError):
                texts = [(folder / file).read_text(encoding="ascii") for file in (name, period) if file]
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
    lines = map(str.split, (_PROC / "stat").read_text(encoding="ascii").splitlines())
    return sum(int(line[4]) for line in lines if line[0] in names) / os.sysconf("SC_CLK_TCK")


def free_mb() -> float:
    """What this process and its children can still get: of the machine, and within every limit that is set for us."""
    lines = (_PROC / "meminfo").read_text(encoding="ascii").splitlines()
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return min([kilobytes / 1024, *(left / (1 << 20) for left in _left_in_cgroups())])


def _left_in_cgroups() -> Iterator[int]:
    for folder in _cgroups("memory"):
        for names in (_V1, _V2):
            if (left := _left(folder, *names)) is not None:
                yield left


def _cgroups(controller: str) -> Iterator[Path]:
    """Yield the cgroups of this process that may set a limit, and those above them."""
    for line in (_PROC / "self" / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        root = _CGROUPS / controller if controllers else _CGROUPS
        own = root / path.lstrip("/")
        yield from (folder for folder in (own, *own.parents) if folder.is_relative_to(root))


def _left(folder: Path, limit: str, used: str, idle: str) -> int | None:
    """Bytes, files that are only kept in memory not counted; None where there is no limit, or no such group to see."""
    try:
        most = (folder / limit).read_text(encoding="ascii").strip()
        now = int((folder / used).read_text(encoding="ascii"))
        pairs = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return None
    return max(0, int(most) - now + int(pairs.get(idle, 0))) if most.isdigit() else None
