"""Programs of our own take turns."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from retrial.system import host

COUNT = 'mkdir "$1/$$" && ls "$1" | wc -l && rmdir "$1/$$"'


def test_many_tasks_start_few_programs_at_once(tmp_path: Path) -> None:
    def count(_: int) -> int:
        done = host.run_helper(("sh", "-c", COUNT, "sh", str(tmp_path)), timeout=60, capture_output=True, check=True)
        return int(done.stdout)

    with ThreadPoolExecutor(64) as pool:
        together = list(pool.map(count, range(128)))
    assert max(together) <= 2 * len(os.sched_getaffinity(0))


def test_a_signal_that_is_for_us_does_not_end_them() -> None:
    """Not even in the moment before they have a session of their own, which cannot be met by trying."""
    script = "kill -INT $$; kill -TERM $$; kill -HUP $$; echo alive"
    done = host.run_helper(("sh", "-c", script), timeout=60, capture_output=True, check=True)
    assert done.stdout == b"alive\n"
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
