"""Sees for itself that a sandbox holds, once per boot: limits and walls are tried, not assumed."""

from __future__ import annotations

import re
import tempfile
from contextlib import suppress
from pathlib import Path

from retrial import registry
from retrial.errors import EnvironmentMissing, SandboxError
from retrial.language import Language
from retrial.protocols import Sandbox
from retrial.system import scratch
from retrial.system.files import write_data
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


def _held(sandbox: Sandbox, cache: Path, *what: str) -> Path:
    """Is there when these have been tried since the machine was started, and held."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return cache / "probes" / fingerprint(boot, dict(sandbox.describe()), *what)


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
    with scratch.folder(where=Path(tempfile.gettempdir())) as canary:
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
