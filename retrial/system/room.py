"""Room on disk: what is paid for must fit, so nothing new is begun where little is left; and a reserve for when it is
used up all the same."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from retrial.errors import UsageError

FLOOR = 32 << 20
"""Bytes that stay free."""
EACH = 256 << 10
"""Bytes more for each task under way: its replies, its prediction, its chat, the log of its tests."""
FILES = 200
"""As many can be made."""
NAME = ".reserve"
FULL = (errno.ENOSPC, errno.EDQUOT)
MB = 1_000_000
_LOG = logging.getLogger(__name__)


_reserves: list[Path] = []


class Room:
    """Where a program writes, and how much must be free there."""

    def __init__(self, folders: Iterable[Path], under_way: int) -> None:
        self._temporary = Path(os.environ.get("TMPDIR") or tempfile.gettempdir())
        self._folders = tuple(dict.fromkeys((*folders, self._temporary)))
        self._under_way = under_way
        self._first = dict[Path, tuple[int, int]]()
        """What these folders were when they were looked at first."""
        self._floor = FLOOR + EACH * under_way

    def refuse_unwritable(self) -> None:
        """Make these folders, but not the one for temporary files, which is not ours.

        Raises: UsageError naming the first that nothing can be written to.
        """
        for folder in self._folders:
            try:
                if folder != self._temporary:
                    folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
            except OSError as error:
                if error.errno not in FULL:
                    raise UsageError(
                        f"{folder} cannot be written to: {error.strerror}. Make it a folder of yours, or name another "
                        "(RETRIAL_HOME, RETRIAL_CACHE, TMPDIR)."
                    ) from error

    @contextmanager
    def reserved(self, folder: Path) -> Iterator[None]:
        """Keep some room in this folder, to be given up for what has to be written when the disk is full."""
        path = folder / NAME
        # Where there is no room for it, nothing will be begun anyway.
        with suppress(OSError), path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, EACH * (self._under_way + 4))
        _reserves.append(path)
        try:
            yield
        finally:
            _reserves.remove(path)
            path.unlink(missing_ok=True)

    def lacking(self) -> str:
        """Where there is too little room to begin anything, in one sentence; empty while there is enough."""
        return next((why for folder in self._folders if (why := self._lacking(folder))), "")

    def _lacking(self, folder: Path) -> str:
        try:
            seen, found = os.stat(folder), os.statvfs(folder)
        except OSError as error:
            return f"{folder} cannot be looked at: {error.strerror}"
        if self._first.setdefault(folder, (seen.st_dev, seen.st_ino)) != (seen.st_dev, seen.st_ino):
            return f"{folder} is not the folder that it was: somebody took that away"
        free = found.f_bavail * found.f_frsize
        if free < self._floor:
            return f"{free / MB:.0f} MB are free in {folder}, too few ({self._floor / MB:.0f} are needed): make room"
        if found.f_files and found.f_favail < FILES:
            return f"only {found.f_favail} more files can be made in {folder}: remove some there"
        return ""


def insist(write: Callable[[], None]) -> None:
    """Write; on a full disk once more, in the place of the reserve."""
    try:
        write()
    except OSError as error:
        if error.errno not in FULL or not _reserves:
            raise
        _LOG.error("The disk is full: the reserve is given up.", extra={"error": str(error)})
        for path in _reserves:
            # Another thread may have been first.
            path.unlink(missing_ok=True)
        write()
