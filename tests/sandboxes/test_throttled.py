"""Sandboxes at once: what the machine is good for, fewer when it struggles; a verdict never changes by it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.errors import EnvironmentMissing, SandboxError, Stopped
from retrial.executors.limiter import calls_at_once, sandboxes_at_once, tasks_in_flight
from retrial.protocols import Sandbox
from retrial.sandboxes.throttled import ThrottledSandbox, UsedEnvironments
from retrial.system import host
from retrial.system.shutdown import Stop
from retrial.types import Execution, HostCapacity, Job, Limits
from tests.parts import PYTHON

JOB = Job(environment=PYTHON, script="echo done", files={}, limits=Limits(seconds=60, memory_mb=512))
SECONDS = 60


class Shaky:
    """A real sandbox whose engine is not there for some calls."""

    def __init__(self, inner: Sandbox, *failing: int, kind: type[SandboxError] = SandboxError) -> None:
        self.name = inner.name
        self.unavailable, self.missing, self.state = inner.unavailable, inner.missing, inner.state
        self.prepare, self.machine = inner.prepare, inner.machine
        self.digest, self.describe = inner.digest, inner.describe
        self._inner, self._failing, self._kind = inner, failing, kind
        self.calls = 0

    def run(self, job: Job) -> Execution:
        self.calls += 1
        if self.calls in self._failing:
            raise self._kind("The engine went away.")
        return self._inner.run(job)


pytestmark = pytest.mark.real


def test_a_job_whose_sandbox_failed_is_tried_once_more_and_fewer_run_at_once(bwrap: Sandbox) -> None:
    shaky = Shaky(bwrap, 1)
    bounded = ThrottledSandbox(shaky, 4, pause=0.0)
    assert bounded.run(JOB).stdout.strip() == "done"
    assert shaky.calls == 2
    assert bounded.slowed == "testing 1 at once of 4: bwrap struggles"


def test_it_grows_back_with_jobs_that_run(bwrap: Sandbox) -> None:
    bounded = ThrottledSandbox(Shaky(bwrap, 1), 3, pause=0.0)
    for _ in range(12):
        bounded.run(JOB)
    assert bounded.slowed == ""


def test_a_job_that_fails_twice_is_lost_and_a_sandbox_that_is_gone_is_not_tried_for_ever(bwrap: Sandbox) -> None:
    shaky = Shaky(bwrap, *range(1, 100))
    bounded = ThrottledSandbox(shaky, 2, pause=0.0)
    for _ in range(5):
        with pytest.raises(SandboxError, match="went away"):
            bounded.run(JOB)
    assert shaky.calls == 3 * 2 + 2


def test_a_job_that_ran_is_never_run_again_whatever_came_of_it(bwrap: Sandbox) -> None:
    shaky = Shaky(bwrap)
    failing = Job(environment=PYTHON, script="exit 3", files={}, limits=JOB.limits)
    bounded = ThrottledSandbox(shaky, 2)
    assert bounded.run(failing).exit_code == 3
    assert shaky.calls == 1
    assert bounded.slowed == ""


class Measured(Shaky):
    """A real sandbox on a machine that is as busy as the test says, call by call: (cores that are idle, CPU time)."""

    def __init__(self, inner: Sandbox, *seen: tuple[float, float]) -> None:
        super().__init__(inner)
        self._seen = seen

    def run(self, job: Job) -> Execution:
        idle, used = self._seen[self.calls]
        return replace(super().run(job), idle_cores=idle, cpu_seconds=used)


IDLE, OWN, STARVED = (2.0, 0.0), (0.0, 1000.0), (0.0, 0.01)


@pytest.mark.parametrize(
    ("seen", "runs", "may_be_load"),
    [
        pytest.param([IDLE, IDLE], 1, False, id="a core was idle: it hangs"),
        pytest.param([OWN, IDLE], 1, False, id="it had a core: it takes too long"),
        pytest.param([STARVED, IDLE], 2, False, id="busy, then it hangs by itself"),
        pytest.param([STARVED, STARVED], 2, True, id="busy both times"),
    ],
)
def test_a_job_that_ran_out_of_time_on_a_busy_machine_is_run_once_more(
    bwrap: Sandbox, seen: list[tuple[float, float]], runs: int, may_be_load: bool
) -> None:
    slow = Job(environment=PYTHON, script="sleep 60", files={}, limits=Limits(seconds=0.2, memory_mb=512))
    measured = Measured(bwrap, *seen)
    execution = ThrottledSandbox(measured, 2).run(slow)
    assert execution.timed_out
    assert (measured.calls, host.may_be_load(slow.limits, execution)) == (runs, may_be_load)


def test_a_machine_that_stays_busy_does_not_cost_every_job_a_second_run(bwrap: Sandbox) -> None:
    slow = Job(environment=PYTHON, script="sleep 60", files={}, limits=Limits(seconds=0.1, memory_mb=512))
    measured = Measured(bwrap, *[STARVED] * 8)
    bounded = ThrottledSandbox(measured, 2)
    for _ in range(5):
        assert bounded.run(slow).timed_out
    assert measured.calls == 3 * 2 + 2


def test_the_second_run_is_alone(bwrap: Sandbox) -> None:
    """The others are done when it begins, and those that come later wait for its end."""
    under_way, most, lock = set[str](), dict[str, int](), threading.Lock()

    class Watched(Shaky):
        def run(self, job: Job) -> Execution:
            with lock:
                again = job.script in most
                under_way.add(job.script)
                most[job.script] = len(under_way)
            done = super().run(job)
            with lock:
                most[job.script] = max(most[job.script], len(under_way)) if again else most[job.script]
                under_way.discard(job.script)
            starved = job.script == "sleep 60" and not again
            return replace(done, idle_cores=0.0 if starved else 2.0, cpu_seconds=0.0)

    slow = Job(environment=PYTHON, script="sleep 60", files={}, limits=Limits(seconds=0.5, memory_mb=512))
    others = [replace(JOB, script=f"echo {number}") for number in range(12)]
    bounded = ThrottledSandbox(Watched(bwrap), 4)
    with ThreadPoolExecutor(13) as pool:
        done = list(pool.map(bounded.run, [slow, *others]))
    assert done[0].timed_out and all(execution.exit_code == 0 for execution in done[1:])
    assert most["sleep 60"] == 1


def test_a_kind_of_job_that_never_runs_does_not_slow_the_others(bwrap: Sandbox) -> None:
    class Half(Shaky):
        def run(self, job: Job) -> Execution:
            if job.script != "broken":
                return super().run(job)
            before = bounded._ran
            while bounded._ran == before:
                time.sleep(0.001)
            raise SandboxError("Its image cannot be started.")

    bounded = ThrottledSandbox(Half(bwrap), 2, pause=0.0)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            broken = pool.submit(bounded.run, replace(JOB, script="broken"))
            while not broken.done():
                assert bounded.run(JOB).exit_code == 0
            assert isinstance(broken.exception(), SandboxError)
    assert bounded.slowed == ""


def test_what_another_machine_uses_is_recorded_beside_ours_and_said() -> None:
    said = list[str]()
    driver = UsedEnvironments(say=said.append)
    driver.note(PYTHON, "3.11")
    for _ in range(2):
        driver.note(PYTHON, "3.12")
    assert driver.record() == {"python": {"digest": "3.11", "versions": [], "also": ["3.12"]}}
    assert said == ["note: python is not the same on all machines: 3.11, and 3.12"]


def test_a_missing_environment_is_no_struggle(bwrap: Sandbox) -> None:
    shaky = Shaky(bwrap, 1, kind=EnvironmentMissing)
    bounded = ThrottledSandbox(shaky, 2)
    with pytest.raises(EnvironmentMissing):
        bounded.run(JOB)
    assert (shaky.calls, bounded.slowed) == (1, "")


def test_a_job_that_waits_for_its_turn_is_not_begun_after_a_stop(bwrap: Sandbox, tmp_path: Path) -> None:
    begun, may_end, stop = threading.Event(), threading.Event(), Stop()

    class Holding(Shaky):
        def run(self, job: Job) -> Execution:
            begun.set()
            may_end.wait(SECONDS)
            return super().run(job)

    sandbox = Holding(bwrap)
    bounded = ThrottledSandbox(sandbox, 1, stop=stop)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(bounded.run, JOB)
        assert begun.wait(SECONDS)
        second = pool.submit(bounded.run, JOB)
        stop.request("enough")
        assert isinstance(second.exception(SECONDS), Stopped)
        may_end.set()
        assert first.result(SECONDS).stdout.strip() == "done"
    assert sandbox.calls == 1


@pytest.mark.parametrize(
    ("cores", "memory_mb", "jobs"), [(8, 64_000, 8), (8, 4_096, 4), (2, 1_000_000, 2), (64, 100, 1), (1, 900, 1)]
)
def test_sandboxes_at_once_come_from_cores_and_memory(cores: int, memory_mb: float, jobs: int) -> None:
    assert sandboxes_at_once(0, HostCapacity(cores=cores, memory_mb=memory_mb)) == jobs
    assert sandboxes_at_once(7, HostCapacity(cores=cores, memory_mb=memory_mb)) == 7


def test_tasks_in_flight_are_more_than_questions_at_once() -> None:
    assert calls_at_once(0) >= 16
    assert tasks_in_flight(50, 2) == 50 + 4 * 2
    # One task after the other is what is asked for then.
    assert tasks_in_flight(1, 2) == 1


@pytest.mark.parametrize(
    ("names", "stat"),
    [
        (("memory.max", "memory.current"), "anon 1\ninactive_file 1048576\n"),
        (("memory.limit_in_bytes", "memory.usage_in_bytes"), "inactive_file 0\ntotal_inactive_file 1048576\n"),
    ],
    ids=["v2", "v1"],
)
def test_a_limit_of_our_own_cgroup_counts(
    names: tuple[str, str], stat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_version = names[0] == "memory.limit_in_bytes"
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    own = root / "memory" / "pod" / "one" if first_version else root / "pod" / "one"
    (proc / "self").mkdir(parents=True)
    own.mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8192000 kB\n")
    (proc / "self" / "cgroup").write_text("5:cpu,memory:/pod/one\n" if first_version else "0::/pod/one\n")
    monkeypatch.setattr(host, "_PROC", proc)
    monkeypatch.setattr(host, "_CGROUPS", root)
    assert host.free_mb() == 8000
    # The limit is that of the pod around it.
    for name, content in zip((*names, "memory.stat"), (str(600 << 20), str(500 << 20), stat), strict=True):
        (own.parent / name).write_text(content)
    assert host.free_mb() == 101
    assert not host.has_room()


def test_every_sandbox_says_what_it_has(sandbox: Sandbox) -> None:
    found = sandbox.machine()
    assert found.cores >= 1
    assert found.memory_mb > 100


class Killing(Shaky):
    """A real sandbox in which the first jobs are killed, as by somebody outside."""

    def __init__(self, inner: Sandbox, times: int) -> None:
        super().__init__(inner)
        self._left = times

    def run(self, job: Job) -> Execution:
        killed = self.calls < self._left
        return super().run(replace(job, script="kill -9 $$") if killed else job)


def test_a_job_that_was_killed_is_run_once_more_for_that_need_not_be_its_own_doing(bwrap: Sandbox) -> None:
    once = ThrottledSandbox(Killing(bwrap, 1), 2)
    assert once.run(JOB).stdout.strip() == "done"
    always = Killing(bwrap, 9)
    assert ThrottledSandbox(always, 2).run(JOB).exit_code == 128 + 9
    assert always.calls == 2


def test_a_job_that_was_killed_while_we_are_to_stop_says_nothing(bwrap: Sandbox) -> None:
    stop = Stop()
    killing = Killing(bwrap, 1)
    bounded = ThrottledSandbox(killing, 2, stop=stop)
    killing.run = lambda job: (stop.request("interrupted"), Killing.run(killing, job))[1]  # type: ignore[method-assign]
    with pytest.raises(Stopped):
        bounded.run(JOB)
    assert killing.calls == 1
