"""Toolchains on the host, for sandboxes that show them as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

SECONDS = 30.0


def missing(tools: Iterable[str], package: str) -> str:
    """One sentence when a program is not on the PATH."""
    gone = [tool for tool in tools if not shutil.which(tool)]
    return f"'{gone[0]}' is not on the PATH: install {package}, or use Docker." if gone else ""


def say(*command: str) -> str:
    """What a tool prints about itself; empty when it fails. Not in the folder of now, which may have settings of it."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.strip() or done.stderr.strip()) if done.returncode == 0 else ""


def folders(*paths: str) -> tuple[tuple[str, str], ...]:
    """Those that are there and not in /usr, which every sandbox shows, each bound to its own place."""
    found = sorted({path for path in paths if path and os.path.isdir(path) and not Path(path).is_relative_to("/usr")})
    return tuple((path, path) for path in found)
