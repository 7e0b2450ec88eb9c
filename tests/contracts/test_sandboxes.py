"""What every sandbox holds, tried from inside: no mocks, real processes, real limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from retrial import registry
from retrial.errors import SandboxError
from retrial.protocols import Sandbox
from retrial.sandboxes import probe
from retrial.sandboxes.bwrap import limits as job_limits
from retrial.system import locks
from retrial.types import Environment, Execution, Job, Limits
from tests.parts import PYTHON, ready, require
from tests.support import cgroups

pytestmark = pytest.mark.real

LIMITS = Limits(seconds=60, memory_mb=512, processes=64, disk_mb=64)
SHORT = replace(LIMITS, seconds=1.0)

# Leaves a process behind that has its own session, no parent, and our stdout.
DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
{then}
"""


# Of a shell that has no script open; the last command keeps the shell from becoming `ls`.
DESCRIPTORS = "sh -c 'ls /proc/$$/fd; :'"


@pytest.fixture(scope="module", params=registry.names("sandboxes"))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return ready(request.param)


def run(sandbox: Sandbox, script: str, files: Mapping[str, bytes] | None = None, limits: Limits = LIMITS) -> Execution:
    return sandbox.run(Job(environment=PYTHON, script=script, files=files or {}, limits=limits))


def run_python(sandbox: Sandbox, program: str, limits: Limits = LIMITS, after: str = "") -> Execution:
    return run(sandbox, f"python3 main.py\n{after}", {"main.py": program.encode()}, limits)


def commands() -> set[bytes]:
    """The command lines of all processes of the host."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.add(path.read_bytes())
    return found


# What a job gets and gives


@pytest.mark.smoke
def test_the_scripts_own_exit_code_comes_back(sandbox: Sandbox) -> None:
    assert run(sandbox, "exit 0").exit_code == 0
    assert run(sandbox, "exit 42").exit_code == 42


@pytest.mark.smoke
def test_stdout_and_stderr_come_back_apart(sandbox: Sandbox) -> None:
    seen = run(sandbox, "echo to out; echo to err >&2")
    assert (seen.stdout, seen.stderr) == ("to out\n", "to err\n")
    assert not (seen.timed_out or seen.oom or seen.truncated)


def test_output_without_a_final_newline_gets_none(sandbox: Sandbox) -> None:
    assert run(sandbox, "printf abc").stdout == "abc"


@pytest.mark.smoke
def test_files_arrive_with_their_folders_and_executable_bits(sandbox: Sandbox) -> None:
    files = {"deep/er/data.bin": bytes(range(256)), "say": b"#!/bin/sh\necho said\n", "plain": b"", "ünï cödé": b"x"}
    script = 'pwd; ./say; test -x plain || echo plain; cat "ünï cödé"; cp deep/er/data.bin $RETRIAL_REPORTS'
    job = Job(environment=PYTHON, script=script, files=files, executable=frozenset({"say"}), folder="my-task")
    seen = sandbox.run(job)
    assert seen.stdout == "/tmp/job/my-task\nsaid\nplain\nx"
    assert seen.reports["data.bin"] == bytes(range(256))


def test_files_belong_to_the_jobs_user_and_can_be_changed(sandbox: Sandbox) -> None:
    assert run(sandbox, "echo new >old && cat old && mkdir build", {"old": b"old"}).stdout == "new\n"


@pytest.mark.parametrize("path", ["../outside", "/tmp/outside", "a/../../outside"])
def test_a_file_outside_the_folder_is_refused(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(SandboxError):
        run(sandbox, "true", {path: b""})


@pytest.mark.parametrize("folder", ["..", "/tmp", "a/b", "", ".script"])
def test_a_folder_that_is_no_plain_name_is_refused(sandbox: Sandbox, folder: str) -> None:
    with pytest.raises(SandboxError):
        sandbox.run(Job(environment=PYTHON, script="true", files={}, folder=folder))


def test_large_files_go_in_and_large_reports_come_out(sandbox: Sandbox) -> None:
    content = os.urandom(3_000_000)
    seen = run(sandbox, 'cp data "$RETRIAL_REPORTS"', {"data": content})
    assert seen.reports["data"] == content


@pytest.mark.smoke
def test_reports_come_back_with_folders_and_long_names(sandbox: Sandbox) -> None:
    long = "n" * 150 + ".xml"
    seen = run(sandbox, f'cd "$RETRIAL_REPORTS"; mkdir sub; echo 1 >sub/a.xml; echo 2 >{long}; : >empty')
    assert dict(seen.reports) == {"sub/a.xml": b"1\n", long: b"2\n", "empty": b""}


def test_only_regular_files_count_as_reports(sandbox: Sandbox) -> None:
    seen = run(sandbox, 'cd "$RETRIAL_REPORTS"; ln -s /etc/passwd link; mkfifo pipe; echo 1 >real; ln real hard')
    assert set(seen.reports) in ({"real"}, {"hard"})


def test_reports_over_the_limit_are_dropped_whole(sandbox: Sandbox) -> None:
    script = 'echo 1 >"$RETRIAL_REPORTS/small"; truncate -s 1T "$RETRIAL_REPORTS/huge"; exit 3'
    seen = run(sandbox, script, limits=replace(LIMITS, report_bytes=100_000))
    assert (seen.exit_code, dict(seen.reports), seen.truncated) == (3, {}, True)


@pytest.mark.smoke
def test_too_much_output_is_cut_in_the_middle(sandbox: Sandbox) -> None:
    script = "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo last; echo err >&2"
    seen = run(sandbox, script, limits=replace(LIMITS, output_bytes=10_000))
    assert seen.truncated
    assert seen.stdout.startswith("first\nxxx")
    assert seen.stdout.endswith("xxxlast\n")
    assert f"[… {50_000_011 - 10_000} bytes cut …]" in seen.stdout
    assert len(seen.stdout) < 10_100
    assert seen.stderr == "err\n"


def test_invalid_utf_8_survives(sandbox: Sandbox) -> None:
    assert run(sandbox, r"printf 'a\377\000b'").stdout == "a\ufffd\0b"


def test_a_job_that_makes_its_output_non_blocking_loses_nothing(sandbox: Sandbox) -> None:
    program = "import os; [os.set_blocking(fd, False) for fd in (1, 2)]"
    seen = run_python(sandbox, program, after='head -c 4000000 /dev/zero >"$RETRIAL_REPORTS/zeros"')
    assert len(seen.reports["zeros"]) == 4_000_000


def test_the_toolchain_is_there_and_nothing_of_ours(sandbox: Sandbox) -> None:
    seen = run(
        sandbox, "python3 -m pytest --version && for m in openai docker retrial; do python3 -c import\\ $m; done"
    )
    assert seen.stdout.startswith("pytest ")
    assert seen.stderr.count("ModuleNotFoundError") == 3


# Walls


@pytest.mark.smoke
def test_a_job_resolves_its_own_host_name_to_the_loopback(sandbox: Sandbox) -> None:
    seen = run_python(sandbox, "import socket\nprint(socket.gethostbyname(socket.gethostname()))\n")
    assert seen.stdout == "127.0.0.1\n"


def test_there_is_no_network(sandbox: Sandbox) -> None:
    program = "import socket\ntry: socket.create_connection(('192.0.2.1', 53), 5)\nexcept OSError as e: print(e.errno)"
    assert run_python(sandbox, program).stdout == "101\n"


@pytest.mark.smoke
def test_files_of_the_host_cannot_be_read(sandbox: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    paths = [str(secret), str(Path(__file__).resolve()), "/etc/shadow", str(Path.home() / ".profile"), "/proc/1/cwd/x"]
    script = "\n".join(f"test -r {path} && echo {path}" for path in paths)
    assert run(sandbox, script).stdout == ""


def test_a_jobs_files_are_gone_for_the_next(sandbox: Sandbox) -> None:
    run(sandbox, "echo x >/tmp/left; echo x >/dev/shm/left; echo x >$HOME/left")
    assert run(sandbox, "ls /tmp/left /dev/shm/left $HOME/left 2>/dev/null").stdout == ""


def test_variables_of_the_host_are_absent(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-4711")
    seen = run(sandbox, "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    assert "sk-canary" not in seen.stdout
    assert "HOME=/tmp/home\n" in seen.stdout


@pytest.mark.smoke
def test_a_job_has_no_descriptors_but_its_streams(sandbox: Sandbox, inheritable: int) -> None:
    assert os.get_inheritable(inheritable)
    assert run(sandbox, DESCRIPTORS).stdout.split() == ["0", "1", "2"]


def test_nothing_can_be_written_outside_tmp(sandbox: Sandbox) -> None:
    folders = "/ /usr /usr/bin /usr/local /etc /dev /opt /var /var/tmp /home /root /run /sys /proc/sys/kernel"
    seen = run(sandbox, f"for folder in {folders}; do (: >$folder/x) 2>/dev/null && echo $folder; done; true")
    assert seen.stdout == ""


@pytest.mark.smoke
def test_the_job_is_nobody_to_the_host(sandbox: Sandbox) -> None:
    """Not even without capabilities may it be root: root owns /dev/null and the settings of the kernel."""
    seen = run(
        sandbox,
        "test -w /proc/sys/kernel/core_pattern && echo kernel\n"
        "chmod 600 /dev/null 2>/dev/null && echo device\n"
        "unshare --user true 2>/dev/null && echo namespace\n"
        "grep -E '^(CapEff|CapPrm|NoNewPrivs)' /proc/self/status",
    )
    assert seen.stdout.split() == ["CapPrm:", "0" * 16, "CapEff:", "0" * 16, "NoNewPrivs:", "1"]


# Limits


@pytest.mark.smoke
def test_a_full_disk_is_the_jobs_own(sandbox: Sandbox) -> None:
    seen = run(sandbox, "dd if=/dev/zero of=/tmp/big bs=1M count=500; dd if=/dev/zero of=/dev/shm/big bs=1M count=500")
    assert seen.stderr.count("No space left on device") == 2
    assert run(sandbox, "dd if=/dev/zero of=/tmp/big bs=1M count=10").exit_code == 0


@pytest.mark.smoke
def test_a_time_out_kills_the_whole_tree(sandbox: Sandbox) -> None:
    # Another worker's jobs are seen too.
    seconds = 1_000_000 + os.getpid()
    script = f"echo begun; trap '' TERM; (trap '' TERM; setsid sleep {seconds}) & while :; do sleep 1; done"
    seen = run(sandbox, script, limits=SHORT)
    assert (seen.timed_out, seen.exit_code, seen.stdout, dict(seen.reports)) == (True, None, "begun\n", {})
    assert f"sleep\0{seconds}\0".encode() not in commands()


BURN = "import time\nwhile time.process_time() < 0.3: pass"


def measures_cpu_time(sandbox: Sandbox) -> bool:
    return sandbox.describe()["limits"] != "rlimits"


@pytest.mark.smoke
def test_the_cpu_time_of_all_processes_is_measured(sandbox: Sandbox) -> None:
    seen = run(sandbox, "python3 burn.py & python3 burn.py; wait", {"burn.py": BURN.encode()})
    assert seen.exit_code == 0
    assert (seen.cpu_seconds is not None) == measures_cpu_time(sandbox)
    # Without a cgroup it is counted in ticks of 10 ms, rounded down.
    assert seen.cpu_seconds is None or seen.cpu_seconds >= 0.5


def test_the_cpu_time_of_a_job_that_ran_out_of_time_is_measured(sandbox: Sandbox) -> None:
    waiting, busy = (run(sandbox, script, limits=SHORT) for script in ("sleep 1000", "while :; do :; done"))
    assert waiting.timed_out
    assert busy.timed_out
    if measures_cpu_time(sandbox):
        assert waiting.cpu_seconds is not None
        assert busy.cpu_seconds is not None
        assert 0 <= waiting.cpu_seconds < busy.cpu_seconds


def test_a_limit_in_cpu_time_counts_only_what_the_job_used(sandbox: Sandbox) -> None:
    if not measures_cpu_time(sandbox):
        require("root", "an ordinary user's limits of each process measure no CPU time")
    # A tenth of a core is what a job gets on a busy machine.
    busy = replace(LIMITS, cpu_seconds=1.5, cpus=0.1)
    assert run(sandbox, "python3 burn.py", {"burn.py": BURN.encode()}, busy).exit_code == 0
    seen = run(sandbox, "while :; do :; done", limits=replace(LIMITS, cpu_seconds=0.5))
    assert seen.timed_out
    assert seen.cpu_seconds is not None
    assert seen.cpu_seconds >= 0.5
    assert not seen.starved


def test_with_a_limit_in_cpu_time_a_job_that_only_waits_is_ended_too(sandbox: Sandbox) -> None:
    seen = run(sandbox, "sleep 1000", limits=replace(LIMITS, cpu_seconds=1.0, seconds=3.0))
    assert (seen.timed_out, seen.starved) == (True, False)


def test_a_job_that_was_kept_from_its_cpu_time_is_said_to_be_starved(sandbox: Sandbox) -> None:
    limits = replace(LIMITS, cpu_seconds=30.0, seconds=2.0, cpus=0.1)
    seen = run(sandbox, "while :; do :; done", limits=limits)
    assert (seen.timed_out, seen.starved) == (True, measures_cpu_time(sandbox))


def test_endless_output_ends_with_the_time(sandbox: Sandbox) -> None:
    seen = run(sandbox, "yes", limits=replace(SHORT, output_bytes=1000))
    assert seen.timed_out
    assert seen.truncated


@pytest.mark.smoke
def test_memory_is_limited(sandbox: Sandbox) -> None:
    seen = run_python(sandbox, "x = b'x' * (2 << 30); print(len(x))", after="exit $?")
    assert str(2 << 30) not in seen.stdout
    # Limits of each process for itself kill nobody: there the job sees its own failure.
    assert seen.oom or sandbox.describe()["limits"] == "rlimits"
    assert seen.stdout == ""
    assert seen.exit_code != 0


@pytest.mark.smoke
def test_a_fork_bomb_is_bounded_and_the_next_job_works(sandbox: Sandbox) -> None:
    program = """
import os, time
made = 0
try:
    while made < 1000:
        if os.fork() == 0:
            time.sleep(1000)
        made += 1
except OSError:
    print("stopped")
print(30 < made < 70)
"""
    seen = run_python(sandbox, program)
    assert seen.stdout == "stopped\nTrue\n"
    assert run(sandbox, "echo fine").stdout == "fine\n"


def test_a_growing_fork_bomb_ends_with_the_time(sandbox: Sandbox) -> None:
    assert run_python(sandbox, "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", SHORT).timed_out
    assert run(sandbox, "echo fine").stdout == "fine\n"


# Ends that are hard to tell


@pytest.mark.smoke
def test_a_child_left_behind_is_killed_and_blocks_nothing(sandbox: Sandbox) -> None:
    seen = run_python(sandbox, DAEMON.format(then="print('alive', flush=True); time.sleep(1000)"), after="exit 5")
    assert seen.exit_code == 5
    assert not seen.timed_out


def test_a_daemon_cannot_change_a_report_while_it_is_read(sandbox: Sandbox) -> None:
    """The report is large, so that there is time to change its end."""
    watch = """
def is_tar(pid):
    try:
        return open(f"/proc/{pid}/comm").read() == "tar\\n"
    except OSError:
        return False
path = os.environ["RETRIAL_REPORTS"] + "/report"
open(path, "wb").write(b"true " * 1_000_000)
report = open(path, "r+b", 0)
open("ready", "w")
while not any(is_tar(pid) for pid in os.listdir("/proc") if pid.isdigit()):
    pass
report.seek(4_000_000)
report.write(b"false" * 200_000)
"""
    seen = run_python(sandbox, DAEMON.format(then=watch), after="until [ -e ready ]; do :; done")
    assert seen.reports["report"] == b"true " * 1_000_000


@pytest.mark.smoke
def test_frames_cannot_be_forged_by_printing(sandbox: Sandbox) -> None:
    forged = "for n in '' 0 $$ retrial; do printf '\\n%s end 0\\n' $n; tar -cf - main.py; printf '%s done\\n' $n; done"
    seen = run(sandbox, f"{forged}; exit 9", {"main.py": b"x"})
    assert (seen.exit_code, dict(seen.reports)) == (9, {})


def test_a_job_that_kills_its_supervisor_ends_without_reports(sandbox: Sandbox) -> None:
    seen = run(sandbox, 'echo 1 >"$RETRIAL_REPORTS/a"; echo out; kill -9 $PPID; sleep 1000')
    assert (seen.exit_code, dict(seen.reports), seen.timed_out, seen.stdout) == (None, {}, False, "out\n")


def test_a_job_that_kills_everyone_ends_without_reports(sandbox: Sandbox) -> None:
    seen = run(sandbox, "echo out; kill -9 -1; exec sleep 1000")
    assert (seen.exit_code, dict(seen.reports), seen.timed_out, seen.stdout) == (None, {}, False, "out\n")


def test_a_script_killed_by_a_signal_has_the_shells_status(sandbox: Sandbox) -> None:
    assert run(sandbox, "kill -9 $$").exit_code == 137


def test_a_job_that_removes_its_report_folder_has_no_reports(sandbox: Sandbox) -> None:
    seen = run(sandbox, 'rm -r "$RETRIAL_REPORTS"; exit 4')
    assert (seen.exit_code, dict(seen.reports)) == (4, {})


# Many, and none left


@pytest.mark.smoke
def test_jobs_in_parallel_do_not_mix(sandbox: Sandbox) -> None:
    def one(number: int) -> Execution:
        script = f'cat name; echo {number} >"$RETRIAL_REPORTS/n"; exit {number}'
        return run(sandbox, script, {"name": str(number).encode()})

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(one, range(8)))
    assert [(one.stdout, one.exit_code, one.reports["n"]) for one in seen] == [
        (str(number), number, f"{number}\n".encode()) for number in range(8)
    ]


@pytest.mark.smoke
def test_nothing_is_left(sandbox: Sandbox) -> None:
    run(sandbox, "sleep 1000 & true")
    run(sandbox, "sleep 1000", limits=SHORT)
    own = f"{locks.current_lease().name}-"
    assert [path for path in cgroups.of_jobs() if path.name.startswith(own)] == []
    if sandbox.name == "docker":
        from docker import from_env

        from retrial.sandboxes import docker

        engine = from_env()
        assert engine.containers.list(all=True, filters={"label": f"{docker.PID}={os.getpid()}"}) == []
        engine.close()


@pytest.mark.smoke
def test_it_says_what_it_is(sandbox: Sandbox) -> None:
    said = sandbox.describe()
    assert said["sandbox"] == sandbox.name
    assert said["version"][0].isdigit()
    assert said["limits"]
    assert sandbox.digest(PYTHON) == sandbox.digest(PYTHON) != ""


def test_the_cache_key_and_run_json_name_limits_that_the_kernel_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox, own = ready("bwrap"), job_limits.method()
    digests = set()
    for name, bounded in (("supervisor", True), ("rlimits", False)):
        method = job_limits.Method(name=name, open=own.open, bounded=bounded)
        monkeypatch.setattr(job_limits, "method", lambda method=method: method)
        digests.add(sandbox.digest(PYTHON))
        assert ("memory" in sandbox.describe()) == (not bounded)
    assert len(digests) == 2


@pytest.mark.smoke
def test_the_probe_finds_that_it_holds_and_remembers(sandbox: Sandbox, tmp_path: Path) -> None:
    probe.probe(sandbox, PYTHON, tmp_path)
    assert len(list((tmp_path / "probes").iterdir())) == 1
    probe.probe(sandbox, PYTHON, tmp_path)


def test_an_environment_that_cannot_be_had_is_named(sandbox: Sandbox) -> None:
    nowhere = Environment(name="nowhere", image="localhost:1/retrial/nowhere:0", language="")
    assert sandbox.unavailable([nowhere])
    with pytest.raises(SandboxError):
        sandbox.prepare(nowhere, lambda line: None)


def test_python_of_the_sandbox_is_ours_where_there_is_no_image(bwrap: Sandbox) -> None:
    ours = ".".join(map(str, sys.version_info[:3]))
    assert run(bwrap, "python3 --version").stdout == f"Python {ours}\n"
