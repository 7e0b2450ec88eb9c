"""Programs of our own (git, ruff) take turns: hundreds of tasks in flight must not start hundreds of them at once.

Each has a time limit, and one that starves among the others would be taken for one that hangs.
"""

from __future__ import annotations

import os
import subprocess
import threading
from typing import Any

_TURNS = threading.BoundedSemaphore(2 * len(os.sched_getaffinity(0)))


def run(command: tuple[str, ...], *, timeout: float, **how: Any) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run`; its time begins with its turn. Ctrl-C is for us: what runs may finish."""
    with _TURNS:
        return subprocess.run(command, timeout=timeout, start_new_session=True, **how)
