"""What a task is worth on this machine: its reference run three times, its untouched tree once, kept by digest."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from retrial.checks import Answer, Canary
from retrial.grading import verdict_cache
from retrial.protocols import Grader, Sandbox
from retrial.system.console import first_few
from retrial.types import Task, Verdict, fingerprint

RUNS = 3
"""Of the reference."""


class TaskQuality(StrEnum):
    """What was found out about a task; all but the first make it void."""

    VALID = "sound"
    FLAKY = "flaky"
    """The runs of its reference differ."""
    BROKEN = "broken"
    """Its reference fails."""
    STUB_PASSES = "stub_passes"
    """Its untouched tree passes."""


MORE_TIME = "give it more (--test-timeout-seconds): an honest solution may run out of time on a busy machine"
ADVICE = {
    TaskQuality.VALID: "",
    TaskQuality.FLAKY: "void from now on; mend the test, or run fewer at once (--test-jobs), then calibrate again",
    TaskQuality.BROKEN: "void from now on; its log says more: mend the toolchain or the task, then calibrate again",
    TaskQuality.STUB_PASSES: "void from now on; its tests cannot tell an answer from none",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What the reference showed here in three runs, and the untouched tree in one; without what they printed."""

    at: str
    """UTC."""
    gold: tuple[Verdict, ...]
    differing: tuple[str, ...]
    """Tests that did not end the same way in all runs of the reference."""
    stub: Verdict
    canaries: tuple[Canary, ...]
    """Those that the reference proved."""
    timeout: float
    """Seconds that each run might take."""

    @property
    def passed(self) -> int:
        return sum(verdict.resolved for verdict in self.gold)

    @property
    def worth(self) -> TaskQuality:
        if self.differing or len({verdict.outcome for verdict in self.gold}) > 1:
            return TaskQuality.FLAKY
        if not self.passed:
            return TaskQuality.BROKEN
        return TaskQuality.STUB_PASSES if self.stub.resolved else TaskQuality.VALID

    @property
    def void(self) -> str:
        """Why the task cannot tell right from wrong here; empty when it can."""
        reasons = [verdict.reason for verdict in self.gold if not verdict.resolved]
        match self.worth:
            case TaskQuality.FLAKY:
                why = first_few(self.differing) or reasons[0]
                return f"its reference flickers here: {self.passed} of {len(self.gold)} runs passed ({why})"
            case TaskQuality.BROKEN:
                return f"its reference fails here: {reasons[0]}"
            case TaskQuality.STUB_PASSES:
                return "its untouched stub passes"
            case TaskQuality.VALID:
                return ""

    @property
    def seconds(self) -> tuple[float, float, float]:
        """Of the reference: the least, the median, the most."""
        # The first has all candidates for canaries in it.
        taken = [verdict.seconds for verdict in self.gold[1:] or self.gold]
        return min(taken), statistics.median(taken), max(taken)

    @property
    def slow(self) -> bool:
        """It passes, but needs more than half of the time there is."""
        return self.passed > 0 and self.seconds[-1] > self.timeout / 2


def calibrated(task: Task, answer: Answer, sandbox: Sandbox, verdicts: verdict_cache.Verdicts) -> Calibration | None:
    """What calibration found out about this task in this environment, with these limits; None if it was never asked."""
    return verdicts.value(key(task, answer, sandbox), Calibration)


def differing(gold: Sequence[Verdict], grader: Grader | None = None) -> tuple[str, ...]:
    """Tests that count and did not end the same way in all these runs, where each run came to its tests."""
    if not all(verdict.tests for verdict in gold):
        return ()
    if grader is not None:
        # Others of the repository may flicker as they like: no verdict hangs on them.
        failed = Counter(test for verdict in gold for test in grader.not_passed(verdict.tests))
        return tuple(sorted(test for test, times in failed.items() if times < len(gold)))
    names = sorted({test for verdict in gold for test in verdict.tests})
    return tuple(test for test in names if len({verdict.tests.get(test) for verdict in gold}) > 1)


def brief(verdict: Verdict) -> Verdict:
    """Without what it printed: logs have that."""
    return replace(verdict, stdout="", stderr="", telling="")


def key(task: Task, answer: Answer, sandbox: Sandbox) -> str:
    return fingerprint("calibration", verdict_cache.key(task, answer.patch, answer.check, sandbox))
