"""Measure what Retrial adds to one test command: the time of a whole check, less the command's time in the sandbox."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from statistics import median

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Check
from retrial.grading.run_check import run_check
from retrial.protocols import Context, Sandbox
from retrial.types import Execution, Job, Task

CLOCK = "clock"
NOW = f'date +%s.%N >>"$RETRIAL_REPORTS/{CLOCK}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    inside: float
    """Of the test command, by the clock in the sandbox."""
    added: float


class Clocked:
    """A sandbox that measures how long the script of each job takes.

    A check may run more than one job: a language can compile its test runner first (`retrial/grading/prebuild.py`).
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.inside = 0.0
        """Seconds of the last job's script."""

    def run(self, job: Job) -> Execution:
        script = f"{NOW}\n(\n{job.script}\n)\nstatus=$?\n{NOW}\nexit $status\n"
        execution = self._sandbox.run(replace(job, script=script))
        start, end = execution.reports[CLOCK].decode().split()
        self.inside = float(end) - float(start)
        # Every report of a prebuild job is kept and copied into the check's job.
        reports = {name: content for name, content in execution.reports.items() if name != CLOCK}
        return replace(execution, reports=reports)

    def __getattr__(self, name: str) -> object:
        return getattr(self._sandbox, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", default="bwrap", choices=registry.names("sandboxes"))
    parser.add_argument("--language", default="python", choices=registry.names("languages"), help="of the demo task")
    parser.add_argument("--rounds", type=int, default=21, help="measured checks; one more comes first as a warm-up")
    options = parser.parse_args()
    sandbox: Sandbox = registry.module("sandboxes", options.sandbox).make(Context(options=None))
    benchmark = Exercism(DEMO, "demo", 1)
    task = next(task for task in benchmark.tasks() if task.language == options.language)
    answer = benchmark.answer(task.instance_id)
    sandbox.prepare(task.environment, print)
    checks = {"hidden": answer.check, "visible": benchmark.visible(task.instance_id)}
    for name, check in checks.items():
        rounds = [measure(task, answer.patch, check, sandbox) for _ in range(1 + options.rounds)][1:]
        added = [seconds.added for seconds in rounds]
        print(
            f"{options.sandbox}, {name} check: test command {median(seconds.inside for seconds in rounds):.3f} s, "
            f"Retrial adds {median(added):.3f} s ({min(added):.3f} to {max(added):.3f}, {options.rounds} rounds)"
        )


def measure(task: Task, patch: str, check: Check, sandbox: Sandbox) -> Seconds:
    clocked = Clocked(sandbox)
    started = time.perf_counter()
    verdict = run_check(task, patch, check, clocked)  # type: ignore[arg-type]
    wall = time.perf_counter() - started
    assert verdict.resolved, verdict.reason
    return Seconds(inside=clocked.inside, added=wall - clocked.inside)


if __name__ == "__main__":
    main()
