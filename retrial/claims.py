"""One process at a run: two would ask the same questions, and neither would know what the other spends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from retrial.errors import UsageError
from retrial.store import Run


@contextmanager
def claimed(run: Run) -> Iterator[None]:
    """Held until the end, also of a process that is killed.

    Raises: UsageError while another process holds it.
    """
    run.folder.mkdir(parents=True, exist_ok=True)
    folder = os.open(run.folder, os.O_RDONLY)
    try:
        _lock(folder, run.name)
        yield
    finally:
        os.close(folder)


def _lock(folder: int, name: str) -> None:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"Run '{name}' is under way in another process: wait for it, or name another run.") from error
