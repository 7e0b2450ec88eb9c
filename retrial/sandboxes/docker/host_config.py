"""What a container may: as whom it runs, what it sees in its variables, and how much it may use.

Two kinds of images. In ours a job is nobody on a read-only root, and all it can write to is one tmpfs. Where the image
itself holds the task's files (`Environment.tree`), root made them and root's scripts work on them, anywhere in it: such
a job is root of its own writable layer, with what that takes and nothing else.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from docker.api import APIClient
from docker.types import LogConfig, Ulimit

from retrial.sandboxes import supervisor
from retrial.sandboxes.docker import images
from retrial.types import Job, Limits

NOBODY = 65534
SHM_BYTES = 64 << 20
OWN_PROCESSES = 2
"""The engine's init and the supervisor."""
OPEN_FILES = 4096
TREE = "RETRIAL_TREE"
HOSTNAME = "retrial"
OWN_NAME = {HOSTNAME: "127.0.0.1"}
"""For /etc/hosts: an engine enters a container's own name only beside an address in a network of its own."""
THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"
)  # fmt: skip
"""How numeric libraries are told: they count the host's cores, not those that they were given."""

# To own, enter and change what any user of the image owns (CHOWN, DAC_OVERRIDE, FOWNER: package managers, tar, git),
# to become such a user (SETUID, SETGID: su, runuser, tests of servers that refuse root), and to end what that user
# left behind (KILL: the supervisor ends every process before it reads the reports).
# All of it is about the container's own files and processes; nothing of the engine's usual rest is there.
ROOT = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID", "KILL"]


def user(job: Job) -> str:
    """Ours: what gets out is no more than we are. But nobody when we are root; and root where an image's files are."""
    if job.environment.tree:
        return "0:0"
    return f"{os.getuid()}:{os.getgid()}" if os.getuid() else f"{NOBODY}:{NOBODY}"


def variables(job: Job) -> dict[str, str]:
    """What a job finds; an image with a task's files has been set up with variables of its own, HOME among them."""
    threads = dict.fromkeys(THREADS, str(max(1, math.ceil(_cpus(job.limits)))))
    if job.environment.tree:
        reports = supervisor.ENVIRONMENT[supervisor.REPORTS]
        return {supervisor.REPORTS: reports, TREE: job.environment.tree, **threads}
    return {**supervisor.ENVIRONMENT, supervisor.STORE: images.STORE, **threads}


def host_config(client: APIClient, job: Job) -> dict[str, Any]:
    limits = job.limits
    ulimits = {**supervisor.RLIMITS, "nofile": OPEN_FILES}
    root: dict[str, Any] = read_only_root(limits)
    if job.environment.tree:
        # What one file cannot do before anybody looks; all of them together are watched.
        ulimits["fsize"] = limits.disk_mb << 20
        root = {"read_only": False, "cap_add": ROOT}
    config: dict[str, Any] = client.create_host_config(
        network_mode="bridge" if job.network else "none",
        extra_hosts={} if job.network else OWN_NAME,
        nano_cpus=int(_cpus(limits) * 1e9),
        **root,
        **confined(limits, ulimits),
    )
    return config


def confined(limits: Limits, ulimits: Mapping[str, int]) -> dict[str, Any]:
    """What every container of ours has, a job's and an agent's."""
    return {
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "shm_size": SHM_BYTES,
        "init": True,
        "mem_limit": limits.memory_mb << 20,
        "memswap_limit": limits.memory_mb << 20,
        "pids_limit": limits.processes + OWN_PROCESSES,
        "ulimits": [Ulimit(name=name, soft=most, hard=most) for name, most in ulimits.items()],
        "log_config": LogConfig(type="none"),
    }


def read_only_root(limits: Limits) -> dict[str, Any]:
    return {"read_only": True, "tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,size={limits.disk_mb}m,mode=1777"}}


def _cpus(limits: Limits) -> float:
    return min(limits.cpus, os.cpu_count() or 1)
