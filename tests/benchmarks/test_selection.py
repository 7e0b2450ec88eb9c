"""Which tasks are done."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from retrial.benchmarks import select_tasks
from retrial.benchmarks.exercism import Exercism
from retrial.errors import UsageError
from retrial.types import Task
from tests.support.exercises import write_exercise


@pytest.fixture
def tasks(tmp_path: Path) -> tuple[Task, ...]:
    for number in range(12):
        write_exercise(tmp_path, f"sum-{number}")
    return Exercism(tmp_path, "here", 1).tasks()


def ids(tasks: tuple[Task, ...]) -> set[str]:
    return {task.instance_id for task in tasks}


def test_a_larger_sample_contains_a_smaller_one(tasks: tuple[Task, ...]) -> None:
    samples = [ids(select_tasks(tasks, sample_size=size, seed=3)) for size in range(1, 13)]
    assert all(small < large for small, large in pairwise(samples))


def test_the_sample_depends_on_the_seed_alone(tasks: tuple[Task, ...]) -> None:
    first = select_tasks(tasks, sample_size=4, seed=1)
    assert first == select_tasks(tuple(reversed(tasks)), sample_size=4, seed=1)
    assert first != select_tasks(tasks, sample_size=4, seed=2)


@pytest.mark.parametrize("name", ["aider_python_sum_3", "python/sum-3", "sum-3"])
def test_a_task_goes_by_three_names(tasks: tuple[Task, ...], name: str) -> None:
    assert ids(select_tasks(tasks, names=[name])) == {"aider_python_sum_3"}


def test_an_unknown_task_names_the_nearest(tasks: tuple[Task, ...]) -> None:
    with pytest.raises(UsageError, match="did you mean"):
        select_tasks(tasks, names=["sum3"])


def test_an_unknown_language_names_the_known_ones(tasks: tuple[Task, ...]) -> None:
    with pytest.raises(UsageError, match="languages: python"):
        select_tasks(tasks, languages=["cobol"])
