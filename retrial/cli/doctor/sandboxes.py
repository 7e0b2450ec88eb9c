"""What report.py --doctor finds out about sandboxes and what runs in them: by trying, never by version alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from retrial import registry
from retrial.cli.doctor.host import Diagnosis, InspectedHost, State, ok, space, warning
from retrial.errors import SandboxError
from retrial.language import Language
from retrial.protocols import Sandbox
from retrial.sandboxes import HELP
from retrial.types import Environment

UNCOUNTED = "CPU and memory of the kernel, such as socket buffers, are not limited"
"""By a supervisor."""


def sandbox(machine: InspectedHost) -> Iterator[Diagnosis]:
    if machine.chosen:
        yield ok("sandbox", f"tests run in {machine.chosen}")
        return
    reasons = "; ".join(f"{name}: {why_not}" for name, why_not in machine.useless.items())
    yield Diagnosis(about="sandbox", state=State.PROBLEM, found=f"none can be used ({reasons})", fix=HELP)


def docker(machine: InspectedHost) -> Iterator[Diagnosis]:
    if "docker" not in machine.useless:
        return
    if why_not := machine.useless["docker"]:
        fix = "start an engine (scripts/engine-up), for SWE-bench and for languages that this host lacks"
        yield warning("docker", why_not, fix)
        return
    from retrial.sandboxes.docker import engine

    with engine() as client:
        said = client.info()
    yield ok("docker", f"engine {said['ServerVersion']}, storage driver {said['Driver']}, {said['Images']} images")
    part = machine.open("docker")
    ready = [name for name in registry.names("languages") if _ready(part, language(name).environment)]
    missing = [name for name in registry.names("languages") if name not in ready]
    later = f"; built when first needed: {', '.join(missing)}" if missing else ""
    yield ok("images", f"{', '.join(ready) or 'none of ours yet'}{later}")
    root = Path(said["DockerRootDir"])
    if root.is_dir():
        # An engine may be on another machine.
        yield space("disk: images", root, machine.serious("docker"), least=2, better=20, writable=False)


def bubblewrap(machine: InspectedHost) -> Iterator[Diagnosis]:
    if "bwrap" not in machine.useless:
        return
    if why_not := machine.useless["bwrap"]:
        fix = "install or mend it, such as 'sudo apt-get install bubblewrap'; Docker does without"
        yield warning("bwrap", why_not, fix)
        return
    said = machine.open("bwrap").describe()
    found = f"bubblewrap {said['version']}, limits held by {said['limits']}"
    if said["limits"] not in ("supervisor", "rlimits"):
        yield ok("bwrap", found)
        return
    lacking = f"memory is {said['memory']}" if "memory" in said else UNCOUNTED
    fix = f"{lacking}: delegate a cgroup, use a systemd user session, or run untrusted code in Docker"
    yield warning("bwrap", found, fix)


def limits(name: str, machine: InspectedHost) -> Iterator[Diagnosis]:
    """That a sandbox holds, by trying."""
    if machine.useless.get(name, "not asked for"):
        return
    from retrial.sandboxes.probe import TRIED, find_holes

    about, part = f"limits: {name}", machine.open(name)
    environment = language("python").environment
    if not _ready(part, environment):
        found = "not tried: the environment of Python tasks is not ready"
        yield warning(about, found, "run 'python report.py --gold' once, which makes it")
        return
    try:
        seen = tuple(find_holes(part, environment))
    except SandboxError as error:
        seen = (str(error).rstrip("."),)
    for hole in seen:
        fix = f"run nothing of strangers in {name} here before it is mended; another sandbox may hold"
        yield Diagnosis(about=about, state=machine.serious(name), found=hole, fix=fix)
    if not seen:
        yield ok(about, f"tried, and they hold: {TRIED}")


def _ready(part: Sandbox, environment: Environment) -> bool:
    return not part.missing(environment) and part.state(environment).startswith("ready")


def toolchain(name: str, machine: InspectedHost) -> Iterator[Diagnosis]:
    """What this host has of a language, for bubblewrap."""
    if machine.useless.get("bwrap", "not asked for"):
        return
    part, its = machine.open("bwrap"), language(name)
    if why_not := part.missing(its.environment):
        state = machine.serious("bwrap") if name == "python" else State.WARNING
        fix = f"install it ({its.minimum} or newer), or use Docker; until then {name} tasks are skipped"
        yield Diagnosis(about=f"host: {name}", state=state, found=why_not.rstrip("."), fix=fix)
        return
    yield ok(f"host: {name}", f"{part.state(its.environment)}; at least {its.minimum}")
    for tool in its.optional:
        if why_not := part.missing(replace(its.environment, needs=(tool,))):
            yield warning(f"host: {tool}", why_not.rstrip("."), f"until then {name} tasks that need it are skipped")


def language(name: str) -> Language:
    part: Language = registry.module("languages", name).make()
    return part
