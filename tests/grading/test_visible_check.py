"""The visible check of a repository: what was green before decides, and what cannot be run says nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.benchmarks.swebench import SweBench, container_script
from retrial.benchmarks.swebench import make as make_benchmark
from retrial.checks import Check
from retrial.errors import Overloaded
from retrial.grading import verdict_cache
from retrial.grading.visible_check import VisibleCheck, baseline
from retrial.options import HarnessOptions
from retrial.protocols import Context, Sandbox
from retrial.types import Outcome
from tests.parts import ready_with_repository
from tests.support import image_task
from tests.support.image_task import CORE, GOLD, INSTANCE, changed

pytestmark = pytest.mark.real

SHORT = 1.5
"""Seconds of CPU time, of which the tests of the task take a quarter."""
BREAKS = changed("calc/core.py", CORE, CORE.replace("a + b", "a - b"))


@pytest.fixture
def engine() -> Sandbox:
    return ready_with_repository()


@pytest.fixture
def benchmark(tmp_path: Path) -> SweBench:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(image_task.row()) + "\n")
    found = make_benchmark(Context(options=HarnessOptions(visible_tests="all"), name=str(path)))
    assert found is not None
    return found


class Asked:
    """Gives tests of which only the fewest can be run, and remembers how many it was asked for."""

    def __init__(self, benchmark: SweBench, usable: int | None) -> None:
        check = benchmark.visible(INSTANCE, ("calc/core.py",))
        assert isinstance(check, Check)
        # Lint reads the repository, which is another test's affair.
        self._good = replace(check, lint=False)
        self._bad = replace(self._good, files=dict.fromkeys(check.files, b"#!/bin/bash\nexit 7\n"))
        self._usable = usable
        self.most: list[int | None] = []

    def visible(self, instance_id: str, edited: Iterable[str], most: int | None) -> Check | str:
        assert tuple(edited) == ("calc/core.py",)
        self.most.append(most)
        return self._good if most == self._usable else self._bad


def a_check(benchmark: SweBench, engine: Sandbox, folder: Path, *, cpus: float = 2.0, **changes: float) -> VisibleCheck:
    """All tests of the task, with other limits."""

    class Limited:
        def visible(self, instance_id: str, edited: Iterable[str], most: int | None) -> Check | str:
            check = benchmark.visible(instance_id, edited, most)
            assert isinstance(check, Check)
            return replace(check, lint=False, limits=replace(check.limits, cpus=cpus), **changes)  # type: ignore[arg-type]

    return visible_check(Limited(), benchmark, engine, folder)


def visible_check(tests: object, benchmark: SweBench, engine: Sandbox, folder: Path) -> VisibleCheck:
    """Of the benchmark's task, with the tests that `tests` chooses."""
    return VisibleCheck(tests, benchmark.tasks()[0], engine, verdict_cache.Verdicts(folder))  # type: ignore[arg-type]


@pytest.mark.parametrize(("usable", "asked"), [(None, [None]), (2, [None, 2]), (1, [None, 2, 1])])
def test_fewer_files_are_tried_until_some_can_be_run(
    usable: int | None, asked: list[int | None], benchmark: SweBench, engine: Sandbox, tmp_path: Path
) -> None:
    tests = Asked(benchmark, usable)
    check = visible_check(tests, benchmark, engine, tmp_path)
    assert check(GOLD).verdict.outcome is Outcome.RESOLVED
    assert tests.most == asked
    why = (
        "the visible tests say nothing on the untouched tree: no test results can be read from the log (exit status 7)"
    )
    assert check(GOLD).verdict.fallbacks == (() if usable is None else (f"all tests: {why}",))
    verdict = check(BREAKS).verdict
    assert verdict.outcome is Outcome.TESTS_FAILED
    assert verdict.telling.startswith("1 of 2 required tests did not pass: tests/test_calc.py::test_add\n")


def test_an_endless_loop_runs_out_of_cpu_time(benchmark: SweBench, engine: Sandbox, tmp_path: Path) -> None:
    endless = changed("calc/core.py", CORE, CORE.replace("    return a + b", "    while True:\n        pass"))
    verdict = a_check(benchmark, engine, tmp_path, timeout=SHORT)(endless).verdict
    assert (verdict.outcome, verdict.reason) == (
        Outcome.TIMED_OUT, f"the tests did not end within {SHORT:g} s of CPU time"
    )  # fmt: skip


@pytest.mark.parametrize("cpus", [2.0, 0.1])
def test_a_busy_machine_does_not_change_what_the_tests_say(
    cpus: float, benchmark: SweBench, engine: Sandbox, tmp_path: Path
) -> None:
    """With a tenth of a core the same tests take more wall time than their limit is."""
    check = a_check(benchmark, engine, tmp_path, timeout=SHORT, cpus=cpus)
    good, bad = check(GOLD).verdict, check(BREAKS).verdict
    assert (good.outcome, good.reason, good.fallbacks) == (Outcome.RESOLVED, "", ())
    assert (bad.outcome, bad.fallbacks) == (Outcome.TESTS_FAILED, ())
    assert good.tests.keys() == bad.tests.keys()


def test_tests_that_got_too_little_cpu_time_are_not_measured(
    benchmark: SweBench, engine: Sandbox, tmp_path: Path
) -> None:
    check = a_check(benchmark, engine, tmp_path, timeout=SHORT, patience=1.2, cpus=0.05)
    with pytest.raises(Overloaded, match=r"the machine is overloaded: in 1\.8 s the tests got 0\.\d s of their"):
        check(GOLD)


def test_tests_that_only_waited_are_asked_again_the_next_time(
    benchmark: SweBench, engine: Sandbox, tmp_path: Path
) -> None:
    visible = benchmark.visible(INSTANCE, ["calc/core.py"], None)
    assert isinstance(visible, Check)
    verdicts, task = verdict_cache.Verdicts(tmp_path), benchmark.tasks()[0]
    for wait, kept in (("sleep 60", False), ("while :; do :; done", True)):
        files = {
            **visible.files,
            container_script.SCRIPT: wait.encode(),
            container_script.SCRIPT_WITHOUT_INSTALL: wait.encode(),
        }
        check = replace(visible, files=files, timeout=SHORT)
        assert baseline(task, check, engine, verdicts).outcome is Outcome.TIMED_OUT
        known = verdicts.get(verdict_cache.key(task, "", replace(check, lint=False), engine))
        assert (known is not None) is kept, wait


def test_the_untouched_tree_is_asked_once(benchmark: SweBench, engine: Sandbox, tmp_path: Path) -> None:
    jobs: list[str] = []

    class Counted:
        def run(self, job: object) -> object:
            jobs.append("run")
            return engine.run(job)  # type: ignore[arg-type]

        def __getattr__(self, name: str) -> object:
            return getattr(engine, name)

    for patch, runs in ((GOLD, 2), (BREAKS, 1)):
        jobs.clear()
        tests = Asked(benchmark, None)
        visible_check(tests, benchmark, Counted(), tmp_path)(patch)  # type: ignore[arg-type]
        assert len(jobs) == runs
