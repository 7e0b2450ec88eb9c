"""The visible check of a repository: what was green before decides, and what cannot be run says nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from retrial import cache
from retrial.benchmarks.swebench import SweBench
from retrial.benchmarks.swebench import make as make_benchmark
from retrial.config import HarnessOptions
from retrial.protocols import Context, Sandbox
from retrial.types import Check, Outcome
from retrial.visible import VisibleCheck
from tests import image_task
from tests.image_task import CORE, GOLD, INSTANCE, changed
from tests.parts import ready_with_repository

pytestmark = pytest.mark.real

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

    def __call__(self, edited: Iterable[str], most: int | None) -> Check | str:
        assert tuple(edited) == ("calc/core.py",)
        self.most.append(most)
        return self._good if most == self._usable else self._bad


@pytest.mark.parametrize(("usable", "asked"), [(None, [None]), (2, [None, 2]), (1, [None, 2, 1])])
def test_fewer_files_are_tried_until_some_can_be_run(
    usable: int | None, asked: list[int | None], benchmark: SweBench, engine: Sandbox, tmp_path: Path
) -> None:
    tests = Asked(benchmark, usable)
    check = VisibleCheck(benchmark.tasks()[0], tests, engine, cache.Verdicts(tmp_path))
    assert check(GOLD)[1].outcome is Outcome.RESOLVED
    assert tests.most == asked
    verdict = check(BREAKS)[1]
    assert verdict.outcome is Outcome.TESTS_FAILED
    assert verdict.telling.startswith("1 of 2 required tests did not pass: tests/test_calc.py::test_add\n")


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
        VisibleCheck(benchmark.tasks()[0], tests, Counted(), cache.Verdicts(tmp_path))(patch)  # type: ignore[arg-type]
        assert len(jobs) == runs
