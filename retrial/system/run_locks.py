"""Lock a run for one process: two would ask the same questions, and neither would know what the other spends.

It is a lock on a file in the run's folder, which the kernel gives up when its holder ends, however it ends. On a
folder that several machines share it holds between them as far as the file system carries locks: NFS does, unless it
was mounted with `nolock` or `local_lock`. Where there are no locks at all it is said, and nothing is guarded.
"""

from __future__ import annotations

import datetime
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from retrial.errors import UsageError
from retrial.system.console import say

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLock:
    """What only one process may do to a run at a time."""

    file: str
    taken: str
    """How a run is that somebody else does it to."""
    help: str


PREDICTING = RunLock(
    file="run.lock", taken="is under way in another process", help="wait for it, end it, or name another run with --run"
)
SCORING = RunLock(file="scoring.lock", taken="is being scored by another process", help="wait for it, or end it")


@contextmanager
def run_lock(folder: Path, name: str, claim: RunLock) -> Iterator[Callable[[], str]]:
    """Lock the folder of the run with this name until the end, also of a process that is killed. Yields a function that
    returns why it is no longer held.

    Raises: UsageError while another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / claim.file
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        _lock(opened, path, name, claim)
        _say_who(opened)
        yield partial(_lost, opened, path)
    finally:
        os.close(opened)


def _lock(opened: int, path: Path, name: str, claim: RunLock) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"Run '{name}' {claim.taken}{_holder(path)}: {claim.help}.") from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        say(f"note: {path.parent} knows no locks: nothing keeps a second process from this run")


def _lost(opened: int, path: Path) -> str:
    """In one sentence; empty while it is held."""
    with suppress(OSError):
        if os.path.samestat(os.fstat(opened), os.stat(path)):
            return ""
    return f"somebody took {path} away, which keeps other processes from this run"


def _say_who(opened: int) -> None:
    """Only for people to read: what counts is the lock, so a full disk is no reason not to go on."""
    since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with suppress(OSError):
        os.ftruncate(opened, 0)
        os.pwrite(opened, json.dumps({"pid": os.getpid(), "host": os.uname().nodename, "since": since}).encode(), 0)


def _holder(path: Path) -> str:
    try:
        told = json.loads(path.read_bytes())
        return f" (pid {told['pid']} on {told['host']}, since {told['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        # It has only just begun.
        return ""
