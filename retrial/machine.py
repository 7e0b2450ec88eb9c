"""What a machine has for sandboxes: cores, and memory that can still be used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrial.types import Limits

EXPECTED_SHARE = 0.5
"""Of the memory that a job may use, what we count on: few use all of it, and hardly ever all at once."""
LEAST_SHARE = 0.25
"""Of that memory, what must be there now before another job is started."""
_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_V2 = ("memory.max", "memory.current", "inactive_file")
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    cores: int
    memory_mb: float

    def jobs(self) -> int:
        """How many sandboxes at once it is good for."""
        return max(1, min(self.cores, int(self.memory_mb / (EXPECTED_SHARE * Limits().memory_mb))))


def here() -> Machine:
    return Machine(cores=len(os.sched_getaffinity(0)), memory_mb=free_mb())


def has_room() -> bool:
    """Whether there is memory for one more job now."""
    return free_mb() >= LEAST_SHARE * Limits().memory_mb


def free_mb() -> float:
    """What this process and its children can still get: of the machine, and within every limit that is set for us."""
    lines = (_PROC / "meminfo").read_text(encoding="ascii").splitlines()
    (kilobytes,) = (int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return min([kilobytes / 1024, *(left / (1 << 20) for left in _left_in_cgroups())])


def _left_in_cgroups() -> Iterator[int]:
    for line in (_PROC / "self" / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        root, names = (_CGROUPS / "memory", _V1) if controllers else (_CGROUPS, _V2)
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(root) and (left := _left(folder, *names)) is not None:
                yield left


def _left(folder: Path, limit: str, used: str, idle: str) -> int | None:
    """Bytes, files that are only kept in memory not counted; None where there is no limit, or no such group to see."""
    try:
        most = (folder / limit).read_text(encoding="ascii").strip()
        now = int((folder / used).read_text(encoding="ascii"))
        pairs = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines())
    except (OSError, ValueError):
        return None
    return max(0, int(most) - now + int(pairs.get(idle, 0))) if most.isdigit() else None
