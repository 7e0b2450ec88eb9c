"""Folders that live for a moment."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
SMALL = 10_000_000
"""Bytes; what is larger belongs on a disk."""


def folder(size: int = 0) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder for about `size` bytes: in memory where there is room for it, which is ten times as quick."""
    return tempfile.TemporaryDirectory(prefix="retrial-", dir=place(size))


def place(size: int = 0) -> Path | None:
    """Where to make such a folder: where TMPDIR says, if it does; None is the usual place."""
    if wanted := os.environ.get("TMPDIR"):
        return Path(wanted)
    return MEMORY if size <= SMALL and _room() else None


@functools.cache
def _room() -> bool:
    """Containers often give it a few MB only."""
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(MEMORY)
    return found.f_bavail * found.f_frsize > 20 * SMALL
