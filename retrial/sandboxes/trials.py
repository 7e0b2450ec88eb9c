"""Small real jobs that try to break the limits of a sandbox: what they can do is a hole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from retrial.errors import SandboxError
from retrial.protocols import Sandbox
from retrial.sandboxes.probe import probe
from retrial.system import scratch
from retrial.types import Environment, Execution, Job, Limits

TRIED = "no network, no files of the host, processes, memory of a process and of a whole job, disk, output, time"
LIMITS = Limits(seconds=30, memory_mb=128, processes=64, disk_mb=16, output_bytes=10_000)
MANY = 400 << 20
"""Bytes: more than memory and disk together."""

MEMORY = f"head -c {MANY} /dev/zero | tail -c {MANY} | wc -c"
# Each process stays within the limit, all of them together do not.
PROCESSES = f"""
import os, signal
for _ in range(4):
    if not os.fork():
        held = b"x" * {LIMITS.memory_mb << 19}
        signal.pause()
os.wait()
"""
SHARED = f"""
import mmap
held = mmap.mmap(-1, {MANY})
while held.tell() < len(held):
    held.write(b"x" * (1 << 20))
"""
WHOLE = {
    PROCESSES: "memory of several processes is not limited as a whole",
    SHARED: "shared memory is not limited",
}
"""Programs in Python; the hole, unless the sandbox says that the program ran out of memory."""
DISK = f"head -c {MANY} /dev/zero >/tmp/big 2>/dev/null; wc -c </tmp/big"
OUTPUT = "head -c 5000000 /dev/zero | tr '\\0' x"
TIME = "trap '' TERM; sleep 60"


def holes(sandbox: Sandbox, environment: Environment) -> Iterator[str]:
    """Yield what a job could do and must not, in an environment that is ready and has Python; nothing is remembered."""
    with scratch.folder() as folder:
        try:
            probe(sandbox, environment, folder)
        except SandboxError as error:
            yield str(error).rstrip(".")
    tried: tuple[tuple[str, Limits, Callable[[Execution], bool], str], ...] = (
        (MEMORY, LIMITS, _got_all, "memory is not limited"),
        (DISK, LIMITS, _wrote_too_much, "the disk is not limited"),
        (OUTPUT, LIMITS, lambda seen: len(seen.stdout) > 2 * LIMITS.output_bytes, "output is not limited"),
        (TIME, Limits(seconds=1, memory_mb=128), lambda seen: not seen.timed_out, "time is not limited"),
    )
    for script, limits, broken, hole in tried:
        if broken(sandbox.run(Job(environment=environment, script=script, files={}, limits=limits))):
            yield hole
    for program, hole in WHOLE.items():
        files, limits = {"main.py": program.encode()}, replace(LIMITS, seconds=10)
        if not sandbox.run(Job(environment=environment, script="python3 main.py", files=files, limits=limits)).oom:
            yield hole


def _got_all(seen: Execution) -> bool:
    return seen.stdout.strip() == str(MANY)


def _wrote_too_much(seen: Execution) -> bool:
    """Also when it said nothing: then nobody knows."""
    said = seen.stdout.strip()
    return not said.isdigit() or int(said) > LIMITS.disk_mb << 20
