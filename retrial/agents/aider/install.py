"""Where aider is installed: an environment of its own, for it needs other versions of much that Retrial uses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from retrial.agents.isolation import Isolation
from retrial.agents.isolation.runner import on_no_task
from retrial.errors import EnvironmentMissing, NotMeasured, UsageError
from retrial.languages.python import toolchain
from retrial.sandboxes.bwrap import toolchain_store
from retrial.system import paths
from retrial.system.locks import file_lock
from retrial.types import fingerprint

REQUIREMENTS = paths.PROJECT / "requirements-aider.txt"
PYTHONS = ("python3.12", "python3.11", "python3.10")
"""What this release of aider runs on."""
FITS = "import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))"
PROBE = """\
import importlib.metadata, json, os, platform, sys
print(json.dumps({
    "aider": importlib.metadata.version("aider-chat"),
    "python": platform.python_version(),
    "executable": sys.executable,
    "folders": [sys.prefix, sys.base_prefix, sys.base_exec_prefix,
                os.path.dirname(os.path.realpath(sys.executable))],
}))
"""
PROBE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An aider that can be run."""

    python: str
    """The interpreter that can import it, as it is called in the cell."""
    version: str
    python_version: str
    shown: tuple[Path, ...] = ()
    """What of this host the cell must show."""


def given(python: str) -> Installation:
    """The one that `--aider-python` names on this host.

    Raises: UsageError.
    """
    found = shutil.which(os.path.expanduser(python))
    if found is None:
        raise UsageError(f"--aider-python names no program: {python}")
    try:
        done = _run([os.path.abspath(found), "-I", "-c", PROBE])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{python} cannot be run: {error}") from error
    about = _about(python, done.stdout if done.returncode == 0 else "", done.stderr)
    # By both names: what is installed there knows itself by the one it was called by.
    folders = sorted(
        {Path(name(folder)) for folder in about["folders"] for name in (os.path.abspath, os.path.realpath)}
    )
    shown = tuple(folder for folder in folders if not folder.is_relative_to("/usr"))
    return replace(_installation(about), shown=shown)


def in_image(python: str, cell: Isolation) -> Installation:
    """The one in the image that the cell is made from.

    Raises: UsageError.
    """
    try:
        ran, _ = on_no_task(cell, (python, "-I", "-c", PROBE))
    except NotMeasured as error:
        raise UsageError(f"aider cannot be run in the image: {error}") from error
    return _installation(_about(f"{python} in the image", ran.output if ran.exit_code == 0 else "", ran.output))


def own(cache: Path, say: Callable[[str], None]) -> Installation:
    """One of our own, made on first use.

    Raises: UsageError when there is no Python for it; EnvironmentMissing when it cannot be made.
    """
    base, version = _base()
    requirements = REQUIREMENTS.read_text(encoding="utf-8")
    # One name for one place, whatever links lead to it: the name is written into what is made there.
    place = (cache / "aider").resolve() / fingerprint(requirements, version)[:16]
    python = place / "env" / "bin" / "python"
    if not (place / toolchain_store.READY).exists():
        with file_lock(place / toolchain_store.LOCK) as lock:
            if not (place / toolchain_store.READY).exists():
                say(f"Installing aider with {version} into {place} (700 MB, once) …")
                _make(base, place / "env", lock)
                (place / toolchain_store.READY).touch()
    return given(str(python))


def _base() -> tuple[str, str]:
    """An interpreter that aider runs on, and its version."""
    for name in (toolchain.interpreter(), *PYTHONS):
        found = shutil.which(name)
        # A program of that name may be there and still find no Python to start.
        if found and _run([found, "-c", FITS]).returncode == 0:
            return found, _run([found, "--version"]).stdout.strip()
    raise UsageError(
        "Agent 'aider' needs Python 3.10, 3.11 or 3.12: install one of them so that it is on PATH, "
        "or name the Python of an environment that has aider with --aider-python PATH."
    )


def _make(base: str, place: Path, lock: int) -> None:
    shutil.rmtree(place, ignore_errors=True)
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "-r", str(REQUIREMENTS))
    for command in ((base, "-m", "venv", str(place)), (str(place / "bin" / "python"), *install)):
        try:
            # If we are killed, what still runs there keeps others out until it ends. All may read what it makes.
            done = _run(command, timeout=toolchain_store.SECONDS, pass_fds=(lock,), umask=0o022)
        except subprocess.TimeoutExpired as error:
            raise EnvironmentMissing(f"Installing aider took longer than {toolchain_store.SECONDS:.0f} s.") from error
        if done.returncode:
            raise EnvironmentMissing(
                f"aider could not be installed: {_last(done.stdout + done.stderr)}; is this machine online? "
                "Or name the Python of an environment that has aider with --aider-python PATH."
            )


def _run(command: Sequence[str], timeout: float = PROBE_SECONDS, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout, **how
    )


def _about(python: str, said: str, complaint: str) -> Any:
    """What the probe found; raises UsageError when it found no aider."""
    try:
        return json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise UsageError(f"{python} has no aider: {_last(complaint)}; install aider-chat there.") from None


def _installation(about: Any) -> Installation:
    return Installation(python=about["executable"], version=about["aider"], python_version=about["python"])


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it gave no reason"
