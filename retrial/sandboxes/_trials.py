"""Small real jobs that try to break the limits of a sandbox: what they can do is a hole."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from retrial import scratch
from retrial.errors import SandboxError
from retrial.protocols import Sandbox
from retrial.sandboxes._probe import probe
from retrial.types import Environment, Execution, Job, Limits

TRIED = "no network, no files of the host, processes, memory, disk, output, time"
LIMITS = Limits(seconds=30, memory_mb=128, processes=64, disk_mb=16, output_bytes=10_000)
MANY = 400 << 20
"""Bytes: more than memory and disk together."""

MEMORY = f"head -c {MANY} /dev/zero | tail -c {MANY} | wc -c"
DISK = f"head -c {MANY} /dev/zero >/tmp/big 2>/dev/null; wc -c </tmp/big"
OUTPUT = "head -c 5000000 /dev/zero | tr '\\0' x"
TIME = "trap '' TERM; sleep 60"


def holes(sandbox: Sandbox, environment: Environment) -> Iterator[str]:
    """What a job in this environment, which is ready, could do and must not; nothing is taken from an earlier try."""
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


def _got_all(seen: Execution) -> bool:
    return seen.stdout.strip() == str(MANY)


def _wrote_too_much(seen: Execution) -> bool:
    """Also when it said nothing: then nobody knows."""
    said = seen.stdout.strip()
    return not said.isdigit() or int(said) > LIMITS.disk_mb << 20
