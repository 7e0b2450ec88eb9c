"""What every benchmark keeps to, run over every part in `retrial/benchmarks/`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from retrial import registry
from retrial.benchmarks import open_benchmark
from retrial.checks import Check
from retrial.options import HarnessOptions
from retrial.patches import policy
from retrial.protocols import Benchmark, Context
from retrial.store.runs import SAFE
from tests.support import image_task
from tests.support.exercises import write_exercise


def write_rows(folder: Path) -> Path:
    folder.mkdir(parents=True)
    path = folder / "rows.jsonl"
    path.write_text(json.dumps(image_task.row(hints_text="SECRET-HINT")) + "\n")
    return path


SMALL: dict[str, Callable[[Path], Path]] = {"exercism": write_exercise, "swebench": write_rows}
"""For each part, what makes a small benchmark of its kind; `-b` gets the path."""


@pytest.fixture(params=registry.names("benchmarks"))
def benchmark(request: pytest.FixtureRequest, tmp_path: Path) -> Benchmark:
    path = SMALL[request.param](tmp_path / "small")
    # All tests: which of them are near an edit is known only where the repository can be read.
    wanted = "all" if request.param == "swebench" else "nearby"
    found: Benchmark = registry.module("benchmarks", request.param).make(
        Context(options=HarnessOptions(visible_tests=wanted), name=str(path))
    )
    return found


def test_tasks_are_sorted_and_can_be_files(benchmark: Benchmark) -> None:
    ids = [task.instance_id for task in benchmark.tasks()]
    assert ids and ids == sorted(set(ids)) and all(map(SAFE.fullmatch, ids))
    assert SAFE.fullmatch(benchmark.name) and benchmark.default_tries >= 1


def test_a_task_knows_nothing_of_its_answer(benchmark: Benchmark) -> None:
    for task in benchmark.tasks():
        answer = benchmark.answer(task.instance_id)
        added = [line[1:] for line in answer.patch.splitlines() if line.startswith("+") and len(line) > 8]
        known = repr(task)
        assert added and not any(line in known for line in added)
        assert "SECRET-HINT" not in known + repr(benchmark.visible(task.instance_id, ("a.py",)))


def test_the_reference_is_a_patch_whose_files_count(benchmark: Benchmark) -> None:
    for task in benchmark.tasks():
        touched = policy.changed_paths(benchmark.answer(task.instance_id).patch)
        assert touched and all(policy.writable(task, path, ()) for path in touched)


def test_both_checks_name_what_they_run(benchmark: Benchmark) -> None:
    for task in benchmark.tasks():
        visible, hidden = benchmark.visible(task.instance_id, ("a.py",)), benchmark.answer(task.instance_id).check
        assert isinstance(visible, Check)
        assert visible.lint and not hidden.lint
        assert visible.script and hidden.script and visible.digest != hidden.digest
        assert bool(hidden.result_parser) != bool(hidden.grader)


def test_it_can_be_opened_again_by_its_source(benchmark: Benchmark) -> None:
    again = open_benchmark(Context(options=HarnessOptions(), name=benchmark.provenance["source"]))
    assert again.name == benchmark.name
    assert [task.instance_id for task in again.tasks()] == [task.instance_id for task in benchmark.tasks()]
    assert len(benchmark.provenance["digest"]) == 16


@pytest.mark.parametrize("part", registry.names("benchmarks"))
def test_a_name_of_no_benchmark_is_left_to_the_others(part: str) -> None:
    module = registry.module("benchmarks", part)
    assert module.make(Context(options=HarnessOptions(), name="nobodys-benchmark")) is None
    assert module.known()
