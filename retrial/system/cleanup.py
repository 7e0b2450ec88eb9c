"""What killed programs left is removed at the next start: of owners that are surely dead, and nobody else's."""

from __future__ import annotations

import logging
import os
import re
import select
import signal
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from retrial.errors import RetrialError
from retrial.system import locks
from retrial.system.console import say
from retrial.system.files import remove_all, scratch_prefix
from retrial.system.locks import ResourceKind

LOOKS = 10
DYING_SECONDS = 5.0
_LOG = logging.getLogger(__name__)

Remover = Callable[[str, str], Iterator[str]]
"""Owner and place → each thing that it has removed. Raises: OSError or RetrialError when one cannot be."""


def remove(more: Mapping[ResourceKind, Remover]) -> None:
    """Remove what killed programs left. `more` are removers beside `REMOVERS`.

    What cannot be removed now is tried again at the next start; nothing of this stops a program.
    """
    removers = {**REMOVERS, **more}
    for dead in locks.expired_leases():
        removed = Counter[ResourceKind]()
        whole = dead.whole
        for kind, place in dead.made:
            try:
                for what in removers[kind](dead.name, place):
                    removed[kind] += 1
                    _LOG.info("Removed an orphan: %s", what, extra={"kind": str(kind), "owner": dead.name})
            except (OSError, RetrialError) as error:
                _LOG.warning("Could not remove %s of a killed program: %s", kind, error, extra={"owner": dead.name})
                whole = False
        if removed:
            things = ", ".join(f"{number} {kind if number > 1 else kind.one}" for kind, number in removed.items())
            say(f"Removed what a program that was killed had left (pid {dead.pid}): {things}")
        if whole:
            dead.forget()


def _folders(owner: str, place: str) -> Iterator[str]:
    for path in _in(place, re.compile(re.escape(scratch_prefix(owner)))):
        seen = os.lstat(path)
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            raise OSError(f"{path} is no folder of ours")
        remove_all(path)
        if os.path.lexists(path):
            raise OSError(f"{path} cannot be removed")
        yield str(path)


def _files(owner: str, place: str) -> Iterator[str]:
    for path in _in(place, re.compile(rf"\..*\.{owner}\.")):
        path.unlink(missing_ok=True)
        yield str(path)


def _in(place: str, wanted: re.Pattern[str]) -> list[Path]:
    """Nothing when the place itself is gone."""
    try:
        return [Path(place, name) for name in os.listdir(place) if wanted.match(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _processes(owner: str, place: str) -> Iterator[str]:
    """Agents on the bare host, and sandboxes that were not laid out yet. They may start others while we look."""
    for _ in range(LOOKS):
        killed = [name for name in filter(str.isdigit, os.listdir("/proc")) if _killed(int(name), owner)]
        yield from (f"process {name}" for name in killed)
        if not killed:
            return
    raise OSError("processes start faster than they can be killed")


def _killed(pid: int, owner: str) -> bool:
    """Whether this process was the owner's, and has been alive until now."""
    # It has ended, or it is another user's.
    with suppress(ProcessLookupError, FileNotFoundError, PermissionError):
        # Whoever has this pid later is not meant.
        process = os.pidfd_open(pid)
        try:
            if f"{locks.VARIABLE}={owner}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(process, signal.SIGKILL)
                select.select([process], [], [], DYING_SECONDS)
                return True
        finally:
            os.close(process)
    return False


REMOVERS: Mapping[ResourceKind, Remover] = {
    ResourceKind.PROCESSES: _processes,
    ResourceKind.FOLDERS: _folders,
    ResourceKind.FILES: _files,
}
"""What this folder knows how to remove."""
