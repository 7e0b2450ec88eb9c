"""Runs programs that import retrial as a user without privileges, also when the tests themselves run as root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrial.languages.python import toolchain
from tests.parts import require

PROJECT = Path(__file__).resolve().parents[2]
UID = 1001
"""Of the user, if the tests run as root; nothing has to exist under this number."""
PYTHONS = (sys.executable, "/usr/bin/python3")
USABLE = "import sys; sys.exit(sys.version_info < (3, 11))"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinaryUser:
    python: str
    home: Path
    """Holds copies of retrial and of pytest: the originals may lie where only root can read."""

    def run(self, program: str, *arguments: object) -> Any:
        """Return what the program prints, as JSON."""
        command = [self.python, "-B", "-c", program, *map(json.dumps, arguments)]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.home, timeout=300, env=self._environment(), **_identity()
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def _environment(self) -> Mapping[str, str]:
        home = str(self.home / "home")
        return {"PATH": "/usr/bin:/bin", "HOME": home, "RETRIAL_CACHE": home, "PYTHONPATH": str(self.home)}


@contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    usable = [python for python in PYTHONS if _can_run(python)]
    require("toolchains", "" if usable else "no Python 3.11 or newer that an ordinary user can run")
    # Not below pytest's own folder, which only its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="retrial-ordinary-"))
    try:
        folder.chmod(0o755)
        shutil.copytree(PROJECT / "retrial", folder / "retrial", ignore=shutil.ignore_patterns("__pycache__"))
        for paths in dict(toolchain._packages()).values():
            for path in paths:
                (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
        (folder / "home").mkdir()
        if os.geteuid() == 0:
            os.chown(folder / "home", UID, UID)
        yield OrdinaryUser(python=usable[0], home=folder)
    finally:
        shutil.rmtree(folder)


def _can_run(python: str) -> bool:
    try:
        return subprocess.run([python, "-c", USABLE], cwd="/", capture_output=True, **_identity()).returncode == 0
    except OSError:
        return False


def _identity() -> dict[str, Any]:
    return {"user": UID, "group": UID, "extra_groups": []} if os.geteuid() == 0 else {}
