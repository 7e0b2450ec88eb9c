"""What bubblewrap holds for a user without privileges: no cgroup bounds the memory of a job there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.test_hostile_jobs import MEMORY
from tests.parts import ready
from tests.support.ordinary import OrdinaryUser, ordinary_user

pytestmark = pytest.mark.real

PROGRAM = """
import json, sys
from retrial.protocols import Context
from retrial.sandboxes import bwrap
from retrial.types import Environment, Job, Limits

python = Environment(name="python", image="python", language="python")
sandbox = bwrap.make(Context(options=None))

def seen(program):
    files = {"main.py": b"import ctypes, mmap, os, platform, threading, time\\n" + program.encode()}
    limits = Limits(seconds=60, memory_mb=128, processes=64, disk_mb=64)
    job = Job(environment=python, script="python3 main.py", files=files, limits=limits)
    execution = sandbox.run(job)
    return execution.oom, execution.exit_code, execution.stdout

print(json.dumps({name: seen(program) for name, program in json.loads(sys.argv[1]).items()}))
"""
TRIED = """
import json
from retrial.protocols import Context
from retrial.sandboxes import bwrap, probe
from retrial.types import Environment

python = Environment(name="python", image="python", language="python")
sandbox = bwrap.make(Context(options=None))
sandbox.prepare(python, lambda text: None)
print(json.dumps([sandbox.describe(), list(probe.find_holes(sandbox, python))]))
"""

TOO_MUCH = {
    **MEMORY,
    # Held until it is killed: the supervisor polls, so a process that ends between two polls is not noticed.
    "one process": "held = b'x' * (200 << 20); time.sleep(60)",
    "processes within the limit": """
for _ in range(4):
    if not os.fork():
        held = b"x" * (100 << 20)
        time.sleep(60)
os.wait()
""",
    "shared pages that no process maps any more": """
held = mmap.mmap(-1, 300 << 20)
while held.tell() < len(held):
    held.write(b"x" * (20 << 20))
    held.madvise(mmap.MADV_DONTNEED)
""",
    "a process whose first thread has ended": """
def hold():
    held = b"x" * (200 << 20)
    time.sleep(60)
threading.Thread(target=hold).start()
ctypes.CDLL(None).pthread_exit(None)
""",
    "a file in memory that the supervisor may not look at": """
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
held = os.memfd_create("held")
for _ in range(300):
    os.write(held, b"x" * (1 << 20))
time.sleep(60)
""",
    "files and pages together": """
for folder in ("/tmp", "/dev/shm"):
    with open(f"{folder}/held", "wb") as file:
        for _ in range(30):
            file.write(b"x" * (1 << 20))
held = b"x" * (90 << 20)
time.sleep(60)
""",
}
"""Programs that use more than 128 MB."""

ENOUGH = {
    "pages that forks share": """
held = b"x" * (70 << 20)
children = [os.fork() for _ in range(2)]
time.sleep(0.5)
if all(children):
    print("fine")
""",
    "pages that forks share until they end": """
held = b"x" * (90 << 20)
end = time.monotonic() + 3
while time.monotonic() < end:
    for _ in range(4):
        if not os.fork():
            os._exit(0)
    for _ in range(4):
        os.wait()
print("fine")
""",
    # A child of vfork shares the memory of its parent, which is suspended until the child starts a program.
    "a child that has not started its program yet": """
held = b"x" * (90 << 20)
clone = {"x86_64": 56, "aarch64": 220}[platform.machine()]
if ctypes.CDLL(None).syscall(clone, 0x4100 | 17, 0, 0, 0, 0) == 0:
    time.sleep(0.5)
    os.write(1, b"fine\\n")
    os._exit(0)
""",
    "a large mapping that is hardly used": "held = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE); print('fine')",
}


@pytest.fixture(scope="module")
def user() -> Iterator[OrdinaryUser]:
    ready("bwrap")
    with ordinary_user() as found:
        yield found


def test_a_job_that_uses_too_much_memory_in_any_way_runs_out_of_it(user: OrdinaryUser) -> None:
    seen = user.run(PROGRAM, TOO_MUCH)
    assert {name: oom for name, (oom, _, _) in seen.items()} == dict.fromkeys(TOO_MUCH, True)
    assert seen["one process"] == [True, 137, ""]


def test_memory_that_is_shared_or_unused_is_not_counted_twice(user: OrdinaryUser) -> None:
    seen = user.run(PROGRAM, ENOUGH)
    assert {name: (oom, said) for name, (oom, _, said) in seen.items()} == dict.fromkeys(ENOUGH, (False, "fine\n"))


def test_the_doctor_finds_that_all_limits_hold(user: OrdinaryUser) -> None:
    described, holes = user.run(TRIED)
    assert described["limits"] != "rlimits"
    assert "memory" not in described
    assert holes == []
