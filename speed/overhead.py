"""What Retrial adds to one test command: time of a whole check, less the command's own as clocked in the sandbox."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from statistics import median

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import run_check
from retrial.protocols import Context, Sandbox
from retrial.types import Check, Execution, Job


class Clocked:
    """A sandbox that remembers how long the job's own command took, by the clock inside."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.inside = 0.0

    def run(self, job: Job) -> Execution:
        execution = self._sandbox.run(job)
        start, end = execution.reports["clock"].decode().split()
        self.inside = float(end) - float(start)
        return execution

    def __getattr__(self, name: str) -> object:
        return getattr(self._sandbox, name)


def clocked(check: Check) -> Check:
    clock = 'date +%s.%N >> "$RETRIAL_REPORTS/clock"'
    return replace(check, script=f"{clock}\n(\n{check.script}\n)\nstatus=$?\n{clock}\nexit $status\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sandbox", default="bwrap", choices=registry.names("sandboxes"))
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    part: Sandbox = registry.module("sandboxes", options.sandbox).make(Context(options=None))
    sandbox = Clocked(part)
    benchmark = Exercism(DEMO, "demo", 1)
    task = benchmark.tasks()[0]
    answer = benchmark.answer(task.instance_id)
    part.prepare(task.environment, print)
    checks = {"hidden": answer.check, "visible": benchmark.visible(task.instance_id)}
    for name, check in checks.items():
        added, inside = [], []
        for _ in range(options.rounds):
            started = time.perf_counter()
            verdict = run_check(task, answer.patch, clocked(check), sandbox)  # type: ignore[arg-type]
            added.append(time.perf_counter() - started - sandbox.inside)
            inside.append(sandbox.inside)
            assert verdict.resolved, verdict.reason
        print(
            f"{options.sandbox}, {name} check: test command {median(inside):.3f} s, Retrial adds {median(added):.3f} s "
            f"({min(added):.3f} to {max(added):.3f}, {options.rounds} rounds)"
        )


if __name__ == "__main__":
    main()
