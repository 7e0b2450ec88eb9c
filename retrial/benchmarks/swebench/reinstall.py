"""Installing the package of an image's tree again without a network: which patches need it, and whether to trust it.

Such an install can succeed and still install something else: version 0.0.0 where a build plugin is missing, another
kind of editable install where setuptools is older than the one that build isolation would have fetched. So it is
tried once on the untouched tree, where no code of a patch can run. Unless that reproduces what the image holds, no
verdict that depends on it is believed. What a patch itself changes, such as a version, is then the patch's own doing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from retrial.checks import Prebuild
from retrial.errors import InstallDiffers
from retrial.grading import prebuild
from retrial.protocols import Sandbox
from retrial.system.console import first_few
from retrial.types import Environment

BEFORE, AFTER = "before", "after"
"""Reports of a trial; without the second one the install failed."""

METADATA = frozenset({"setup.py", "setup.cfg", "pyproject.toml"})
"""Names of files that say what is installed. A patch may change them only where the reference does."""
_COMPILED = re.compile(
    r".+\.(?:c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|h\+\+|inl|ipp|tcc|cu|cuh|m|mm|s|asm|i|rs|def"
    r"|pyx|pxd|pxi|pyf|f|for|f77|f90|f95|f03|f08|src|tp|in|cmake|build)"
    r"|setup.*\.py|CMakeLists\.txt|meson[._]options(?:\.txt)?|Makefile.*|Cargo\.(?:toml|lock)",
    re.IGNORECASE,
)
"""Names of sources of extension modules, of templates of such sources, and of what says how to build them."""
_DEPENDENCIES = re.compile(r"requirements.*\.(?:txt|in)|environment.*\.ya?ml|Pipfile.*")

_LOCAL_VERSION = re.compile(r"[-_.]?dev\d*(?:\+[\w.]+)?|\+[\w.]+")
"""What a version has of the commit and the day of a build, which differ between two builds of one tree."""

STATE = """\
import ast, os, re, sys

METADATA = {".dist-info": "METADATA", ".egg-info": "PKG-INFO", "EGG-INFO": "PKG-INFO"}


def text(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def distribution(folder, path):
    fields = dict(re.findall(r"^(Name|Version): *(\\S+)", text(path), re.M))
    name = re.sub("[-_.]+", "-", fields.get("Name", "")).lower()
    print("distribution", name, fields.get("Version", ""), "in", folder)


def entry(folder, name):
    path = os.path.join(folder, name)
    for ending, file in METADATA.items():
        found = os.path.join(path, file) if os.path.isdir(path) else path
        if name.endswith(ending) and os.path.isfile(found):
            distribution(folder, found)
    if name.startswith("__editable__"):
        mapping = re.search(r"^MAPPING\\b[^=]*= *(\\{.*\\})", text(path), re.M) if name.endswith(".py") else None
        for module, place in ast.literal_eval(mapping.group(1)).items() if mapping else ():
            print("module", module, "from", place)
    elif name.endswith(".egg-link"):
        print("link", name)
    elif name.endswith(".pth") and re.search("^import", text(path), re.M):
        print("hook", name)


def extensions(tree):
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name != ".git"]
        place = os.path.relpath(folder, tree)
        kind = "built" if place.split(os.sep)[0] == "build" else "extension"
        for name in names:
            if name.endswith((".so", ".pyd")):
                print(kind, os.path.join(place, name))


for folder in filter(os.path.exists, sys.path):
    print("path", folder)
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        entry(folder, name)
extensions(sys.argv[1])
"""
"""Prints what is installed, a line each. It reads files and imports nothing of the tree; Python 3.4 can run it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinstall:
    """How the package of an image's tree is installed again where there is no network."""

    trial: Prebuild
    """Installs the untouched package and reports what is installed before and after."""
    always: bool
    """Every patch needs it: the install copies the package instead of pointing at the tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a trial on the untouched tree found installed, before and after."""

    before: frozenset[str]
    after: frozenset[str] | None
    """None where the install failed."""

    @property
    def compiles(self) -> bool:
        """Whether the package has extension modules, so that an install compiles sources."""
        return any(line.startswith(("extension ", "built ")) for line in self.before)

    @property
    def fault(self) -> str:
        """Why an install without a network cannot be believed; empty when it can."""
        if self.after is None:
            return "the package cannot be installed without a network, even without the patch"
        before, after = (_compared(lines) for lines in (self.before, self.after))
        if before == after:
            return ""
        new, old = (first_few(sorted(lines)) or "nothing" for lines in (after - before, before - after))
        return f"installing the package without a network gives {new} instead of {old}"


def read(files: Mapping[str, bytes]) -> Trial | None:
    """None where the trial came to no end."""
    texts = {PurePosixPath(path).name: content.decode("utf-8", "replace") for path, content in files.items()}
    reports = {name: frozenset(text.splitlines()) for name, text in texts.items()}
    return Trial(before=reports[BEFORE], after=reports.get(AFTER)) if BEFORE in reports else None


def needed(paths: Iterable[str], plan: Reinstall, environment: Environment, sandbox: Sandbox, *, fresh: bool) -> bool:
    """Whether the package must be installed again for a patch of these paths.

    Raises: InstallDiffers when it must be, and the result could not be believed; SandboxError.
    """
    described = any(PurePosixPath(path).name in METADATA for path in paths)
    if not (described or plan.always or any(map(compiled, paths))):
        return False
    trial = read(prebuild.files(plan.trial, environment, sandbox, fresh=fresh))
    if trial is None:
        raise InstallDiffers("the package could not be reinstalled offline as a trial (see run.log): use --network")
    if not (described or plan.always or trial.compiles):
        # Nothing is compiled in this package: such a file is only left lying about.
        return False
    if trial.fault:
        raise InstallDiffers(f"{trial.fault}: use --network")
    return True


def compiled(path: str) -> bool:
    """Whether an install may compile this file, or be told by it what to compile."""
    return bool(_COMPILED.fullmatch(PurePosixPath(path).name))


def changes_dependencies(paths: Iterable[str]) -> bool:
    """Whether the official runner, which has a network, may have installed other packages than the image holds."""
    names = [PurePosixPath(path).name for path in paths]
    return any(name in METADATA or _DEPENDENCIES.fullmatch(name) for name in names)


def _compared(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(_LOCAL_VERSION.sub("", line) for line in lines if not line.startswith("built "))
