"""The Python that runs Retrial, as a sandbox on the host shows it: the standard library and pytest, nothing else.

A tiny virtual environment is laid out inside the sandbox, so that neither Retrial's own packages nor those of the base
interpreter can be imported there.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from retrial.language import Toolchain

HOME = "/opt/retrial/python"
ROOT = "pytest"


def toolchain() -> Toolchain | str:
    """What this interpreter has, or one sentence saying what is missing."""
    try:
        packages = dict(_packages())
    except importlib.metadata.PackageNotFoundError as error:
        return f"The Python package '{error.name}' is not installed beside Retrial: pip install {error.name}"
    if missing := sorted(name for name, paths in packages.items() if not paths):
        return f"The files of the Python package '{missing[0]}' cannot be listed: install it with pip."
    site = f"{HOME}/lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    binds = [(str(path), f"{site}/{path.name}") for paths in packages.values() for path in paths]
    base = interpreter()
    configuration = f"home = {os.path.dirname(base)}\ninclude-system-site-packages = false\n"
    return Toolchain(
        version=f"Python {platform.python_version()}, pytest {importlib.metadata.version(ROOT)}",
        binds=(*((folder, folder) for folder in base_folders()), *sorted(binds)),
        symlinks=tuple((base, f"{HOME}/bin/{name}") for name in ("python", "python3")),
        files={f"{HOME}/pyvenv.cfg": configuration.encode()},
        path=(f"{HOME}/bin",),
    )


def interpreter() -> str:
    """The base interpreter: no virtual environment, no packages of Retrial's."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def base_folders() -> tuple[str, ...]:
    """Where the base interpreter lives, as far as it is not in /usr, which every sandbox shows."""
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    base |= {"installed_base": sys.base_prefix, "installed_platbase": sys.base_exec_prefix}
    wanted = [os.path.dirname(interpreter()), f"{sys.base_prefix}/lib", f"{sys.base_exec_prefix}/lib"]
    wanted += [sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib")]
    chosen: list[str] = []
    for folder in sorted({os.path.realpath(folder) for folder in wanted if os.path.isdir(folder)}):
        if not any(PurePosixPath(folder).is_relative_to(parent) for parent in ("/usr", *chosen)):
            chosen.append(folder)
    return tuple(chosen)


def _packages() -> Iterator[tuple[str, tuple[Path, ...]]]:
    """pytest and all it needs here, each with what it puts into site-packages."""
    # Of pytest's own requirements, so it is there whenever pytest is.
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    waiting, seen = [ROOT], set[str]()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in seen:
            continue
        seen.add(name)
        distribution = importlib.metadata.distribution(name)
        yield name, _top_level(distribution)
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)


def _top_level(distribution: importlib.metadata.Distribution) -> tuple[Path, ...]:
    """Its modules and packages with their metadata (which tells a package its own version), without scripts."""
    if distribution.files is not None:
        names = {file.parts[0] for file in distribution.files if len(file.parts) > 1 or file.suffix == ".py"}
    else:
        # Installed by a system's package manager, which need not keep a list of files.
        modules = (distribution.read_text("top_level.txt") or "").split()
        names = {name for module in modules for name in (module, f"{module}.py")}
    names = {name for name in names if name not in ("..", "__pycache__") and not name.endswith(".data")}
    paths = (Path(str(distribution.locate_file(name))) for name in sorted(names))
    return tuple(path.resolve() for path in paths if path.exists())
