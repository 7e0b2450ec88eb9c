"""Packages and warm caches of a language on this host: what an image has in /opt/retrial, made by the same script.

A store is made where it stays, for build tools write absolute paths into their caches; `.ready` says that it is whole.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from retrial.errors import EnvironmentMissing
from retrial.system import paths
from retrial.system.locks import file_lock
from retrial.types import fingerprint

SCRIPTS = paths.PROJECT / "docker" / "prepare"
READY, LOCK = ".ready", ".lock"
SECONDS = 1800.0
LAST_LINES = 5


def digest(language: str, version: str) -> str:
    """Names exactly what a store holds; empty for a language that needs none."""
    folder = SCRIPTS / language
    if not folder.is_dir():
        return ""
    files = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir()) if path.is_file()}
    return fingerprint(language, version, files)[:16]


def root(language: str, version: str) -> Path:
    """What jobs know as RETRIAL_STORE."""
    # One name for one place, whatever links lead to it: the name is written into what is made there.
    return (paths.cache() / "stores").resolve() / digest(language, version)


def ready(language: str, version: str) -> bool:
    return not digest(language, version) or (root(language, version) / READY).exists()


def ensure(language: str, version: str, say: Callable[[str], None]) -> None:
    """Make the store unless it is there.

    Raises: EnvironmentMissing.
    """
    if ready(language, version):
        return
    place = root(language, version)
    with file_lock(place / LOCK) as lock:
        if ready(language, version):
            return
        say(f"Preparing packages and caches for {language} ({version}), once …")
        shutil.rmtree(place / language, ignore_errors=True)
        _make(language, place / language, lock)
        (place / READY).touch()


def _make(language: str, folder: Path, lock: int) -> None:
    try:
        done = subprocess.run(
            ["sh", "./prepare", str(folder.absolute())],
            cwd=SCRIPTS / language,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # With the user's own settings, which may know a proxy or a mirror; but for all to read.
            env={**os.environ, "LC_ALL": "C.UTF-8"},
            umask=0o022,
            timeout=SECONDS,
            # If we are killed, what still runs there keeps others out until it ends.
            pass_fds=(lock,),
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentMissing(f"Preparing {language} took longer than {SECONDS:.0f} s.") from error
    if done.returncode:
        lines = [line.strip() for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
        raise EnvironmentMissing(f"Packages for {language} could not be had: {' / '.join(lines[-LAST_LINES:])}")
