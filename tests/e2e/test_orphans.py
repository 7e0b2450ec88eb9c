"""kill -9 in the middle of a run: the next start removes whatever is left of it, and nothing of anybody else's."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from retrial.sandboxes import docker
from retrial.sandboxes.bwrap import limits
from retrial.system import locks, paths
from retrial.system.files import scratch_folder, scratch_places, scratch_prefix
from retrial.system.locks import ResourceKind
from retrial.types import Limits
from tests.conftest import PROJECT, Run
from tests.parts import ready
from tests.support import engines
from tests.support.exercises import RIGHT, reply, write_exercise, write_replies
from tests.system.test_leases import lives

pytestmark = pytest.mark.real
PATIENCE = 120.0
# A solution, and an agent, that can be found in the list of processes.
SLEEPER = "4714{}"


@pytest.fixture
def marker() -> str:
    """Seconds that nobody else sleeps for."""
    return SLEEPER.format(os.getpid())


def sleepers(marker: str) -> list[int]:
    found = subprocess.run(["pgrep", "-x", "-f", f"sleep {marker}"], capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def gone(marker: str) -> bool:
    """Waits for the last of them to end, but not for ever."""
    end = time.monotonic() + PATIENCE
    while sleepers(marker) and time.monotonic() < end:
        pass
    return not sleepers(marker)


@contextmanager
def killed_while_it_sleeps(marker: str, *arguments: object) -> Iterator[str]:
    """harness.py, killed in the middle; gives the name of its owner."""
    command = [sys.executable, str(PROJECT / "harness.py"), *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while not sleepers(marker):
            assert process.poll() is None, "it ended before its job began"
        [owner] = (
            each for each in (paths.cache() / locks.ALIVE).iterdir() if f'"pid": {process.pid}' in each.read_text()
        )
        process.kill()
        process.wait()
        yield owner.name
    finally:
        process.kill()
        process.wait()
        for pid in sleepers(marker):
            os.kill(pid, 9)


def left_by(owner: str) -> dict[ResourceKind, list[str]]:
    """What there is of it."""
    places = {*scratch_places(), Path(os.environ.get("TMPDIR", "/tmp"))}
    parents = {folder for name, folder in limits._mounts().items() if name != "v2"} | {Path("/sys/fs/cgroup/retrial")}
    found = {
        ResourceKind.FOLDERS: [str(path) for place in places for path in place.glob(f"{scratch_prefix(owner)}*")],
        ResourceKind.CGROUPS: [str(path) for parent in parents for path in parent.glob(f"{owner}-*")],
    }
    return {kind: names for kind, names in found.items() if names}


def slow_solution(tmp_path: Path, marker: str) -> tuple[object, ...]:
    """Options for a run whose tests do not end."""
    slow = f"import subprocess\nsubprocess.run(['sleep', '{marker}'])\n{RIGHT}"
    replies = write_replies(tmp_path / "replies.jsonl", reply(slow))
    return "-b", write_exercise(tmp_path / "bench"), "-m", f"replay/{replies}", "--tries", 1, "--run", "it"


def slow_agent(tmp_path: Path, marker: str, *more: object) -> tuple[object, ...]:
    command = f"setsid sleep {marker} & sleep {marker}"
    bench = write_exercise(tmp_path / "bench")
    return "-b", bench, "-a", "command", "--command", command, "--sandbox", "bwrap", "--run", "it", *more


def start(run: Run) -> str:
    """The next start of a program, with nothing to do."""
    done = run("harness.py", "-b", "demo", "-a", "null", "-n", 1, "--sandbox", "bwrap", "--dry-run")
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.usefixtures("home")
def test_a_killed_runs_jobs_die_with_it_and_the_next_start_removes_the_rest(
    run: Run, tmp_path: Path, marker: str
) -> None:
    ready("bwrap")
    other = limits.method().open(Limits())
    with killed_while_it_sleeps(marker, *slow_solution(tmp_path, marker), "--sandbox", "bwrap") as owner:
        assert gone(marker)
        assert left_by(owner)[ResourceKind.FOLDERS]
        ours = left_by(locks.current_lease().name)
        with scratch_folder() as folder:
            assert "Removed what a program that was killed had left" in start(run)
            assert folder.is_dir()
        assert left_by(owner) == {}
        assert left_by(locks.current_lease().name) == ours
        assert "Removed" not in start(run)
    other.close()


@pytest.mark.usefixtures("home")
def test_a_killed_runs_containers_are_removed_by_the_next_start(run: Run, tmp_path: Path, marker: str) -> None:
    ready("docker")
    arguments = (*slow_solution(tmp_path, marker), "--sandbox", "docker")
    with killed_while_it_sleeps(marker, *arguments) as owner, engines.engine() as client:
        # Containers do not end with who made them.
        assert sleepers(marker)
        image = client.containers(filters={"label": f"{docker.LABEL}={owner}"})[0]["ImageID"]
        theirs = client.create_container(image, ["true"], labels={docker.LABEL: "feedfeedfeed"})["Id"]
        try:
            assert "1 container" in start(run)
            assert client.containers(all=True, filters={"label": f"{docker.LABEL}={owner}"}) == []
            assert client.containers(all=True, filters={"label": f"{docker.LABEL}=feedfeedfeed"})
        finally:
            client.remove_container(theirs, force=True)
        assert gone(marker)
        assert left_by(owner) == {}


@pytest.mark.usefixtures("home")
def test_an_agent_in_a_cell_dies_with_the_program_that_runs_it(run: Run, tmp_path: Path, marker: str) -> None:
    ready("bwrap")
    with killed_while_it_sleeps(marker, *slow_agent(tmp_path, marker)) as owner:
        assert gone(marker)
        assert len(left_by(owner)[ResourceKind.FOLDERS]) == 2
        start(run)
        assert left_by(owner) == {}


@pytest.mark.usefixtures("home")
def test_an_agent_on_the_host_lives_until_the_next_start(run: Run, tmp_path: Path, marker: str) -> None:
    ready("bwrap")
    with killed_while_it_sleeps(marker, *slow_agent(tmp_path, marker, "--agent-on-host")) as owner:
        assert sleepers(marker)
        assert "processes" in start(run)
        assert gone(marker)
        assert left_by(owner) == {}


# Its bwrap dies, as it does with us, before it has told its copy to begin: seen in one of four kills of a busy program.
SPEECHLESS = """
import os, pathlib, re, signal, subprocess
from retrial.sandboxes.bwrap import process, limits
from retrial.types import Limits

def wait(self, child):
    status = pathlib.Path(f"/proc/{child}/status").read_text()
    os.kill(int(re.search(r"PPid:\\s*(\\d+)", status)[1]), signal.SIGKILL)
    print(child, flush=True)
    signal.pause()

process.Nobody.introduce = wait
slot = limits.method().open(Limits())
process.Bubble(["true"], process.View(disk_mb=1), slot, stderr=subprocess.PIPE)
"""


@pytest.mark.usefixtures("root", "home")
def test_a_sandbox_that_was_not_laid_out_yet_is_ended_by_the_next_start(run: Run) -> None:
    ready("bwrap")
    with subprocess.Popen(
        [sys.executable, "-c", SPEECHLESS], cwd=PROJECT, stdout=subprocess.PIPE, text=True
    ) as speechless:
        assert speechless.stdout
        child = int(speechless.stdout.readline())
        speechless.kill()
    assert lives(child)
    assert "1 process" in start(run)
    assert not lives(child)
