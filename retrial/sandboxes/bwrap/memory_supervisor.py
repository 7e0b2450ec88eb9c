"""Bounds the memory of a whole job where no cgroup does: counts it from outside, and kills as the kernel would."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

from retrial.errors import SandboxError
from retrial.sandboxes.bwrap import memory_usage
from retrial.sandboxes.bwrap.process import OWN_PROCESSES, first_process, pipe
from retrial.types import Limits

FILL_RATE = 8 << 30
"""Bytes a second. The time to fill what is left of the limit is the time until the next count."""
PAUSES = (0.005, 0.2)
"""The shortest and the longest such time."""
DYING_SECONDS = 1.0
"""For a killed process to give its memory back before another one is killed."""
SCOPE_SLACK_MB = 256
"""How much more memory a scope may use than the job in it: only what the supervisor is too late for ends there."""
TRIAL_SECONDS = 20
TRIAL_LIMITS = Limits(memory_mb=64)
# First three processes, each within the limit; then memory that they would share.
TRIAL = f"""
import mmap, os, signal
signal.alarm({TRIAL_SECONDS})
children = []
for _ in range(3):
    children.append(os.fork())
    if not children[-1]:
        held = b"x" * {TRIAL_LIMITS.memory_mb << 19}
        signal.pause()
child, status = os.wait()
print(os.WTERMSIG(status), flush=True)
for other in set(children) - {{child}}:
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
shared = mmap.mmap(-1, {TRIAL_LIMITS.memory_mb << 21})
while shared.tell() < len(shared):
    shared.write(b"x" * (1 << 20))
"""
BUBBLE = (
    "bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc",
    # Of its own, as in every bubble: the host's may be full.
    "--dev", "/dev", "--tmpfs", "/dev/shm", "--tmpfs", "/tmp"
)  # fmt: skip


class Supervisor:
    """The slot of one job: a thread that counts its memory until it ends."""

    def __init__(self, limits: Limits, prefix: tuple[str, ...] = (), inside: str = "") -> None:
        self.prefix, self.inside = prefix, inside
        self._limit = limits.memory_mb << 20
        self._ended = threading.Event()
        self._bubble: memory_usage.BubbleMemory | None = None
        self._thread: threading.Thread | None = None
        self._killed = False
        self._cpu_seconds: float | None = None
        self._failure = ""

    def adopt(self, process: int) -> None:
        try:
            self._bubble = memory_usage.BubbleMemory(process)
        except FileNotFoundError:
            # It has ended already.
            return
        self._thread = threading.Thread(target=self._watch, args=(self._bubble,), name="memory", daemon=True)
        self._thread.start()

    def oom(self) -> bool:
        """Raises: SandboxError when the memory could not be counted."""
        if self._failure:
            raise SandboxError(f"The memory of a job could not be counted: {self._failure}.")
        return self._killed

    def cpu_seconds(self) -> float | None:
        """As of the last look."""
        return self._cpu_seconds

    def wants_cpu(self) -> bool:
        return self._bubble is not None and self._bubble.wants_cpu()

    def kill(self) -> None:
        """Nothing is left by now: the processes have ended with their pid namespace."""
        self.close()

    def close(self) -> None:
        self._ended.set()
        if self._thread:
            self._thread.join()
        if self._bubble:
            self._bubble.close()
            self._bubble = None

    def _watch(self, bubble: memory_usage.BubbleMemory) -> None:
        pause = PAUSES[0]
        try:
            while not self._ended.wait(pause):
                pause = self._look(bubble) if bubble.is_laid_out() else PAUSES[0]
        except (OSError, ValueError, KeyError) as error:
            # Nothing may run that is not bounded.
            self._failure = f"{type(error).__name__}: {error}"
            for process in bubble.processes():
                bubble.kill(process)

    def _look(self, bubble: memory_usage.BubbleMemory) -> float:
        """Kill a process if the job uses too much, or hides how much; return the seconds until the next look."""
        processes = bubble.processes()
        if processes:
            self._cpu_seconds = bubble.cpu_seconds(processes)
        try:
            used = bubble.at_most(processes)
            if used > self._limit:
                used = bubble.exactly(processes)
        except memory_usage.Hidden as hidden:
            # As if it had used too much: a job must not choose what is measured.
            self._kill_one(bubble, hidden.process)
            return PAUSES[0]
        if used > self._limit and processes:
            self._kill_one(bubble, max(processes, key=lambda process: process.badness))
        return min(max((self._limit - used) / FILL_RATE, PAUSES[0]), PAUSES[1])

    def _kill_one(self, bubble: memory_usage.BubbleMemory, process: memory_usage.Process) -> None:
        self._killed = True
        bubble.kill(process)
        deadline = time.monotonic() + DYING_SECONDS
        while bubble.has(process) and time.monotonic() < deadline:
            if self._ended.wait(PAUSES[0]):
                return


def in_scope(limits: Limits) -> Supervisor:
    """A supervisor that says when a job ran out of memory, in a scope that cannot be outrun.

    A scope is gone with its last process, and with it what it counted.
    """
    settings = {
        "MemoryMax": f"{limits.memory_mb + SCOPE_SLACK_MB}M",
        "MemorySwapMax": "0",
        "TasksMax": str(limits.processes + OWN_PROCESSES),
        "CPUQuota": f"{int(limits.cpus * 100)}%",
    }
    options = [part for name, value in settings.items() for part in ("-p", f"{name}={value}")]
    return Supervisor(limits, prefix=("systemd-run", "--user", "--scope", "--quiet", "--collect", *options, "--"))


def bounds(open_slot: Callable[[Limits], Supervisor], holds: Callable[[int], bool] = lambda process: True) -> bool:
    """Return whether such a slot bounds several processes and shared memory here, by trying.

    `holds` is asked about the first process of the trial's bubble.
    """
    try:
        with ExitStack() as stack:
            slot = stack.enter_context(closing(open_slot(TRIAL_LIMITS)))
            info, info_there = pipe(stack)
            trial = stack.enter_context(_start(slot.prefix, info_there.fileno()))
            stack.callback(trial.kill)
            info_there.close()
            first = first_process(info)
            if not first or not holds(first):
                return False
            slot.adopt(first)
            said, _ = trial.communicate(timeout=2 * TRIAL_SECONDS)
            return slot.oom() and said.split() == [b"9"] and trial.returncode == 128 + signal.SIGKILL
    except (OSError, SandboxError, subprocess.TimeoutExpired):
        return False


def _start(prefix: tuple[str, ...], info: int) -> subprocess.Popen[bytes]:
    program = (sys.executable, "-I", "-S", "-c", TRIAL)
    command = [*prefix, *BUBBLE, "--info-fd", str(info), "--", *program]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, pass_fds=(info,))
