"""What three runs of a reference and one of the untouched tree say about a task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import Exercism
from retrial.benchmarks.swebench.grader import OfficialGrader
from retrial.benchmarks.swebench.official_grader import OfficialTests
from retrial.errors import Overloaded
from retrial.grading import calibration, verdict_cache
from retrial.grading.calibration import ADVICE, MORE_TIME, Calibration, TaskQuality, differing
from retrial.protocols import Sandbox
from retrial.reports import calibration_table
from retrial.reports.calibration_table import CalibrationResults
from retrial.score.calibrate import calibrate_task
from retrial.score.scorer import Scorer
from retrial.store.json_io import to_json
from retrial.types import Execution, Job, Outcome, Status, Task, Verdict
from tests.grading.test_hangs import Recording
from tests.support.exercises import RIGHT, STUB, WRONG, write_exercise
from tests.support.rows import row

PASSED, FAILED, SKIPPED = Status.PASSED, Status.FAILED, Status.SKIPPED
GOOD = Verdict(outcome=Outcome.RESOLVED, tests={"a": PASSED, "b": PASSED}, seconds=1.0, proof="canary")
BAD = Verdict(outcome=Outcome.TESTS_FAILED, tests={"a": PASSED, "b": FAILED}, reason="b did not pass", seconds=2.0)
LATE = Verdict(outcome=Outcome.TIMED_OUT, reason="the tests did not end within 60 s", seconds=60.0)


def calibrated(*gold: Verdict, stub: Verdict = BAD) -> Calibration:
    return Calibration(
        at="2026-01-01T00:00:00+00:00", gold=gold, differing=differing(gold), stub=stub, canaries=(), timeout=60.0
    )


@pytest.mark.parametrize(
    ("gold", "stub", "worth", "void"),
    [
        ((GOOD, GOOD, GOOD), BAD, TaskQuality.VALID, ""),
        ((GOOD, GOOD, GOOD), GOOD, TaskQuality.STUB_PASSES, "its untouched stub passes"),
        ((BAD, BAD, BAD), GOOD, TaskQuality.BROKEN, "its reference fails here: b did not pass"),
        ((GOOD, BAD, GOOD), GOOD, TaskQuality.FLAKY, "its reference flickers here: 2 of 3 runs passed (b)"),
        (
            (GOOD, GOOD, LATE),
            BAD,
            TaskQuality.FLAKY,
            f"its reference flickers here: 2 of 3 runs passed ({LATE.reason})",
        ),
    ],
)
def test_a_task_is_worth_what_its_runs_showed(
    gold: tuple[Verdict, ...], stub: Verdict, worth: TaskQuality, void: str
) -> None:
    found = calibrated(*gold, stub=stub)
    assert (found.worth, found.void) == (worth, void)


def test_a_reference_that_always_fails_but_never_in_the_same_way_flickers() -> None:
    other = replace(BAD, tests={"a": FAILED, "b": PASSED})
    found = calibrated(BAD, other, BAD)
    assert (found.worth, found.differing) == (TaskQuality.FLAKY, ("a", "b"))
    assert "0 of 3 runs passed (a, b)" in found.void


def test_a_skip_now_and_then_is_a_flicker_and_so_is_a_test_that_comes_and_goes() -> None:
    assert differing((GOOD, replace(GOOD, tests={"a": PASSED, "b": SKIPPED}), GOOD)) == ("b",)
    assert differing((GOOD, GOOD, replace(GOOD, tests={**GOOD.tests, "c": PASSED}))) == ("c",)


def test_of_a_repository_only_required_tests_count() -> None:
    grader = OfficialGrader(OfficialTests(parser="", fail_to_pass=("a",), pass_to_pass=()), reinstall=None)
    assert differing((GOOD, BAD, GOOD), grader) == ()
    assert differing((GOOD, replace(BAD, tests={"a": FAILED, "b": PASSED}), GOOD), grader) == ("a",)


@pytest.mark.parametrize(("seconds", "slow"), [(30.0, False), (30.1, True)])
def test_a_reference_that_needs_more_than_half_of_its_time_is_slow(seconds: float, slow: bool) -> None:
    found = calibrated(GOOD, replace(GOOD, seconds=seconds), replace(GOOD, seconds=3.0))
    assert (found.seconds, found.slow) == ((3.0, (3.0 + seconds) / 2, seconds), slow), (
        "the first has all candidates in it"
    )
    assert ("--test-timeout-seconds" in calibration_table.row(row("one", GOOD).task, found).advice) == slow


def test_what_to_do_stands_beside_what_was_found() -> None:
    found = {
        "good": calibrated(GOOD, GOOD, GOOD),
        "late": calibrated(GOOD, replace(GOOD, seconds=40.0), GOOD),
        "odd": calibrated(GOOD, BAD, GOOD),
        "idle": calibrated(GOOD, GOOD, GOOD, stub=GOOD),
    }
    instances = [calibration_table.row(row(name, GOOD).task, each) for name, each in found.items()]
    results = CalibrationResults(
        schema=1,
        kind="calibration",
        run="it",
        benchmark="bench",
        command="",
        totals=calibration_table.totals(instances, not_measured=1, skipped=0),
        proofs={"canary": 4},
        not_measured={"lost": "the engine went away"},
        skipped={},
        void={},
        provenance={},
        instances=instances,
    )
    lines = calibration_table.render(results).splitlines()
    assert lines[2:6] == [
        "good      sound        3/3   tests failed  1.00 / 1.00 / 1.00          60     canary",
        "late      sound        3/3   tests failed  1.00 / 20.50 / 40.00        60     canary",
        "odd       flaky        2/3   tests failed  1.00 / 1.50 / 2.00          60     canary",
        "idle      stub passes  3/3   resolved      1.00 / 1.00 / 1.00          60     canary",
    ]
    assert lines[7:] == [
        "sound         2",
        f"flaky         1: {ADVICE[TaskQuality.FLAKY]}",
        "  odd: its reference flickers here: 2 of 3 runs passed (b)",
        "broken        0",
        f"stub passes   1: {ADVICE[TaskQuality.STUB_PASSES]}",
        "  idle: its untouched stub passes",
        f"slow          1: {MORE_TIME}",
        "  late: its reference took 40.0 of 60 s",
        "not measured  1",
        "  not measured: 1 × the engine went away",
        "skipped       0",
        "proof         canary 4",
    ]


# In a real sandbox


class Bench:
    """One exercise, and who calibrates it."""

    def __init__(self, folder: Path, sandbox: Sandbox, *, stub: str = STUB, example: str = RIGHT) -> None:
        benchmark = Exercism(write_exercise(folder / "bench", stub=stub, example=example), "bench")
        self.cache = folder / "cache"
        self.task: Task = benchmark.tasks()[0]
        scorer = Scorer(benchmark=benchmark, sandbox=sandbox, verdicts=verdict_cache.Verdicts(self.cache))
        self.scorer = scorer

    def known(self, timeout: float | None = None) -> Calibration | None:
        scorer = replace(self.scorer, timeout=timeout)
        return calibration.calibrated(self.task, scorer.answer(self.task), scorer.sandbox, scorer.verdicts)

    def calibrate(self) -> tuple[Calibration, tuple[Verdict, ...]]:
        return calibrate_task(self.task, self.scorer.answer(self.task), self.scorer)

    def forge(self, what: bytes, by: bytes) -> None:
        """In everything that was kept."""
        for path in self.cache.glob("verdicts/*/*.json"):
            path.write_bytes(path.read_bytes().replace(what, by))


@pytest.mark.real
def test_what_was_found_out_is_known_from_then_on(bwrap: Sandbox, tmp_path: Path) -> None:
    bench = Bench(tmp_path, bwrap)
    assert bench.known() is None
    found, seen = bench.calibrate()
    assert [verdict.outcome for verdict in seen] == [*(3 * [Outcome.RESOLVED]), Outcome.TESTS_FAILED]
    assert seen[-1].stdout and not found.stub.stdout
    assert (found.worth, found.passed) == (TaskQuality.VALID, 3)
    assert found.canaries
    assert found.gold[-1].proof in ("canary", "canary-weak")
    assert to_json(bench.known()) == to_json(found)
    bench.forge(b'"stub"', b'"null"')
    assert bench.known() is None, "what another version kept is as good as nothing"


@pytest.mark.real
def test_a_time_out_on_a_busy_machine_says_nothing_of_a_task(bwrap: Sandbox, tmp_path: Path) -> None:
    def busily(job: Job, found: Execution) -> Execution:
        late = replace(found, timed_out=True, exit_code=None, reports={}, seconds=job.limits.seconds)
        return replace(late, cpu_seconds=1.0, idle_cores=0.0)

    bench = Bench(tmp_path, Recording(bwrap, busily))
    with pytest.raises(Overloaded, match="timed out while the machine was busy"):
        bench.calibrate()
    assert bench.known() is None


@pytest.mark.real
def test_nothing_is_taken_from_an_earlier_run_and_other_limits_are_another_question(
    bwrap: Sandbox, tmp_path: Path
) -> None:
    bench = Bench(tmp_path, bwrap, stub=RIGHT, example=WRONG)
    bench.calibrate()
    bench.forge(b'"tests_failed"', b'"resolved"')
    assert bench.calibrate()[0].worth is TaskQuality.BROKEN
    assert bench.known() is not None
    assert bench.known(timeout=61.0) is None
