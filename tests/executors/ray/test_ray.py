"""The executor `ray`: whom of a cluster it takes, and what it does without them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from retrial import registry
from retrial.benchmarks import open_benchmark
from retrial.benchmarks.remote import RemoteBenchmark
from retrial.errors import EnvironmentMissing, NotMeasured, UsageError
from retrial.executors.ray.fleet import declare, machines
from retrial.options import ReportOptions
from retrial.protocols import Context, Executor, Sandbox, WorkerNode
from retrial.sandboxes.prepare import RemoteSandbox
from retrial.sandboxes.throttled import ThrottledSandbox, UsedEnvironments
from retrial.system.shutdown import Stop
from retrial.types import Environment
from tests.conftest import Run
from tests.parts import PYTHON
from tests.support.clusters import CPUS, TwoNodes
from tests.support.exercises import write_exercise


def node(name: str, *, alive: bool = True, **resources: float) -> dict[str, object]:
    """As Ray says it."""
    return {"NodeID": name * 8, "Alive": alive, "NodeManagerHostname": name, "Resources": resources}


def test_without_declared_slots_every_living_node_gives_its_cpus() -> None:
    found = machines(
        [node("a", CPU=8.0), node("b", CPU=2.0), node("head", GPU=1.0), node("c", alive=False, CPU=4.0)],
        0,
        declared=False,
    )
    assert [(machine.name, machine.resource, machine.slots) for machine in found] == [
        ("a/aaaaaa", "CPU", 8),
        ("b/bbbbbb", "CPU", 2),
    ]


def test_where_slots_are_declared_only_those_count() -> None:
    nodes = [node("a", CPU=8.0), node("b", CPU=2.0, retrial_sandbox=6.0)]
    assert declare(nodes)
    found = machines(nodes, 0, declared=True)
    assert [(machine.id, machine.resource, machine.slots) for machine in found] == [("b" * 8, "retrial_sandbox", 6)]


def test_when_all_who_declared_slots_are_lost_nobody_else_is_asked() -> None:
    nodes = [node("a", CPU=8.0), node("b", alive=False)]
    assert not declare(nodes)
    assert machines(nodes, 0, declared=True) == []


def test_test_jobs_is_the_most_that_a_node_is_asked_for() -> None:
    assert [machine.slots for machine in machines([node("a", CPU=8.0), node("b", CPU=2.0)], 4, declared=False)] == [
        4,
        2,
    ]


def test_a_missing_package_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install -r requirements-ray\.txt"):
        registry.module("executors", "ray").make(Context(options=ReportOptions()))


class Elsewhere:
    """Work that gets ready on each machine as it is told."""

    def __init__(self, prepare: Callable[[WorkerNode], Callable[[int], object]]) -> None:
        self._prepare = prepare

    def __call__(self, job: int) -> object:
        raise AssertionError("this is not the machine to do it on")

    def elsewhere(self) -> Callable[[WorkerNode], Callable[[int], object]]:
        return self._prepare


@pytest.fixture
def executor(cluster: TwoNodes) -> Executor:
    options = ReportOptions(ray_address=cluster.address)
    part: Executor = registry.module("executors", "ray").make(Context(options=options, workers=4))
    return part


@pytest.mark.real
def test_work_is_made_anew_on_every_node_with_its_slots(executor: Executor) -> None:
    def prepare(site: WorkerNode) -> Callable[[int], tuple[int, int, int]]:
        return lambda job: (job, site.slots, os.getpid())

    results = [result for _, result in executor.run(Elsewhere(prepare), range(40)) if isinstance(result, tuple)]
    assert sorted(job for job, _, _ in results) == list(range(40))
    assert {slots for _, slots, _ in results} == {CPUS}
    assert os.getpid() not in {pid for _, _, pid in results}


@pytest.mark.real
def test_a_node_that_cannot_do_it_is_left_out_and_the_other_does_all(
    executor: Executor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = str(tmp_path / "first")

    def prepare(site: WorkerNode) -> Callable[[int], int]:
        try:
            os.close(os.open(first, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return lambda job: job
        raise EnvironmentMissing("the toolchain go is missing")

    assert sorted(executor.run(Elsewhere(prepare), range(5))) == [(job, job) for job in range(5)]
    assert "is left out: the toolchain go is missing" in capsys.readouterr().err


@pytest.mark.real
def test_where_no_node_can_do_it_nothing_is_measured(executor: Executor) -> None:
    def prepare(site: WorkerNode) -> Callable[[int], int]:
        raise EnvironmentMissing("the toolchain go is missing")

    results = dict(executor.run(Elsewhere(prepare), range(5)))
    assert len(results) == 5
    for result in results.values():
        assert isinstance(result, NotMeasured)
        assert "the toolchain go is missing" in str(result)


@pytest.mark.real
def test_a_job_that_takes_its_worker_with_it_is_not_measured_and_the_others_are_done(executor: Executor) -> None:
    def work(job: int) -> int:
        if job == 3:
            os._exit(1)
        return job

    results = dict(executor.run(work, range(12)))
    assert isinstance(results.pop(3), NotMeasured)
    assert results == {job: job for job in range(12) if job != 3}


@pytest.mark.real
def test_what_cannot_travel_costs_its_own_job_alone(executor: Executor) -> None:
    def work(job: int) -> object:
        deep: list[object] = []
        for _ in range(100_000):
            deep = [deep]
        return (lambda: job) if job == 1 else deep if job == 2 else job

    results = dict(executor.run(work, range(4)))
    assert isinstance(results.pop(1), NotMeasured)
    assert isinstance(results.pop(2), NotMeasured)
    assert results == {0: 0, 3: 3}


@pytest.mark.real
@pytest.mark.usefixtures("bwrap", "cluster")
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nowhere"])
def test_without_a_cluster_there_is_a_sentence(run: Run, tmp_path: Path, address: str) -> None:
    bench = write_exercise(tmp_path / "bench")
    for script, *rest in (("harness.py", "-a", "null"), ("report.py", "--null")):
        done = run(script, *rest, "-b", bench, "--sandbox", "bwrap", "--executor", "ray", "--ray-address", address)
        assert done.returncode == 2, done.stderr
        assert address in done.stderr.strip().splitlines()[-1]
        assert "Traceback" not in done.stderr


@pytest.mark.real
def test_what_is_used_elsewhere_is_in_the_drivers_record(bwrap: Sandbox) -> None:
    driver = UsedEnvironments()
    there = ThrottledSandbox(bwrap, 1, UsedEnvironments(driver=driver))
    there.digest(PYTHON)
    assert driver.record() == there.environments.record() != {}


@pytest.mark.real
def test_a_machine_with_another_benchmark_or_less_of_a_sandbox_says_so(bwrap: Sandbox, home: Path) -> None:
    root = write_exercise(home.parent / "bench")
    options = ReportOptions(sandbox="bwrap")
    benchmark = open_benchmark(Context(options=options, name=str(root)))
    image = Environment(name="image", image="some/image:1", language="", tree="/testbed")
    with pytest.raises(UsageError, match="bwrap cannot be used"):
        RemoteSandbox.of(options, bwrap.name, {image}).open(WorkerNode(slots=1, stop=Stop()), UsedEnvironments())
    there = RemoteBenchmark.of(options, benchmark)
    write_exercise(root, "sum-up", stub="def add(a, b):\n    return 0\n")
    with pytest.raises(UsageError, match="is another one there"):
        there.open()
