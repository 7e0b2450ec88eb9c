"""Reference runs: which canaries are proved where some, or all, of them disturb the real tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import Exercism
from retrial.grading.reference_runs import Reference, reference
from retrial.grading.verdict_cache import Verdicts
from retrial.protocols import Sandbox
from retrial.types import Execution, Job
from tests.support.exercises import write_exercise

pytestmark = pytest.mark.real

COUNTING = """\
from {module} import add


def test_one():
    assert add(1, 2) == 3


def test_no_other_tests_are_here():
    assert [name for name in globals() if name.startswith("test_")] == ["test_one", "test_no_other_tests_are_here"]
"""

ONCE = """\
from {module} import add

seen = []


def test_leaves_a_trace():
    seen.append(1)
    assert add(1, 2) == 3


def test_two():
    assert add(2, 2) == 4


def test_three():
    assert add(3, 2) == 5


def test_four():
    assert add(4, 2) == 6


def test_there_is_but_one_trace():
    assert len(seen) == add(1, 0)
"""


def proved(root: Path, tests: str, sandbox: Sandbox) -> Reference:
    benchmark = Exercism(write_exercise(root / "set", tests=tests), "set")
    (task,) = benchmark.tasks()
    answer = benchmark.answer(task.instance_id)
    found = reference(task, answer, sandbox, Verdicts(root))
    again = reference(task, answer, sandbox, Verdicts(root))
    assert (again.cached, again.canaries, again.expected) == (True, found.canaries, found.expected)
    return found


def test_where_every_canary_disturbs_the_tests_there_is_none_and_the_task_is_not_void(
    tmp_path: Path, bwrap: Sandbox
) -> None:
    found = proved(tmp_path, COUNTING, bwrap)
    assert (found.void, found.canaries) == ("", ())
    assert len(found.expected or ()) == 2


def test_one_that_disturbs_the_tests_does_not_cost_the_others(tmp_path: Path, bwrap: Sandbox) -> None:
    found = proved(tmp_path, ONCE, bwrap)
    assert "test_leaves_a_trace" not in {canary.test for canary in found.canaries}
    assert len(found.canaries) >= 2 and all(canary.strong for canary in found.canaries)


BAD_MOMENT = "bad-moment"
MOODY = f"""\
from pathlib import Path

from {{module}} import add


def test_one():
    assert add(1, 2) == 3


def test_two():
    assert add(2, 2) == 4
    assert not Path("{BAD_MOMENT}").exists()
"""


class Moody:
    """A real sandbox in which the first jobs meet a bad moment: a file that makes a test fail."""

    def __init__(self, inner: Sandbox, bad: int) -> None:
        self.name = inner.name
        self.unavailable, self.missing, self.state = inner.unavailable, inner.missing, inner.state
        self.prepare, self.machine = inner.prepare, inner.machine
        self.digest, self.describe = inner.digest, inner.describe
        self._inner, self._bad = inner, bad

    def run(self, job: Job) -> Execution:
        self._bad -= 1
        return self._inner.run(replace(job, files={**job.files, BAD_MOMENT: b""}) if self._bad >= 0 else job)


@pytest.mark.parametrize("bad", [1, 4, 5])
def test_a_reference_that_was_proved_at_a_bad_moment_keeps_no_weak_canaries(
    tmp_path: Path, bwrap: Sandbox, bad: int
) -> None:
    benchmark = Exercism(write_exercise(tmp_path / "set", tests=MOODY), "set")
    (task,) = benchmark.tasks()
    answer = benchmark.answer(task.instance_id)
    reference(task, answer, Moody(bwrap, bad), Verdicts(tmp_path))
    later = reference(task, answer, bwrap, Verdicts(tmp_path))
    assert later.void == "" and len(later.canaries) >= 2
    assert all(canary.strong for canary in later.canaries)
