"""What report.py --doctor looks at: software, keys, disk, memory. Each check says how to mend what it finds."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from retrial import registry
from retrial.executors.limiter import sandboxes_at_once
from retrial.options import ReportOptions
from retrial.protocols import Context, Sandbox
from retrial.system import paths
from retrial.system.console import first_few
from retrial.system.host import free_mb, usable_cores
from retrial.types import Limits

OLDEST_PYTHON = (3, 11)
GB = 1 << 30
SETUP = "run 'make setup', or 'pip install -r requirements.txt'"
GRADERS = "requirements-nodeps.txt"
"""What only SWE-bench needs."""


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Something that a default run does without."""
    PROBLEM = "problem"
    """Keeps a default run from working."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    about: str
    state: State
    found: str
    fix: str = ""
    """What to do, in one sentence; empty when there is nothing to mend."""


def ok(about: str, found: str) -> Diagnosis:
    return Diagnosis(about=about, state=State.OK, found=found)


def warning(about: str, found: str, fix: str) -> Diagnosis:
    return Diagnosis(about=about, state=State.WARNING, found=found, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedHost:
    """What the checks share."""

    options: ReportOptions
    useless: Mapping[str, str]
    """Sandbox → why it cannot run Python tasks here; empty when it can."""

    @property
    def chosen(self) -> str:
        """The sandbox that tests would run in; empty when there is none."""
        return next((name for name, why_not in self.useless.items() if not why_not), "")

    def serious(self, sandbox: str) -> State:
        """How bad it is when something is wrong with that sandbox."""
        return State.PROBLEM if sandbox == self.chosen else State.WARNING

    def open(self, sandbox: str) -> Sandbox:
        part: Sandbox = registry.module("sandboxes", sandbox).make(Context(options=self.options))
        return part


Check = Callable[[InspectedHost], Iterable[Diagnosis]]


def python(machine: InspectedHost) -> Iterator[Diagnosis]:
    needed = ".".join(map(str, OLDEST_PYTHON))
    if sys.version_info >= OLDEST_PYTHON:
        yield ok("Python", f"{platform.python_version()} ({needed} or newer)")
        return
    found, fix = f"{platform.python_version()}, older than {needed}", f"install Python {needed} or newer"
    yield Diagnosis(about="Python", state=State.PROBLEM, found=found, fix=fix)


def packages(machine: InspectedHost) -> Iterator[Diagnosis]:
    for name, missing in (("requirements.txt", State.PROBLEM), (GRADERS, State.WARNING)):
        wanted = _pins(paths.PROJECT / name)
        there = {package: _version(package) for package in wanted}
        gone = [package for package, version in there.items() if not version]
        other = [f"{package} {there[package]}" for package in wanted if there[package] not in ("", wanted[package])]
        fix = SETUP if name != GRADERS else "run 'make setup': SWE-bench needs it"
        if gone:
            yield Diagnosis(about="packages", state=missing, found=f"missing of {name}: {first_few(gone)}", fix=fix)
        if other:
            yield warning("packages", f"not as {name} pins them: {first_few(other)}", fix)
        if not gone and not other:
            yield ok("packages", f"all of {name} ({len(wanted)}), as pinned")


def _pins(path: Path) -> dict[str, str]:
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {name: version for name, _, version in (line.partition("==") for line in lines) if version}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def keys(machine: InspectedHost) -> Iterator[Diagnosis]:
    """Names of variables; what is in them is nobody's business."""
    from retrial.models.endpoints import PROVIDERS

    known = [(name, provider) for provider in PROVIDERS for name in provider.keys if name in os.environ]
    held = [f"{name} ({provider.title}: {provider.prefix}/…)" for name, provider in known if os.environ[name].strip()]
    empty = [name for name, _ in known if not os.environ[name].strip()]
    elsewhere = [f"{name} leads {each.prefix}/… elsewhere" for each in PROVIDERS for name in each.bases if _set(name)]
    if empty:
        yield warning("model keys", f"set, but empty: {', '.join(empty)}", "give them their keys, or unset them")
    if held:
        yield ok("model keys", ", ".join([*held, *elsewhere]))
        return
    found = "; ".join(["none: only the local model and endpoints without a key can be asked", *elsewhere])
    fix = "set a provider's variable, such as OPENAI_API_KEY, to ask others (README lists them)"
    yield warning("model keys", found, fix)


def _set(name: str) -> bool:
    return bool(os.environ.get(name, "").strip())


def local_model(machine: InspectedHost) -> Iterator[Diagnosis]:
    from retrial.models.weights import GGUF

    if (paths.cache() / "weights" / GGUF).is_file():
        yield ok("local model", "its weights are there")
    else:
        fix = "the first 'python harness.py' fetches them (93 MB), with a network"
        yield warning("local model", "its weights are not there yet", fix)


def disk(machine: InspectedHost) -> Iterator[Diagnosis]:
    yield space("disk: cache", paths.cache(), State.PROBLEM, least=0.5, better=5)
    yield space("disk: runs", paths.home(), State.PROBLEM, least=0.1, better=1)
    yield space("disk: scratch", Path(tempfile.gettempdir()), State.PROBLEM, least=0.5, better=2)


def space(about: str, folder: Path, worst: State, *, least: float, better: float, writable: bool = True) -> Diagnosis:
    """Free space in GB; and that files can be made there, if that is asked for, by making one."""
    try:
        there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
        free = shutil.disk_usage(there).free / GB
        if writable:
            with tempfile.TemporaryFile(dir=there):
                pass
    except OSError as error:
        found, fix = f"{folder} cannot be written to: {error.strerror}", "make it a folder of yours, or name another"
        return Diagnosis(about=about, state=worst, found=found, fix=f"{fix} (RETRIAL_CACHE, RETRIAL_HOME, TMPDIR)")
    found = f"{free:.1f} GB free in {folder}"
    if free >= better:
        return ok(about, found)
    state = worst if free < least else State.WARNING
    return Diagnosis(about=about, state=state, found=found, fix=f"make room: {better:g} GB or more are better")


def memory(machine: InspectedHost) -> Iterator[Diagnosis]:
    cores, each = usable_cores(), Limits().memory_mb / 1024
    jobs = sandboxes_at_once(machine.options.test_jobs)
    free = free_mb() / 1024
    found = f"{free:.1f} GB available and {_cores()}; {jobs} sandboxes at once may take {jobs * each:g} GB"
    if jobs * each <= free and jobs <= cores:
        yield ok("memory, cores", found)
    else:
        fix = f"use --test-jobs {max(1, int(min(cores, free / each)))}, or tests may die or time out for want of room"
        yield warning("memory, cores", found, fix)


def _cores() -> str:
    usable, there = usable_cores(), os.cpu_count() or 1
    if usable == there:
        return f"{there} cores"
    return f"{usable:g} of {there} cores (CPU affinity or a cgroup quota excludes the rest)"
