"""Solutions that would hurt the machine they are tested on. They run in sandboxes, and nowhere else.

Each attacks when it is loaded. WORD stands for one that is theirs alone, by which all that they leave can be found.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.exercises import RIGHT


@dataclass(frozen=True, slots=True)
class Attack:
    program: str
    outcomes: tuple[str, ...]
    """More than one where it is a race which limit ends it."""
    reason: str
    """Matches the sentence that users read."""

    def solution(self, word: str) -> str:
        return f"{self.program.replace('WORD', word)}\n\nattack()\n\n\n{RIGHT}"


TIME = ("timed_out",), "the tests did not end within"
# On a busy machine the time may be over before everything is used up.
MEMORY = ("timed_out", "build_failed"), "the tests (did not end within|ran out of memory)"
FULL = ("timed_out", "build_failed"), "the tests (did not end within|could not be loaded: .*No space left on device)"

FORKS = """\
import os


def attack():
    while True:
        try:
            os.fork()
        except OSError:
            pass
"""

MEMORY_OF_MANY = """\
import os
import time


def attack():
    for _ in range(70):
        if os.fork() == 0:
            kept = b"x" * (40 << 20)
            time.sleep(1000)
    os.wait()
"""

SHARED_MEMORY = """\
import os


def attack():
    while True:
        os.posix_fallocate(os.memfd_create("WORD"), 0, 16 << 20)
"""

DISK = """\
import os


def fill(path):
    with open(path, "wb", 0) as file:
        try:
            while True:
                file.write(b"x" * (1 << 20))
        except OSError as error:
            return error


def attack():
    for folder in ("/var/tmp", "/run", os.path.expanduser("~root"), "/dev", "/dev/shm", "/tmp"):
        try:
            full = fill(folder + "/WORD")
        except OSError:
            continue
    os.remove("/tmp/WORD")
    raise full
"""

INODES = """\
import os
import time


def attack():
    os.mkdir("/tmp/WORD")
    os.chdir("/tmp/WORD")
    for number in range(1_000_000):
        os.symlink("x", str(number))
    time.sleep(1000)
"""

OUTPUT = """\
import os


def attack():
    out = os.open(f"/proc/{os.getppid()}/fd/1", os.O_WRONLY)
    err = os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY)
    while True:
        os.write(out, b"x" * 65536)
        os.write(err, b"y" * 65536)
"""

REPORTS = """\
import os
import socket


def attack():
    os.mkfifo("/tmp/reports/pipe")
    socket.socket(socket.AF_UNIX).bind("/tmp/reports/socket")
    os.symlink("/dev/zero", "/tmp/reports/endless")
    with open("/tmp/reports/sparse", "w") as sparse:
        sparse.truncate(1 << 42)
"""

DEEP = """\
import os


def attack():
    here = os.getcwd()
    for _ in range(20_000):
        os.mkdir("d")
        os.chdir("d")
    os.chmod(".", 0)
    os.chdir(here)
    os.chmod("d", 0)
    raise ValueError("deep enough")
"""

STUBBORN = """\
import os
import signal
import time


def attack():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sh", ["sh", "-c", "while :; do sleep 1; done", "WORD"])
    time.sleep(1000)
"""

MURDER = """\
import os


def attack():
    os.kill(-1, 9)
    os.kill(os.getppid(), 9)
    os.kill(1, 9)
    os.abort()
"""

STOP = """\
import os
import signal
from pathlib import Path


def attack():
    others = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    for process in set(others) - {os.getpid()}:
        try:
            os.kill(process, signal.SIGSTOP)
        except OSError:
            pass
    os.kill(os.getpid(), signal.SIGSTOP)
"""

ATTACKS = {
    "forks": Attack(FORKS, *TIME),
    "memory_of_many": Attack(MEMORY_OF_MANY, *MEMORY),
    "shared_memory": Attack(SHARED_MEMORY, *MEMORY),
    "disk": Attack(DISK, *FULL),
    "inodes": Attack(INODES, *MEMORY),
    "output": Attack(OUTPUT, *TIME),
    "reports": Attack(REPORTS, ("build_failed",), "the report was lost"),
    "deep": Attack(DEEP, ("build_failed",), "could not be loaded: .*deep enough"),
    "stubborn": Attack(STUBBORN, *TIME),
    "murder": Attack(MURDER, ("build_failed",), "was killed"),
    "stop": Attack(STOP, *TIME),
}

DAEMON = """\
import os


def attack():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sh", ["sh", "-c", "while :; do sleep 1; done", "WORD"])
        os._exit(0)
"""
HARMLESS = Attack(DAEMON, ("resolved",), "")
"""It is right, and leaves a process behind that has its own session, no parent, and our stdout."""
