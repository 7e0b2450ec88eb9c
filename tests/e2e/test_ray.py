"""Both phases on a real Ray cluster of two nodes: what comes of them is what `local` gives, whoever is lost on the way.

RETRIAL_RAY_TASKS=200 takes more tasks.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from retrial.store.runs import Run
from tests.conftest import Run as Program
from tests.conftest import own_cache
from tests.e2e.test_kills import (
    JOBS,
    Counting,
    Place,
    answered,
    asked_so_far,
    counting,
    judged_so_far,
    predictions,
    tree,
    unmeasured,
    verdicts,
)
from tests.parts import ready
from tests.support.clusters import TwoNodes
from tests.support.counting_model import Question
from tests.support.exercises import RIGHT, reply, write_exercise
from tests.support.servers import Answer, Asked, ChatServer
from tests.support.servers import reply as says
from tests.tiers import TIER

pytestmark = [pytest.mark.real, pytest.mark.scaled]

TASKS = int(os.environ.get("RETRIAL_RAY_TASKS") or (40 if TIER == "all" else 10))
LIGHT_TESTS = """\
import os
from {module} import add

right = add(1, 2) == 3 and add(0, 0) == 0
case = "<testcase classname='t' name='adds'>%s</testcase>" % ("" if right else "<failure message='wrong'/>")
with open(os.environ["RETRIAL_REPORTS"] + "/junit.xml", "w") as report:
    report.write("<testsuite>" + case + "</testsuite>")
raise SystemExit(not right)
"""
"""Many tasks are to be done here, and no test runner is what is tested."""
DIFFERING = ("run", "command", "started", "dirname", "seconds_per_case", "stdout", "stderr", "unsettled")
"""What a run is called, what a clock said, what tests printed (each has canaries of its own), and what replies that
died on their way may have cost."""
KEY = "sk-e3b0c44298fc1c149afbf4c8996fb924"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    ready("bwrap")
    folder = tmp_path_factory.mktemp("ray")
    for number in range(TASKS):
        command = f"python3 sum_{number}_test.py"
        write_exercise(folder / "bench", f"sum-{number}", tests=LIGHT_TESTS, test_command=command)
    return Place(folder, own_cache(folder / "cache"))


@pytest.fixture(scope="module")
def questions(place: Place) -> int:
    """How many a run `local` asks; it is scored too."""
    with counting(place.folder / "local.log") as server:
        place.run(place.harness("local", server))
        place.run(place.report("local"))
        return len(server.requests())


def elsewhere(place: Place, name: str) -> Place:
    """With a cache of its own: nothing is known there."""
    return Place(place.folder, own_cache(place.folder / f"cache-{name}"))


def on(cluster: TwoNodes) -> Sequence[str]:
    return ("--executor", "ray", "--ray-address", cluster.address)


def results(place: Place, run: str) -> dict[str, Any]:
    found: dict[str, Any] = plain(json.loads((place.folder / "predictions" / run / "results.json").read_text()))
    return found


def plain(value: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in unmeasured(value).items() if name not in DIFFERING}
    return [plain(each) for each in value] if isinstance(value, list) else value


def assert_equal(place: Place, run: str) -> None:
    assert len(predictions(place, "local")) == TASKS
    assert predictions(place, run) == predictions(place, "local")
    assert results(place, run) == results(place, "local")


@pytest.mark.smoke
def test_two_nodes_give_what_local_gives(place: Place, questions: int, cluster: TwoNodes) -> None:
    there = elsewhere(place, "ray")
    with counting(place.folder / "ray.log") as server:
        there.run([*there.harness("ray", server), *on(cluster)])
        assert len(server.requests()) == questions
    there.run([*there.report("ray"), *on(cluster)])
    assert_equal(place, "ray")


def while_it_runs(place: Place, command: Sequence[str], reached: Callable[[], bool], do: Callable[[], None]) -> None:
    """Do it when the command has come so far; then that is to come to its end as if nothing had been."""
    log = place.folder / "disturbed.log"
    with log.open("w") as file, subprocess.Popen(command, env=place.environment, stdout=file, stderr=file) as process:
        while not reached():
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.01)
                break
        assert process.poll() is None, log.read_text()
        do()
        process.wait(600)
    assert process.returncode == 0, log.read_text()
    assert "is lost; what it worked at is done elsewhere" in log.read_text()
    assert "Traceback" not in log.read_text()


def test_a_node_that_is_lost_in_the_middle_changes_nothing(place: Place, questions: int, cluster: TwoNodes) -> None:
    there, run = elsewhere(place, "lost"), Run(place.folder, "lost")
    known, asked = set[Question](), list[Question]()

    def lose(server: Counting) -> None:
        known.update(answered(run))
        asked.extend(server.requests())
        cluster.kill_second()

    with counting(place.folder / "lost.log") as server:
        command = [*there.harness("lost", server), *on(cluster)]
        while_it_runs(there, command, partial(asked_so_far, server, questions // 2), partial(lose, server))
        cluster.bring_back_second()
        assert known
        assert not known & set(server.requests()[len(asked) :]), "what was answered is not asked again"
    half = len(verdicts(place)) // 2
    while_it_runs(
        there, [*there.report("lost"), *on(cluster)], partial(judged_so_far, there, half), cluster.kill_second
    )
    cluster.bring_back_second()
    assert_equal(place, "lost")


def test_after_the_driver_is_killed_nobody_asks_and_local_goes_on(
    place: Place, questions: int, cluster: TwoNodes
) -> None:
    there, run = elsewhere(place, "killed"), Run(place.folder, "killed")
    with counting(place.folder / "driver.log") as server:
        workers = list[int]()

        def reached() -> bool:
            workers[:] = workers or actors(cluster)
            return asked_so_far(server, questions // 2)

        there.kill([*there.harness("killed", server), *on(cluster)], reached, 0.0)
        known, asked = answered(run), len(server.requests())
        assert workers
        assert all(map(ends, workers))
        assert len(server.requests()) <= asked + JOBS, "only those that had leave to ask"
        there.run(there.harness("killed", server))
        assert known
        assert not known & set(server.requests()[asked:])
    assert predictions(place, "killed") == predictions(place, "local")


def actors(cluster: TwoNodes) -> list[int]:
    """Processes of the cluster that work for us."""
    found = []
    for pid in {child for raylet in cluster.raylets for child in tree(raylet)}:
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::Node"):
                found.append(pid)
    return found


def ends(pid: int) -> bool:
    """Whether it does, within a minute."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], 60)[0])
    finally:
        os.close(process)


def test_keys_reach_the_nodes_and_nothing_that_ray_writes(
    run: Program, home: Path, tmp_path: Path, cluster: TwoNodes
) -> None:
    ready("bwrap")
    for number in range(4):
        write_exercise(tmp_path / "bench", f"sum-{number}")

    def answer(asked: Asked) -> Answer:
        text = json.dumps(asked.body["messages"])
        return says(reply(RIGHT, next(f"sum_{number}.py" for number in range(4) if f"sum_{number}.py" in text)))

    with ChatServer([answer]) as server:
        flags = (
            "-b",
            tmp_path / "bench",
            "-m",
            "openai/m",
            "--api-base",
            server.url,
            "--run",
            "r",
            "--sandbox",
            "bwrap",
        )
        done = run("harness.py", *flags, *on(cluster), OPENAI_API_KEY=KEY, RETRIAL_LOG="debug")
        assert done.returncode == 0, done.stderr
        assert {asked.headers["authorization"] for asked in server.requests} == {f"Bearer {KEY}"}
        assert len(server.requests) == 4
    written = [path for path in cluster.session.rglob("*") if path.is_file()]
    assert any(b"ray::Node" in path.read_bytes() or "worker" in path.name for path in written)
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []
    log = (home / "logs" / "r" / "run.log").read_text()
    assert '"host"' in log, "what nodes log is in the run's own"
