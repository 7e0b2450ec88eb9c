"""Try whether a sandbox holds: walls once per boot, and every limit for `doctor`. None of them is assumed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from retrial import registry
from retrial.errors import EnvironmentMissing, SandboxError
from retrial.language import Language
from retrial.protocols import Sandbox
from retrial.system.files import scratch_folder, write_data
from retrial.system.locks import this_host
from retrial.types import Environment, Execution, Job, Limits, fingerprint

LIMITS = Limits(seconds=30, memory_mb=512, processes=64, disk_mb=16)
FORKS = LIMITS.processes + 50
HELD = "The probe has ended."
VERSION = "version: "

# Each line it prints is a hole. Routes, not interfaces: some kernels put idle tunnels into every network namespace.
# The address is one of those kept for documentation, so nobody is called even if there is a way out.
WALLS = f"""
{{ read -r header; read -r route && echo 'there is a route to a network'; }} </proc/net/route
if command -v python3 >/dev/null; then
    python3 -c 'if 1:
        import errno, socket
        with socket.socket() as tried:
            tried.settimeout(0.5)
            if tried.connect_ex(("192.0.2.1", 53)) != errno.ENETUNREACH:
                print("a connection can be tried")'
fi
if [ -w /proc/sys/kernel/hostname ]; then echo 'settings of the kernel can be changed'; fi
if [ -e "$CANARY" ]; then echo 'files of the host can be seen'; fi
( count=0; while [ $count -lt {FORKS} ]; do sleep 60 & count=$((count + 1)); echo $count >/tmp/count; done ) 2>/dev/null
read -r count </tmp/count
if [ "$count" -ge {FORKS} ]; then echo 'processes are not limited'; fi
echo '{HELD}'
"""
# Not where the image holds a task's files: there all of it may be written to, and is thrown away.
READ_ONLY = """
for folder in / /usr /usr/bin /etc /dev /var/tmp /opt; do
    if (: >"$folder/retrial-probe") 2>/dev/null; then echo "$folder can be written to"; fi
done
"""

# Small real jobs that try to break the limits: what they can do is a hole.
TRIED = "no network, no files of the host, processes, memory of a process and of a whole job, disk, output, time"
TRIAL_LIMITS = Limits(seconds=30, memory_mb=128, processes=64, disk_mb=16, output_bytes=10_000)
MANY = 400 << 20
"""Bytes: more than memory and disk together."""

FILL_MEMORY = f"head -c {MANY} /dev/zero | tail -c {MANY} | wc -c"
# Each process stays within the limit, all of them together do not.
FILL_BY_PROCESSES = f"""python3 -c '
import os, signal
for _ in range(4):
    if not os.fork():
        held = b"x" * {TRIAL_LIMITS.memory_mb << 19}
        signal.pause()
os.wait()'
"""
FILL_SHARED_MEMORY = f"""python3 -c '
import mmap
held = mmap.mmap(-1, {MANY})
while held.tell() < len(held):
    held.write(b"x" * (1 << 20))'
"""
FILL_DISK = f"head -c {MANY} /dev/zero >/tmp/big 2>/dev/null; wc -c </tmp/big"
FILL_OUTPUT = "head -c 5000000 /dev/zero | tr '\\0' x"
IGNORE_TIME = "trap '' TERM; sleep 60"


def probe(sandbox: Sandbox, environment: Environment, cache: Path) -> tuple[str, ...]:
    """Try what a job must not be able to do; what held is not tried again before the next boot.

    Returns what the environment's tools say of themselves.
    Raises: SandboxError when something was possible; EnvironmentMissing when a tool is not there or too old.
    """
    language = _language(environment)
    script = _versions(language) + READ_ONLY + WALLS
    held = _held(sandbox, cache, sandbox.digest(environment), environment.name, script, *environment.needs)
    with suppress(OSError):
        return tuple(held.read_text(encoding="utf-8").splitlines())
    seen = _try(sandbox, environment, script)
    said = tuple(line.removeprefix(VERSION) for line in seen.stdout.splitlines() if line.startswith(VERSION))
    if language:
        _check_tools(sandbox.name, environment, language, said)
    write_data(held, "\n".join(said).encode(), sure=True)
    return said


def probe_walls(sandbox: Sandbox, environment: Environment, cache: Path) -> None:
    """The same for images that hold a task's files, and for all of them at once: the walls are the engine's.

    Raises: SandboxError.
    """
    held = _held(sandbox, cache, WALLS)
    if not held.exists():
        _try(sandbox, environment, WALLS)
        write_data(held, b"", sure=True)


def find_holes(sandbox: Sandbox, environment: Environment) -> Iterator[str]:
    """Yield what a job could do and must not, in an environment that is ready and has Python; nothing is remembered."""
    with scratch_folder() as folder:
        try:
            probe(sandbox, environment, folder)
        except SandboxError as error:
            yield str(error).rstrip(".")
    most, whole = 2 * TRIAL_LIMITS.output_bytes, replace(TRIAL_LIMITS, seconds=10)
    tried: tuple[tuple[str, Limits, Callable[[Execution], bool], str], ...] = (
        (FILL_MEMORY, TRIAL_LIMITS, lambda seen: seen.stdout.strip() == str(MANY), "memory is not limited"),
        (FILL_DISK, TRIAL_LIMITS, _wrote_too_much, "the disk is not limited"),
        (FILL_OUTPUT, TRIAL_LIMITS, lambda seen: len(seen.stdout) > most, "output is not limited"),
        (IGNORE_TIME, Limits(seconds=1, memory_mb=128), lambda seen: not seen.timed_out, "time is not limited"),
        (FILL_BY_PROCESSES, whole, lambda seen: not seen.oom, "memory of several processes is not limited as a whole"),
        (FILL_SHARED_MEMORY, whole, lambda seen: not seen.oom, "shared memory is not limited"),
    )
    for script, limits, broken, hole in tried:
        if broken(sandbox.run(Job(environment=environment, script=script, files={}, limits=limits))):
            yield hole


def _held(sandbox: Sandbox, cache: Path, *what: str) -> Path:
    """Is there when these have been tried since the machine was started, and held."""
    return cache / "probes" / fingerprint(this_host().boot, dict(sandbox.describe()), *what)


def _language(environment: Environment) -> Language | None:
    return registry.module("languages", environment.language).make() if environment.language else None


def _versions(language: Language | None) -> str:
    """Sh lines that say which tools are there."""
    tools = language.tools if language else {}
    return "".join(
        f"""if said=$({command} 2>&1); then echo "{VERSION}{tool}: $(echo "$said" | head -n 1)"; fi\n"""
        for tool, command in tools.items()
    )


def _check_tools(sandbox: str, environment: Environment, language: Language, said: tuple[str, ...]) -> None:
    where, build = f"the image '{environment.image}'", f"build the target '{language.name}' of docker/Dockerfile"
    if sandbox == "bwrap":
        where, build = "the sandbox on this host", "install it anew, or use Docker"
    for tool in language.tools:
        found = [line.partition(": ")[2] for line in said if line.startswith(f"{tool}: ")]
        if not found and tool in language.optional and tool not in environment.needs:
            continue
        if not found:
            raise EnvironmentMissing(
                f"There is no working {tool} in {where}, which {language.name} tasks need: {build}."
            )
        if tool == next(iter(language.tools)) and numbers(found[0]) < numbers(language.minimum):
            raise EnvironmentMissing(
                f"{found[0]} in {where} is older than {language.minimum}, which {language.name} tasks need: {build}."
            )


def numbers(version: str) -> tuple[int, ...]:
    """The first dotted number in a tool's own words."""
    match = re.search(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def _try(sandbox: Sandbox, environment: Environment, script: str) -> Execution:
    # Its name could be seen by a job that sees where it is.
    with scratch_folder(where=Path(tempfile.gettempdir())) as canary:
        whole = f"CANARY={canary}\n{script}"
        seen = sandbox.run(Job(environment=environment, script=whole, files={}, limits=LIMITS))
    if holes := _holes(seen):
        raise SandboxError(f"The sandbox {sandbox.name} does not hold here: {holes}.")
    return seen


def _holes(seen: Execution) -> str:
    lines = [line for line in seen.stdout.splitlines() if not line.startswith(VERSION)]
    if seen.timed_out or HELD not in lines:
        return f"the probe did not end ({(seen.stderr.strip() or 'without a word').splitlines()[-1]})"
    return ", ".join(line for line in lines if line != HELD)


def _wrote_too_much(seen: Execution) -> bool:
    """Also true when it printed nothing: then the size is unknown."""
    said = seen.stdout.strip()
    return not said.isdigit() or int(said) > TRIAL_LIMITS.disk_mb << 20
