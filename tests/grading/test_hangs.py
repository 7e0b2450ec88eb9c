"""Time limits with canaries: a hang ends within its own limit, and a slow solution does not pay for canaries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import Exercism
from retrial.checks import Check
from retrial.grading import canaries
from retrial.grading.reference_runs import reference
from retrial.grading.run_check import check_selection, select
from retrial.grading.verdict_cache import Verdicts
from retrial.patches.apply import diff
from retrial.patches.policy import Selection
from retrial.protocols import Sandbox
from retrial.types import Execution, Job, Outcome, Status, Task, Verdict
from tests.support.exercises import STUB, write_exercise

LIMIT = 3.0
"""What a hang takes."""
PLENTY = 60.0
"""More than a test takes, however busy the machine."""
HANG = "import time\n\n\ndef add(a, b):\n    time.sleep(1000)\n"
OTHER = "def add(a, b):\n    return b + a\n"


class Recording:
    """A real sandbox that notes the time limits of its jobs, and may change what it has seen."""

    def __init__(self, inner: Sandbox, seen: Callable[[Job, Execution], Execution] = lambda job, found: found) -> None:
        self.name = inner.name
        self.unavailable, self.missing, self.state = inner.unavailable, inner.missing, inner.state
        self.prepare, self.machine = inner.prepare, inner.machine
        self.digest, self.describe = inner.digest, inner.describe
        self._inner, self._seen = inner, seen
        self.limits: list[float] = []

    def run(self, job: Job) -> Execution:
        self.limits.append(job.limits.seconds)
        return self._seen(job, self._inner.run(job))


def proved(root: Path, sandbox: Sandbox, limit: float = LIMIT) -> tuple[Task, Check]:
    """A task, and its check as its reference has made it; with this limit from here on."""
    benchmark = Exercism(write_exercise(root / "bench"), "bench")
    (task,) = benchmark.tasks()
    answer = benchmark.answer(task.instance_id)
    check = reference(task, answer, sandbox, Verdicts(root)).strict(answer.check)
    assert len(check.canaries) >= 2
    return task, replace(check, timeout=limit)


def checked(task: Task, content: str, check: Check, sandbox: Sandbox) -> Verdict:
    patch = diff({"sum_up.py": STUB.encode()}, {"sum_up.py": content.encode()})
    selection = select(task, patch)
    assert isinstance(selection, Selection)
    return check_selection(task, selection, check, sandbox)


@pytest.mark.real
def test_a_hang_costs_its_limit_once(tmp_path: Path, home: Path, bwrap: Sandbox) -> None:
    task, check = proved(tmp_path, bwrap)
    recording = Recording(bwrap)
    verdict = checked(task, HANG, check, recording)
    assert verdict.outcome is Outcome.TIMED_OUT
    assert recording.limits == [LIMIT]
    assert f"did not end within {LIMIT:g} s" in verdict.reason and "canaries" not in verdict.reason


@pytest.mark.real
def test_a_hanging_reference_costs_its_limit_twice_at_the_most(tmp_path: Path, home: Path, bwrap: Sandbox) -> None:
    benchmark = Exercism(write_exercise(tmp_path / "bench", example=HANG), "bench")
    (task,) = benchmark.tasks()
    answer = benchmark.answer(task.instance_id)
    answer = replace(answer, check=replace(answer.check, timeout=1.0))
    recording = Recording(bwrap)
    assert reference(task, answer, recording, Verdicts(tmp_path)).void
    assert sum(recording.limits) <= 2.0


@pytest.mark.real
@pytest.mark.parametrize("at_end", [False, True], ids=["reports test by test", "reports at the end"])
def test_canaries_get_time_of_their_own_once_the_tasks_own_tests_have_ended(
    at_end: bool, tmp_path: Path, home: Path, bwrap: Sandbox
) -> None:
    task, check = proved(tmp_path, bwrap, PLENTY)
    own = check.files["sum_up_test.py"]

    def slowly(job: Job, found: Execution) -> Execution:
        """As if tests and canaries together took longer than the limit, each alone did not."""
        if job.files["sum_up_test.py"] == own or job.limits.seconds > PLENTY:
            return found
        late = replace(found, timed_out=True, exit_code=None, reports={}, seconds=PLENTY, heard=PLENTY)
        return replace(late, stdout="", heard=0.0, cpu_seconds=PLENTY) if at_end else late

    recording = Recording(bwrap, slowly)
    verdict = checked(task, OTHER, replace(check, reports_at_end=at_end), recording)
    assert (verdict.outcome, verdict.proof) == (Outcome.RESOLVED, "canary")
    assert recording.limits == [PLENTY, PLENTY, 2 * PLENTY]


@pytest.mark.parametrize(("cpu_seconds", "disturbed"), [(59.0, True), (None, True), (2.0, False)])
def test_where_results_come_at_the_end_only_a_job_that_computed_may_have_been_slowed(
    cpu_seconds: float | None, disturbed: bool
) -> None:
    check = Check(script="", files={}, result_parser="languages.cpp.results", reports_at_end=True, planted=("canary",))
    execution = Execution(exit_code=None, stdout="", stderr="", seconds=60, timed_out=True, cpu_seconds=cpu_seconds)
    assert canaries.disturbed(check, execution) is disturbed
    assert not canaries.disturbed(replace(check, planted=()), execution)


@pytest.mark.parametrize(
    ("stdout", "heard", "disturbed"),
    [
        pytest.param("m.py::test_canary FAILED\nm.py::test_a PASSED\n", 50.0, True, id="a canary had its share"),
        pytest.param('{"Action":"fail","Test":"test_canary"}\n', 50.0, True, id="of Go"),
        pytest.param("test test_canary ... FAILED\n", 50.0, True, id="of Rust"),
        pytest.param("m.py::test_canary FAILED\nm.py::test_a ", 1.0, False, id="soon silent: it hangs"),
        pytest.param("m.py::test_canary ", 50.0, False, id="in the canary"),
        pytest.param("m.py::test_a FAILED\n", 50.0, False, id="no canary yet"),
    ],
)
def test_a_time_out_is_the_canaries_doing_only_if_they_came_to_an_end(
    stdout: str, heard: float, disturbed: bool
) -> None:
    check = Check(
        script="", files={}, result_parser="languages.junit", planted=("test_canary",), planted_ids=("m::test_canary",)
    )
    execution = Execution(exit_code=None, stdout=stdout, stderr="", seconds=60, timed_out=True, heard=heard)
    assert canaries.disturbed(check, execution) is disturbed
    assert not canaries.disturbed(check, replace(execution, timed_out=False))
    assert not canaries.disturbed(replace(check, own_ended=True), execution)


def test_a_run_gets_more_than_its_limit_only_when_the_tasks_own_tests_have_ended() -> None:
    expected = {"m::a": Status.PASSED, "m::b": Status.PASSED}
    check = Check(
        script="", files={}, result_parser="languages.junit", timeout=60, expected=expected, planted=("x", "y")
    )
    assert check.seconds == replace(check, is_reference_run=True).seconds == 60
    assert (
        replace(check, own_ended=True).seconds == replace(check, own_ended=True, is_reference_run=True).seconds == 120
    )
