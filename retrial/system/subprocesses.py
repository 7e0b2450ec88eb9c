"""Limit concurrent helper processes (git, ruff): hundreds of tasks in flight must not start hundreds of them.

Each has a time limit, and one that starves among the others would be taken for one that hangs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_TURNS = threading.BoundedSemaphore(2 * len(os.sched_getaffinity(0)))
_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(command: tuple[str, ...], *, timeout: float, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run`; its time begins with its turn. Ctrl-C is for us: what runs may finish."""
    with _TURNS, _undisturbed():
        return subprocess.run(command, timeout=timeout, start_new_session=True, **how)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """For a moment, before it has a session of its own, a program is in ours: it begins with these signals blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_US)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
