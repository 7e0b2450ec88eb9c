"""Jobs in images that hold their task's files: what they may, what they may not, and who ended them."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from docker.api import APIClient
from docker.errors import APIError

from retrial.errors import SandboxError
from retrial.protocols import Context
from retrial.sandboxes import docker, probe
from retrial.sandboxes.docker import Docker, exit_cause
from retrial.system import locks
from retrial.types import Execution, Job, Limits
from tests.parts import PYTHON, ready_with_repository
from tests.support import image_task
from tests.support.engines import Wire, engine, running, tree

pytestmark = pytest.mark.real

LIMITS = Limits(seconds=60, memory_mb=512, processes=64, disk_mb=64)


@pytest.fixture(scope="module")
def sandbox() -> Docker:
    ready_with_repository()
    return docker.make(Context(options=None))


def run(sandbox: Docker, script: str, limits: Limits = LIMITS, **files: bytes) -> Execution:
    return sandbox.run(Job(environment=image_task.environment(), script=script, files=files, limits=limits))


# What a job finds


def test_the_whole_task_works_without_a_network(sandbox: Docker) -> None:
    script = 'here=$PWD; cd "$RETRIAL_TREE" && git apply $here/patch && bash $here/eval 2>&1'
    seen = run(sandbox, script, patch=image_task.GOLD.encode(), eval=image_task.EVAL_SCRIPT.encode())
    row = image_task.row()
    for test in (*row["FAIL_TO_PASS"], *row["PASS_TO_PASS"]):  # type: ignore[misc]
        assert f"PASSED {test}\n" in seen.stdout
    assert "Successfully installed calc-1.0" in seen.stdout


def test_the_tree_in_the_image_is_the_tasks_base(sandbox: Docker, tmp_path: Path) -> None:
    seen = run(sandbox, "cd $RETRIAL_TREE; git rev-parse HEAD; git status --porcelain")
    assert seen.stdout == f"{image_task.BASE_COMMIT}\n"
    assert image_task.repository(tmp_path) == image_task.BASE_COMMIT


def test_the_job_is_root_and_may_write_anywhere_in_its_layer(sandbox: Docker) -> None:
    script = "id -u; pwd; touch /x /etc/x /usr/bin/x $RETRIAL_TREE/x && chown nobody /x && chmod 600 /x && echo x >>/x"
    seen = run(sandbox, f"{script} && setpriv --reuid nobody --clear-groups id -un")
    assert seen.stdout == "0\n/tmp/job/work\nnobody\n"
    assert run(sandbox, "ls /x /etc/x 2>/dev/null").stdout == ""


def test_the_images_own_variables_are_left_alone(sandbox: Docker) -> None:
    seen = run(sandbox, "env | cut -d= -f1 | sort")
    threads = {name for name in seen.stdout.split() if name.endswith("_THREADS")}
    ours = {"RETRIAL_REPORTS", "RETRIAL_TREE", *threads}
    images = {name for name in seen.stdout.split() if name.startswith("PIP_")}
    assert len(threads) == 5
    assert len(images) == 4
    assert set(seen.stdout.split()) - ours - images <= {"HOME", "HOSTNAME", "OLDPWD", "PATH", "PWD"}
    home = str(Path("/") / "root")
    assert run(sandbox, "echo $HOME $RETRIAL_TREE").stdout == f"{home} /testbed\n"


def test_numeric_libraries_are_told_how_many_cores_there_are(sandbox: Docker) -> None:
    for environment in (image_task.environment(), PYTHON):
        sandbox.prepare(environment, lambda line: None)
        job = Job(environment=environment, script="echo $OMP_NUM_THREADS", files={}, limits=replace(LIMITS, cpus=0.5))
        assert sandbox.run(job).stdout == "1\n"


# What it does not get


def test_root_in_a_container_has_power_over_its_own_files_and_processes_only(sandbox: Docker) -> None:
    seen = run(
        sandbox,
        "test -w /proc/sys/kernel/core_pattern && echo kernel\n"
        "mount -t tmpfs none /mnt 2>/dev/null && echo mount\n"
        "mknod /disk b 254 0 2>/dev/null && echo device\n"
        "unshare --user true 2>/dev/null && echo namespace\n"
        "chroot / true 2>/dev/null && echo chroot\n"
        "{ read -r header; read -r route && echo network; } </proc/net/route\n"
        "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status",
    )
    assert seen.stdout.split() == ["CapEff:", "00000000000000eb", "CapBnd:", "00000000000000eb", "NoNewPrivs:", "1"]


def test_the_walls_are_probed_once_for_all_such_images(sandbox: Docker, tmp_path: Path) -> None:
    probe.probe_walls(sandbox, image_task.environment(), tmp_path)
    assert len(list((tmp_path / "probes").iterdir())) == 1
    probe.probe_walls(sandbox, tree("localhost:1/not/there:1"), tmp_path)


def test_a_sandbox_with_a_hole_is_refused(tmp_path: Path) -> None:
    class Leaky(Docker):
        def run(self, job: Job) -> Execution:
            return super().run(replace(job, network=True))

    ready_with_repository()
    with pytest.raises(SandboxError, match="does not hold here: there is a route to a network"):
        probe.probe_walls(Leaky(), image_task.environment(), tmp_path)


def test_one_file_cannot_fill_the_disk(sandbox: Docker) -> None:
    seen = run(sandbox, "head -c 100000000 /dev/zero >/big; wc -c </big", limits=replace(LIMITS, disk_mb=10))
    assert seen.stdout == f"{10 << 20}\n"


def test_nor_can_many(sandbox: Docker) -> None:
    script = "for n in 1 2 3 4; do head -c 5000000 /dev/zero >/big$n; done; echo written; exec sleep 1000"
    seen = run(sandbox, script, limits=replace(LIMITS, disk_mb=10))
    assert (seen.stdout, seen.exit_code, seen.timed_out) == ("written\n", None, False)
    assert "wrote more than 10 MB" in seen.stderr


def test_memory_and_processes_are_limited(sandbox: Docker) -> None:
    seen = run(sandbox, "python3 -c 'x = b\"x\" * (2 << 30)'")
    assert seen.oom
    seen = run(sandbox, "i=0; while [ $i -lt 200 ]; do sleep 100 & i=$((i + 1)); done 2>/dev/null; echo all")
    assert "all" not in seen.stdout


# What comes out


FORGER = b"""
import os
report = open(os.environ["RETRIAL_REPORTS"] + "/report", "w+b", 0)
report.write(b"true " * 1_000_000)
os.setuid(65534)
if os.fork():
    os._exit(0)
def is_tar(pid):
    try:
        return open(f"/proc/{pid}/comm").read() == "tar\\n"
    except OSError:
        return False
while not any(is_tar(pid) for pid in os.listdir("/proc") if pid.isdigit()):
    pass
report.seek(4_000_000)
report.write(b"false" * 200_000)
"""


def test_a_process_of_another_user_cannot_change_a_report_while_it_is_read(sandbox: Docker) -> None:
    seen = run(sandbox, "python3 forger; exit 3", forger=FORGER)
    assert (seen.exit_code, seen.reports["report"]) == (3, b"true " * 1_000_000)


def test_a_long_log_comes_out_whole(sandbox: Docker) -> None:
    script = "seq 0 8000000 | head -c 64000000"
    seen = run(sandbox, script, limits=replace(LIMITS, output_bytes=64_000_000))
    assert (len(seen.stdout), seen.truncated) == (62_888_898, False)
    assert seen.stdout.endswith("\n8000000\n")


# Who ended it


def killer(action: Callable[[APIClient, str], None]) -> threading.Thread:
    """Waits for the job's own process to be seen, then acts on its container."""

    def work() -> None:
        with engine() as client:
            action(client, running(client, os.getpid(), "4712"))

    thread = threading.Thread(target=work)
    thread.start()
    return thread


ENDS: dict[str, Callable[[APIClient, str], None]] = {
    "kill": lambda client, container: client.kill(container),
    "stop": lambda client, container: client.stop(container, timeout=0),
    "rm": lambda client, container: client.remove_container(container, force=True),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_container_that_is_killed_from_outside_is_not_measured(sandbox: Docker, how: str) -> None:
    def act(client: APIClient, container: str) -> None:
        try:
            ENDS[how](client, container)
        except APIError:
            # Its owner has found it dead, and was the first to remove it.
            assert how == "rm"

    thread = killer(act)
    with pytest.raises(SandboxError, match="killed from outside"):
        run(sandbox, "echo begun; sleep 4712")
    thread.join()


@pytest.mark.parametrize(
    "script", ["kill -9 $PPID; sleep 1000", "kill -9 -1; exec sleep 1000", "kill -15 1; kill -9 1; kill -9 $PPID"]
)
def test_a_job_cannot_make_itself_unmeasured(sandbox: Docker, script: str) -> None:
    seen = run(sandbox, f"echo out; {script}")
    assert (seen.exit_code, seen.stdout, seen.timed_out, seen.oom) == (None, "out\n", False, False)


def test_a_container_that_lives_on_when_its_stream_has_ended_was_cut_off() -> None:
    ready_with_repository()
    broke = pytest.raises(SandboxError, match="connection to the engine broke")
    with engine() as client, _sleeper(client) as container, broke:
        exit_cause.refuse_if_from_outside(client, container, patience=1)


@contextmanager
def _sleeper(client: APIClient) -> Iterator[str]:
    labels = {docker.LABEL: locks.current_lease().name, docker.PID: str(os.getpid())}
    made = client.create_container(image_task.image(), ["sleep", "1000"], labels=labels, network_disabled=True)
    try:
        client.start(made["Id"])
        yield made["Id"]
    finally:
        client.remove_container(made["Id"], force=True)


def test_an_engine_that_goes_away_in_the_middle_is_no_verdict(
    sandbox: Docker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine() as client, Wire(tmp_path) as wire:
        monkeypatch.setenv("DOCKER_HOST", wire.address)
        thread = killer(lambda client, container: wire.cut())
        with pytest.raises(SandboxError, match="engine went away"):
            run(sandbox, "sleep 4712")
        thread.join()
        # Nobody could be asked to remove it; the next run would, once this process is gone.
        [left] = client.containers(filters={"label": f"{docker.PID}={os.getpid()}"})
        client.remove_container(left["Id"], force=True)
