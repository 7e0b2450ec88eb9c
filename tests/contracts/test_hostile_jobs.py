"""What a job tries that wants to harm its machine, or to get at it: in every sandbox, from inside."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from retrial import registry
from retrial.options import HarnessOptions
from retrial.protocols import Context, Sandbox
from retrial.sandboxes import bwrap
from retrial.sandboxes.bwrap import process
from retrial.types import Execution, Job, Limits
from tests.parts import PYTHON, ready, require

pytestmark = pytest.mark.real

LIMITS = Limits(seconds=60, memory_mb=128, processes=64, disk_mb=64)
SHORT = replace(LIMITS, seconds=1.0)

Address = str | tuple[str, int]

CALLS = """
import ctypes, os

libc = ctypes.CDLL(None, use_errno=True)
numbers = (ctypes.c_long * 2)(1, 1)
tried = {
    "mount": lambda: libc.mount(b"none", b"/tmp/home", b"tmpfs", 0, None),
    "bind": lambda: libc.mount(b"/proc", b"/tmp/home", None, 4096, None),
    "writable": lambda: libc.mount(None, b"/", None, 4096 | 32, None),
    "unmount": lambda: libc.umount2(b"/proc", 2),
    "root": lambda: libc.chroot(b"/tmp"),
    "device": lambda: libc.mknod(b"/tmp/device", 0o20666, os.makedev(1, 1)),
    "clock": lambda: libc.settimeofday(numbers, None),
    "name": lambda: libc.sethostname(b"x", 1),
    "swap": lambda: libc.swapon(b"/tmp/home", 0),
    "priority": lambda: libc.setpriority(0, 0, -20),
    "real time": lambda: libc.sched_setscheduler(0, 1, (ctypes.c_int * 1)(1)),
    "kernel log": lambda: libc.klogctl(3, ctypes.create_string_buffer(100), 100),
    **{f"namespace {flag:x}": lambda flag=flag: libc.unshare(flag) for flag in NAMESPACES},
}
print(*(name for name, call in tried.items() if call() != -1), sep="\\n", end="")
""".replace("NAMESPACES", "(0x10000000, 0x20000, 0x40000000, 0x20000000, 0x4000000, 0x8000000, 0x2000000, 0x80)")

KERNEL_FILES = """
import os

for top in ("/proc/sys", "/sys", "/proc/irq", "/proc/bus"):
    for folder, _, names in os.walk(top):
        for path in (os.path.join(folder, name) for name in names):
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            print(path)
"""


@pytest.fixture(scope="module", params=registry.names("sandboxes"))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return ready(request.param)


def run(sandbox: Sandbox, script: str, limits: Limits = LIMITS) -> Execution:
    return sandbox.run(Job(environment=PYTHON, script=script, files={}, limits=limits))


def run_python(sandbox: Sandbox, program: str, limits: Limits = LIMITS, after: str = "") -> Execution:
    files = {"main.py": program.encode()}
    return sandbox.run(Job(environment=PYTHON, script=f"python3 main.py\n{after}", files=files, limits=limits))


# Ways out


@pytest.fixture
def services(tmp_path: Path) -> Iterator[list[Address]]:
    """Addresses on this host at which somebody listens."""
    abstract, path = f"\0retrial-{secrets.token_hex(8)}", str(tmp_path / "socket")
    with ExitStack() as stack:
        everywhere = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        for address in (abstract, path):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        tmp_path.chmod(0o755)
        Path(path).chmod(0o777)
        port = everywhere.getsockname()[1]
        yield [("127.0.0.1", port), ("172.17.0.1", port), abstract, path, "/var/run/docker.sock", "/run/docker.sock"]


def connected(sandbox: Sandbox, addresses: list[Address]) -> str:
    program = f"""
import socket

for address in {addresses!r}:
    with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as tried:
        tried.settimeout(5)
        if tried.connect_ex(address) == 0:
            print(address)
try:
    print(socket.getaddrinfo("retrial.invalid", 80))
except socket.gaierror:
    print("nobody to ask")
"""
    return run_python(sandbox, program).stdout


def test_services_of_the_host_cannot_be_reached(sandbox: Sandbox, services: list[Address]) -> None:
    for address in services[:1] + services[2:4]:
        # They do listen, to who may.
        with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as tried:
            tried.connect(address)
    assert connected(sandbox, services) == "nobody to ask\n"


def test_there_is_no_way_around_the_network_to_the_machines_own_host(sandbox: Sandbox) -> None:
    if sandbox.name == "docker" and int(sandbox.describe()["version"].partition(".")[0]) < 23:
        require("docker 23", "this engine is older, and lets containers open such sockets")
    program = "import socket\ntry: socket.socket(socket.AF_VSOCK)\nexcept OSError as error: print('refused')"
    assert run_python(sandbox, program).stdout == "refused\n"


def test_keys_that_the_kernel_keeps_are_not_the_jobs(sandbox: Sandbox) -> None:
    """Its session's keyring would be that of whoever runs Retrial, and what it adds would outlive it."""
    program = """
import ctypes, platform
first = {"x86_64": 248, "aarch64": 217}[platform.machine()]
call = ctypes.CDLL(None).syscall
print(call(first, b"user", b"name", b"secret", 6, -4))
print(call(first + 1, b"user", b"name", None, 0))
print(call(first + 2, 0, -3, 1))
"""
    assert run_python(sandbox, program).stdout == "-1\n-1\n-1\n"


def test_rings_that_make_sockets_without_a_call_are_not_to_be_had(bwrap: Sandbox) -> None:
    # An engine has a filter of its own.
    program = "import ctypes; print(ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)))"
    assert run_python(bwrap, program).stdout == "-1\n"


def test_the_kernel_does_nothing_for_it_that_others_would_feel(sandbox: Sandbox) -> None:
    assert run_python(sandbox, CALLS).stdout == ""


def test_no_setting_of_the_kernel_can_be_opened_for_writing(sandbox: Sandbox) -> None:
    # This one is of the sandbox's own processes; anybody may open it, and nobody in there may write.
    assert set(run_python(sandbox, KERNEL_FILES).stdout.split()) <= {"/proc/sys/kernel/ns_last_pid"}


def test_a_crash_leaves_no_core_and_starts_nothing_on_the_host(sandbox: Sandbox) -> None:
    """One byte is what the kernel takes for "not even to a program", which 0 is not."""
    seen = run_python(sandbox, "import os; os.abort()", after="grep core /proc/self/limits; ls; ls /tmp")
    assert seen.stdout.split() == [
        "Max",
        "core",
        "file",
        "size",
        "1",
        "1",
        "bytes",
        "main.py",
        "home",
        "job",
        "reports",
    ]


@pytest.mark.parametrize("place", ["/usr/share/doc", "/usr/lib/os-release"])
def test_answers_that_lie_among_programs_cannot_be_seen(place: str) -> None:
    """As where the project, or a benchmark, is below /usr. (Images have nothing of the host's.)"""
    ready("bwrap")
    script = f"test -d {place} && ls -A {place}; test -f {place} && cat {place}; true"
    everything, all_but_answers = (bwrap.make(Context(options=HarnessOptions(benchmark=of))) for of in ("demo", place))
    assert run(everything, script).stdout
    assert run(all_but_answers, script).stdout == ""


# Using it up

MEMORY = {
    "files that have no name": "while True: os.posix_fallocate(os.memfd_create('x'), 0, 16 << 20)",
    "memory that is shared": "for part in [mmap.mmap(-1, 16 << 20) for _ in range(20)]: part.write(b'x' * (16 << 20))",
    "small files": "[os.symlink('x', f'/tmp/{number}') for number in range(1_000_000)]",
    "many processes": "kept = [os.fork() or (b'x' * (8 << 20), time.sleep(60)) for _ in range(50)]",
}


@pytest.mark.parametrize("kind", MEMORY)
def test_memory_is_counted_however_it_is_used(sandbox: Sandbox, kind: str) -> None:
    if sandbox.describe()["limits"] == "rlimits":
        require("root", "limits of each process for itself do not say that a job ran out of memory")
    seen = run_python(sandbox, f"import mmap, os, time\n{MEMORY[kind]}")
    assert seen.oom
    assert run(sandbox, "echo fine").stdout == "fine\n"


def test_what_is_counted_for_a_user_is_not_used_up_for_all(sandbox: Sandbox) -> None:
    """Such as signals that wait; and watchers of files, where the user is root to the kernel."""
    program = """
import ctypes
made = 0
while made < 64 and ctypes.CDLL(None).inotify_init() >= 0:
    made += 1
print(made)
"""
    seen = run_python(sandbox, program, after="grep pending /proc/self/limits").stdout.split()
    assert seen[1:] == ["Max", "pending", "signals", "4096", "4096", "signals"]
    if sandbox.name == "bwrap" and os.geteuid() == 0:
        assert 0 < int(seen[0]) <= process.WATCHERS


def test_endless_output_on_both_streams_ends_with_the_time(sandbox: Sandbox) -> None:
    seen = run(sandbox, "yes >&2 & yes", replace(SHORT, output_bytes=1000))
    assert (seen.timed_out, seen.truncated) == (True, True)
    assert max(len(seen.stdout), len(seen.stderr)) < 1100


# Ends


def test_a_job_that_stops_everyone_and_itself_ends_with_the_time(sandbox: Sandbox) -> None:
    seen = run(sandbox, "echo out; kill -STOP $PPID; kill -STOP -1; kill -STOP $$", SHORT)
    assert (seen.timed_out, seen.exit_code, seen.stdout) == (True, None, "out\n")


def test_a_job_that_holds_its_supervisor_ends_with_the_time(sandbox: Sandbox) -> None:
    program = "import ctypes, os, time; ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0); time.sleep(1000)"
    assert run(sandbox, f"exec python3 -c '{program}'", SHORT).timed_out


def test_odd_files_in_odd_places_are_no_trouble(sandbox: Sandbox) -> None:
    program = """
import os
for folder in (".", "/tmp", "/dev/shm"):
    os.chdir(folder)
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    os.mkfifo("pipe")
    open("sparse", "w").truncate(1 << 42)
    os.symlink("/dev/zero", "endless")
    os.mkdir("closed", 0)
"""
    seen = run_python(sandbox, program, after='echo 1 >"$RETRIAL_REPORTS/a"; chmod 0 d /tmp/d; exit 3')
    assert (seen.exit_code, dict(seen.reports)) == (3, {"a": b"1\n"})


@pytest.mark.parametrize(
    "odd",
    [
        "mkdir closed; echo 1 >closed/x; chmod 0 closed",
        'python3 -c \'import os; [(os.mkdir("d"), os.chdir("d")) for _ in range(3000)]\'',
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'; mkfifo pipe; ln -s /dev/zero zero",
    ],
)
def test_odd_files_among_reports_are_no_trouble(sandbox: Sandbox, odd: str) -> None:
    """Where they cannot be packed there are no reports."""
    seen = run(sandbox, f'cd "$RETRIAL_REPORTS"; echo 1 >a; {odd}; exit 3')
    assert seen.exit_code == 3
    assert set(seen.reports) <= {"a"}
