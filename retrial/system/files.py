"""Files that are written whole or not at all."""

from __future__ import annotations

import itertools
import os
from contextlib import suppress
from pathlib import Path

from retrial.system import leases, room
from retrial.system.secrets import KNOWN

_NUMBERS = itertools.count()


def write_atomically(path: Path, content: bytes) -> None:
    """All of it or nothing, and on disk when this returns; without what nobody may see."""
    room.insist(lambda: _write(path, KNOWN.masked_bytes(content), sure=True))


def write_again(path: Path, content: bytes) -> None:
    """What can be made again from what is on disk: if the machine itself fails in the next seconds, it may be lost."""
    room.insist(lambda: _write(path, KNOWN.masked_bytes(content), sure=False))


def write_data(path: Path, content: bytes, *, sure: bool = False) -> None:
    """Exactly these bytes: what is read back as data must be what it was. `sure` as in `write_atomically`."""
    room.insist(lambda: _write(path, content, sure=sure))


def write_if_other(path: Path, content: bytes) -> None:
    """As `write_again`, unless it is there already: to read is a fraction of the work."""
    masked = KNOWN.masked_bytes(content)
    try:
        same = path.stat().st_size == len(masked) and path.read_bytes() == masked
    except OSError:
        same = False
    if not same:
        write_again(path, content)


def _write(path: Path, content: bytes, *, sure: bool) -> None:
    # Carries our name: who is killed in the middle leaves it.
    owner = leases.mark(leases.Kind.FILES, path.parent)
    temporary = f"{path.parent}/.{path.name[:40]}.{owner}.{next(_NUMBERS)}"
    try:
        with os.fdopen(_created(temporary), "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            if sure:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        # Gone by now, unless something failed.
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _created(path: str) -> int:
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, how)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, how)


def sync_folder(folder: Path) -> None:
    """Its names are on disk when this returns: a file that nobody can find is not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
