"""What holds limits on memory, processes and CPU where no engine does: a cgroup, a systemd scope, or a supervisor."""

from __future__ import annotations

import functools
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retrial.errors import SandboxError
from retrial.sandboxes.bwrap import memory_supervisor as job_memory
from retrial.sandboxes.bwrap import memory_usage
from retrial.sandboxes.bwrap.process import OWN_PROCESSES, PATIENCE, children
from retrial.sandboxes.job_session import Meter
from retrial.system import locks
from retrial.types import Limits

PARENT = "retrial"
PERIOD = 100_000
TRIAL_SECONDS = 10.0
SHORT_PATIENCE = 5.0
"""Instead of `PATIENCE`, for what somebody else left: it will be tried again."""
PAUSES = (0.002, 0.1)
"""Seconds between two looks, from the first to the last: who looks all the time keeps the dying from their end."""


class JobLimits(Meter, Protocol):
    """The limits of one job. As they are here they need no care: they end with the processes, which end with their pid
    namespace."""

    prefix: tuple[str, ...] = ()
    """Goes in front of the command."""
    inside: str = ""
    """Shell commands to run inside the sandbox before anything else."""

    def adopt(self, process: int) -> None:
        """Take in a process and its children, before they have more: from then on all that they start are in."""
        return

    def oom(self) -> bool:
        """Something was killed because the memory was used up."""
        return False

    def kill(self) -> None:
        """Kill what is left and wait until it is gone."""
        return

    def close(self) -> None:
        return


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    name: str
    open: Callable[[Limits], JobLimits]
    by_kernel: bool = False
    """Whether the kernel itself holds all limits: then a verdict does not depend on the method."""
    bounded: bool = True
    """Whether the memory of a job is bounded as a whole."""


@functools.cache
def method() -> Method:
    """The first way to hold limits that works here, found by doing."""
    for candidate in _cgroups():
        if _works(candidate):
            return candidate
    if shutil.which("systemd-run") and job_memory.bounds(job_memory.in_scope, holds=_is_in_limited_scope):
        return Method(name="systemd scope", open=job_memory.in_scope)
    if job_memory.bounds(_supervisor):
        return Method(name="supervisor", open=_supervisor)
    return Method(name="rlimits", open=_Rlimits, bounded=False)


def _cgroups() -> Iterator[Method]:
    mounts = _mounts()
    if {"memory", "pids"} <= mounts.keys():
        yield Method(name="cgroup v1", open=functools.partial(_open_v1, mounts), by_kernel=True)
    for parent in _v2_parents(mounts):
        yield Method(name="cgroup v2", open=functools.partial(_open_v2, parent), by_kernel=True)


def _works(candidate: Method) -> bool:
    try:
        pipe = subprocess.PIPE
        with closing(candidate.open(Limits())) as slot, subprocess.Popen(["cat"], stdin=pipe, stdout=pipe) as trial:
            slot.adopt(trial.pid)
            trial.communicate(timeout=TRIAL_SECONDS)
    except (OSError, SandboxError, subprocess.TimeoutExpired):
        return False
    return trial.returncode == 0


def _mounts() -> Mapping[str, Path]:
    """Controller of cgroup v1 → where it is mounted; `v2` → where the unified hierarchy is."""
    found: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options, *_ = line.split()
        if kind == "cgroup":
            found |= dict.fromkeys(
                set(options.split(",")) & {"memory", "pids", "cpu", "cpuacct"}, Path(folder) / PARENT
            )
        elif kind == "cgroup2":
            found["v2"] = Path(folder)
    return found


def _open_v1(mounts: Mapping[str, Path], limits: Limits) -> _Cgroup:
    memory = str(limits.memory_mb << 20)
    settings = {
        mounts["memory"]: {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
        mounts["pids"]: {"pids.max": str(limits.processes + OWN_PROCESSES)},
    }
    if "cpu" in mounts:
        # Two controllers may share one hierarchy.
        here = settings.setdefault(mounts["cpu"], {})
        here |= {"cpu.cfs_period_us": str(PERIOD), "cpu.cfs_quota_us": str(int(limits.cpus * PERIOD))}
    if "cpuacct" in mounts:
        settings.setdefault(mounts["cpuacct"], {})
    return _open(settings, "memory.oom_control")


def _open_v2(parent: Path, limits: Limits) -> _Cgroup:
    settings = {
        "memory.max": str(limits.memory_mb << 20),
        "memory.swap.max": "0",
        "pids.max": str(limits.processes + OWN_PROCESSES),
        "cpu.max": f"{int(limits.cpus * PERIOD)} {PERIOD}",
    }
    return _open({parent: settings}, "memory.events")


def _v2_parents(mounts: Mapping[str, Path]) -> Iterator[Path]:
    """Where jobs' cgroups may live: below the root if that is ours, else below the nearest that was delegated."""
    own = _own_v2("self")
    if "v2" not in mounts or not own:
        return
    above = mounts["v2"] / own.lstrip("/")
    for folder in reversed([above, *above.parents]):
        if folder.is_relative_to(mounts["v2"]) and _delegate(folder) and _delegate(folder / PARENT):
            yield folder / PARENT


def _own_v2(process: int | str) -> str:
    lines = Path(f"/proc/{process}/cgroup").read_text().splitlines()
    return next((line[3:] for line in lines if line.startswith("0::")), "")


def _delegate(folder: Path) -> bool:
    """Let its children have the controllers; CPU is optional."""
    try:
        folder.mkdir(exist_ok=True)
        for controller in ("cpu", "memory", "pids"):
            if controller in (folder / "cgroup.controllers").read_text().split():
                (folder / "cgroup.subtree_control").write_text(f"+{controller}")
        return {"memory", "pids"} <= set((folder / "cgroup.subtree_control").read_text().split())
    except OSError:
        return False


def _open(settings: Mapping[Path, Mapping[str, str]], events: str) -> _Cgroup:
    """A new cgroup below each of these parents. Its name begins with ours, so that others can tell who left it."""
    for parent in settings:
        locks.register_resource(locks.ResourceKind.CGROUPS, parent)
    name = f"{locks.current_lease().name}-{secrets.token_hex(6)}"
    folders = [parent / name for parent in settings]
    try:
        for folder, values in zip(folders, settings.values(), strict=True):
            folder.parent.mkdir(exist_ok=True)
            folder.mkdir()
            for file, value in values.items():
                # Not every kernel counts swap or has the CPU controller.
                if (folder / file).exists():
                    (folder / file).write_text(value)
    except OSError:
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()
        raise
    return _Cgroup(folders, next(folder / events for folder in folders if (folder / events).exists()))


class _Cgroup(JobLimits):
    def __init__(self, folders: list[Path], events: Path) -> None:
        self._folders = folders
        self._events = events

    def adopt(self, process: int) -> None:
        # From outside: entering takes the kernel a while, in which the sandbox can already be laid out.
        for folder in self._folders:
            self._move(process, folder)
            for child in children(process):
                self._move(child, folder)

    def _move(self, process: int, folder: Path) -> None:
        try:
            (folder / "cgroup.procs").write_text(str(process))
        except ProcessLookupError:
            # It has ended; whoever listens to it will hear why.
            return
        except OSError as error:
            raise SandboxError(f"A job could not be put into its cgroup: {error}.") from error

    def oom(self) -> bool:
        counters = dict(line.split() for line in self._events.read_text().splitlines())
        return int(counters.get("oom_kill", 0)) > 0

    def cpu_seconds(self) -> float | None:
        for folder in self._folders:
            if (usage := folder / "cpuacct.usage").exists():
                return int(usage.read_text()) / 1e9
            if (usage := folder / "cpu.stat").exists():
                counters = dict(line.split() for line in usage.read_text().splitlines())
                # The file of the same name in version 1 counts only how often the limit was reached.
                if "usage_usec" in counters:
                    return int(counters["usage_usec"]) / 1e6
        return None

    def wants_cpu(self) -> bool:
        return any(memory_usage.is_runnable(f"/proc/{member}") for member in self._members())

    def kill(self, patience: float = PATIENCE) -> None:
        looks = _looks(patience)
        while members := self._members():
            for member in members:
                with suppress(ProcessLookupError):
                    os.kill(member, signal.SIGKILL)
            if not next(looks, False):
                raise SandboxError(f"{len(members)} processes of a job could not be killed.")

    def _members(self) -> set[int]:
        # A process outside our pid namespace is listed as 0, and kill(0) would be ourselves.
        return {int(pid) for folder in self._folders for pid in (folder / "cgroup.procs").read_text().split()} - {0}

    def close(self, patience: float = PATIENCE) -> None:
        looks = _looks(patience)
        for folder in self._folders:
            while folder.exists():
                with suppress(OSError):
                    folder.rmdir()
                if folder.exists() and not next(looks, False):
                    break
            if folder.exists():
                locks.current_lease().abandon(f"cgroup {folder}")


def _looks(patience: float) -> Iterator[bool]:
    """True after each pause, until the patience is over."""
    deadline, (pause, longest) = time.monotonic() + patience, PAUSES
    while time.monotonic() < deadline:
        time.sleep(pause)
        pause = min(2 * pause, longest)
        yield True


class _Rlimits(JobLimits):
    """Per process only. Data, not address space: several runtimes reserve far more than they ever touch."""

    def __init__(self, limits: Limits) -> None:
        self.inside = f"ulimit -d {limits.memory_mb << 10}; {_process_limit(limits)}"


def _supervisor(limits: Limits) -> job_memory.Supervisor:
    return job_memory.Supervisor(limits, inside=_process_limit(limits))


def _is_in_limited_scope(process: int) -> bool:
    """A user's systemd may have been given no memory controller; then it takes the setting and does nothing."""
    mount, own = _mounts().get("v2"), _own_v2(process)
    if not mount or not own:
        return False
    expected = (job_memory.TRIAL_LIMITS.memory_mb + job_memory.SCOPE_SLACK_MB) << 20
    return (mount / own.lstrip("/") / "memory.max").read_text().strip() == str(expected)


def _process_limit(limits: Limits) -> str:
    return f"ulimit -u {limits.processes} 2>/dev/null || ulimit -p {limits.processes}; "


def remove_orphans(owner: str, parent: Path) -> Iterator[str]:
    """Cgroups of an owner who was killed, and what of its jobs may still be dying in them.

    Raises: OSError when one cannot be removed.
    """
    for folder in parent.glob(f"{owner}-*"):
        left = _Cgroup([folder], folder)
        left.kill(SHORT_PATIENCE)
        left.close(SHORT_PATIENCE)
        if folder.exists():
            raise OSError(f"{folder} cannot be removed")
        yield f"cgroup {folder}"
