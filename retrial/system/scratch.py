"""Folders that live for a moment, and carry the name of who made them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from retrial.errors import UsageError
from retrial.system import leases
from retrial.system.files import remove_all

MEMORY = Path("/dev/shm")
ROOM = 20
"""How many such folders there must be room for: others make theirs at the same time."""
SMALL = 10_000_000
"""Bytes; less is not worth counting."""


@contextmanager
def folder(size: int = 0, where: Path | None = None) -> Iterator[Path]:
    """A temporary folder for about `size` bytes: in memory where there is room for it, which is ten times as quick."""
    there = where or place(size) or Path(tempfile.gettempdir())
    made = Path(tempfile.mkdtemp(prefix=prefix(leases.register(leases.ResourceKind.FOLDERS, there)), dir=there))
    try:
        yield made
    finally:
        remove_all(made)
        if os.path.lexists(made):
            leases.current().abandon(str(made))


def prefix(owner: str) -> str:
    return f"retrial-{owner}-"


def place(size: int = 0) -> Path | None:
    """Where to make such a folder: where TMPDIR says, if it does; None is the usual place."""
    if wanted := os.environ.get("TMPDIR"):
        return Path(wanted)
    return MEMORY if _room() > ROOM * max(size, SMALL) else None


def refuse_missing() -> None:
    """Raise UsageError if TMPDIR names no folder: to create it, or to use /tmp instead, would surprise."""
    wanted = os.environ.get("TMPDIR")
    if wanted and not os.path.isdir(wanted):
        raise UsageError(f"TMPDIR is '{wanted}', which is not a folder: create it, or unset TMPDIR.")


def places() -> tuple[Path, ...]:
    """Where such folders may be."""
    return tuple(Path(os.path.realpath(folder)) for folder in (MEMORY, tempfile.gettempdir()))


def _room() -> int:
    """Bytes that are free; containers often give it a few MB only."""
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return 0
    found = os.statvfs(MEMORY)
    return found.f_bavail * found.f_frsize
