"""report.py --doctor: it finds what is wrong by trying, says what to do, and survives whatever is broken."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from retrial.cli.doctor import host
from retrial.cli.doctor.host import InspectedHost, State
from retrial.options import ReportOptions
from retrial.protocols import Sandbox
from retrial.sandboxes import probe
from retrial.system import host as this_machine
from retrial.types import Execution, Job
from tests.conftest import Run
from tests.parts import PYTHON

NOWHERE = "unix:///nowhere.sock"
ROW = re.compile(r"^(\S.*?) {2,}(ok|warning|problem) +(.+)$", re.MULTILINE)


def states(done: CompletedProcess[str]) -> dict[str, set[str]]:
    """What each check says, by its name."""
    assert "Traceback" not in done.stderr + done.stdout
    found: dict[str, set[str]] = {}
    for about, state, _ in ROW.findall(done.stdout):
        found.setdefault(about, set()).add(state)
    return found


@pytest.mark.real
def test_limits_are_tried_on_every_sandbox_that_is_there(run: Run, sandbox: Sandbox) -> None:
    done = run("report.py", "--doctor", "--sandbox", sandbox.name, OPENAI_API_KEY="sk-very-secret")
    assert done.returncode == 0, done.stdout
    found = states(done)
    assert found[f"limits: {sandbox.name}"] == found["sandbox"] == found["Python"] == {"ok"}
    assert f"tried, and they hold: {probe.TRIED}" in done.stdout
    assert "OPENAI_API_KEY (OpenAI: openai/…)" in done.stdout
    assert "sk-very" not in done.stdout + done.stderr
    assert "A default run works here: 0 problems" in done.stdout


@pytest.mark.real
def test_a_missing_engine_is_a_warning_where_bubblewrap_holds(run: Run, bwrap: Sandbox) -> None:
    done = run("report.py", "--doctor", DOCKER_HOST=NOWHERE)
    assert done.returncode == 0, done.stdout
    found = states(done)
    assert (found["docker"], found["sandbox"], found["host: python"]) == ({"warning"}, {"ok"}, {"ok"})
    assert "tests run in bwrap" in done.stdout


def test_without_any_sandbox_it_says_what_to_install(run: Run, tmp_path: Path) -> None:
    done = run("report.py", "--doctor", DOCKER_HOST=NOWHERE, PATH=str(tmp_path))
    assert done.returncode == 1
    found = states(done)
    assert (found["sandbox"], found["bwrap"], found["docker"]) == ({"problem"}, {"warning"}, {"warning"})
    assert "-> install bubblewrap (such as 'sudo apt-get install bubblewrap') or start a Docker engine" in done.stdout
    assert "A default run does not work here: 1 problem" in done.stdout


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:1", "ftp://127.0.0.1", "unix:///etc/passwd"])
def test_an_engine_that_cannot_be_asked_is_a_finding(run: Run, tmp_path: Path, address: str) -> None:
    done = run("report.py", "--doctor", "--sandbox", "docker", DOCKER_HOST=address)
    assert done.returncode == 1
    assert states(done)["docker"] == {"warning"}


def test_folders_that_cannot_be_written_to_are_a_problem(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = run("report.py", "--doctor", RETRIAL_CACHE=str(file / "cache"), RETRIAL_HOME=str(file), DOCKER_HOST=NOWHERE)
    assert done.returncode == 1
    found = states(done)
    assert (found["disk: cache"], found["disk: runs"]) == ({"problem"}, {"problem"})
    assert f"{file} cannot be written to: Not a directory" in done.stdout


def test_more_jobs_than_there_is_room_for_are_said(run: Run) -> None:
    done = run("report.py", "--doctor", "--sandbox", "docker", "--test-jobs", "5000", DOCKER_HOST=NOWHERE)
    assert states(done)["memory, cores"] == {"warning"}
    assert "5000 sandboxes at once may take 10000 GB" in done.stdout
    assert re.search(r"-> use --test-jobs \d+, or", done.stdout)


@pytest.fixture
def machine() -> InspectedHost:
    return InspectedHost(options=ReportOptions(), useless={"docker": "gone", "bwrap": ""})


def test_keys_are_named_and_never_shown(machine: InspectedHost, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_API_BASE", "_BASE_URL", "_HOST"))]:
        monkeypatch.delenv(name)
    (none,) = host.keys(machine)
    assert (none.state, none.fix.startswith("set a provider's variable")) == (State.WARNING, True)
    monkeypatch.setenv("GROQ_API_KEY", " ")
    monkeypatch.setenv("GEMINI_API_KEY", "4711")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:4711@127.0.0.1/v1")
    empty, held = host.keys(machine)
    assert (empty.state, empty.found) == (State.WARNING, "set, but empty: GROQ_API_KEY")
    assert held.found == "GEMINI_API_KEY (Google Gemini: gemini/…), OPENAI_BASE_URL leads openai/… elsewhere"


def test_only_what_tests_would_run_in_can_be_a_problem(machine: InspectedHost) -> None:
    assert machine.chosen == "bwrap"
    assert (machine.serious("bwrap"), machine.serious("docker")) == (State.PROBLEM, State.WARNING)


class Loose:
    """A real sandbox that does not keep some of its limits."""

    def __init__(self, sandbox: Sandbox, **lifted: int) -> None:
        self._sandbox, self._lifted = sandbox, lifted
        self.name, self.digest, self.describe = sandbox.name, sandbox.digest, sandbox.describe
        self.unavailable, self.missing, self.state = sandbox.unavailable, sandbox.missing, sandbox.state
        self.prepare, self.machine = sandbox.prepare, sandbox.machine

    def run(self, job: Job) -> Execution:
        return self._sandbox.run(replace(job, limits=replace(job.limits, **self._lifted)))


@pytest.mark.real
@pytest.mark.parametrize(
    ("lifted", "hole"),
    [
        ({"memory_mb": 2048}, "memory is not limited"),
        ({"memory_mb": 2048}, "memory of several processes is not limited as a whole"),
        ({"memory_mb": 2048}, "shared memory is not limited"),
        ({"disk_mb": 1024, "memory_mb": 2048}, "the disk is not limited"),
        ({"output_bytes": 10_000_000}, "output is not limited"),
        ({"processes": 1000}, "processes are not limited"),
    ],
)
def test_a_limit_that_does_not_hold_is_found(bwrap: Sandbox, lifted: dict[str, int], hole: str) -> None:
    assert any(hole in each for each in probe.find_holes(Loose(bwrap, **lifted), PYTHON))


class EachForItself(Loose):
    """A real sandbox that limits the memory of each process, and not that of the job."""

    def run(self, job: Job) -> Execution:
        return super().run(replace(job, script=f"ulimit -d {job.limits.memory_mb << 10}\n{job.script}"))


@pytest.mark.real
def test_limits_of_each_process_are_not_taken_for_limits_of_the_job(bwrap: Sandbox) -> None:
    found = list(probe.find_holes(EachForItself(bwrap, memory_mb=2048), PYTHON))
    assert found == ["memory of several processes is not limited as a whole", "shared memory is not limited"]


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("0::/pod\n", {"pod/cpu.max": "50000 100000\n", "cpu.max": "max 100000\n"}),
        ("3:cpu,cpuacct:/pod\n", {"cpu/pod/cpu.cfs_quota_us": "50000\n", "cpu/pod/cpu.cfs_period_us": "100000\n"}),
    ],
    ids=["v2", "v1"],
)
def test_cores_are_those_that_can_be_used(
    machine: InspectedHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, files: dict[str, str]
) -> None:
    there = os.cpu_count()
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemAvailable: 1048576 kB\n")
    (tmp_path / "self" / "cgroup").write_text("0::/\n")
    monkeypatch.setattr(this_machine, "_PROC", tmp_path)
    monkeypatch.setattr(this_machine, "_CGROUPS", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(os.cpu_count() or 1)))
    (few_sandboxes,) = host.memory(machine)
    assert f"1.0 GB available and {there} cores; 1 sandbox" in few_sandboxes.found
    (tmp_path / "self" / "cgroup").write_text(groups)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (half_a_core,) = host.memory(machine)
    assert f"1.0 GB available and 0.5 of {there} cores (" in half_a_core.found
