"""What the defence costs a check: each demo task's reference with canary and sealed files, and without, by turns.

The one reference run that finds the canary is not counted: what it shows is kept. CPU is that of the test command.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.checks import Check
from retrial.grading.reference_runs import reference
from retrial.grading.run_check import run_check
from retrial.grading.verdict_cache import Verdicts
from retrial.protocols import Context, Sandbox
from retrial.types import Execution, Job, Task

GOAL_SHARE = 0.10
GOAL_SECONDS = 0.1
CLOCK = "clock"
COUNTED = '(\n{script}\n)\nstatus=$?\ntimes >"$RETRIAL_REPORTS/' + CLOCK + '"\nexit $status\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    wall: float
    cpu: float


class Counted:
    """A sandbox that remembers the CPU time of the job's own command, as the shell inside counted it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.cpu = 0.0

    def run(self, job: Job) -> Execution:
        execution = self._sandbox.run(replace(job, script=COUNTED.format(script=job.script)))
        spent = re.findall(r"(\d+)m([\d.]+)s", execution.reports[CLOCK].decode())
        self.cpu = sum(60 * int(minutes) + float(seconds) for minutes, seconds in spent)
        rest = {name: content for name, content in execution.reports.items() if name != CLOCK}
        return replace(execution, reports=rest)

    def __getattr__(self, name: str) -> object:
        return getattr(self._sandbox, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sandbox", default="bwrap", choices=registry.names("sandboxes"))
    parser.add_argument("--language", action="append", choices=registry.names("languages"))
    parser.add_argument("--tasks", type=int, default=2, help="of each language")
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    sandbox: Sandbox = registry.module("sandboxes", options.sandbox).make(Context(options=None))
    benchmark = Exercism(DEMO, "demo")
    print(f"{'task':32} {'proof':12} {'without':>9} {'with':>9} {'added':>9} {'ratio':>6} {'CPU added':>16}  goal")
    for language in options.language or registry.names("languages"):
        for task in [task for task in benchmark.tasks() if task.language == language][: options.tasks]:
            sandbox.prepare(task.environment, print)
            print(compared(benchmark, task, sandbox, options.rounds), flush=True)


def compared(benchmark: Exercism, task: Task, sandbox: Sandbox, rounds: int) -> str:
    answer = benchmark.answer(task.instance_id)
    with tempfile.TemporaryDirectory() as folder:
        known = reference(task, answer, sandbox, Verdicts(Path(folder)))
    defended = known.strict(answer.check)
    bare = replace(defended, canaries=(), run_may_change=frozenset(defended.files))
    pairs = [[clock(task, answer.patch, check, sandbox) for check in (bare, defended)] for _ in range(rounds)]
    without, with_it = (median(pair[side].wall for pair in pairs) for side in (0, 1))
    # Of neighbours in time: whatever else the machine does was much the same for both.
    added = median(after.wall - before.wall for before, after in pairs)
    cpu = median(after.cpu - before.cpu for before, after in pairs)
    share = cpu / median(before.cpu for before, _ in pairs)
    return (
        f"{task.instance_id:32} {known.proof(answer.check):12} {without:7.3f} s {with_it:7.3f} s {added:+7.3f} s "
        f"{1 + added / without:6.2f} {cpu:+7.3f} s {share:+6.1%}  "
        f"{'met' if added <= max(GOAL_SHARE * without, GOAL_SECONDS) else 'missed'}"
    )


def clock(task: Task, patch: str, check: Check, sandbox: Sandbox) -> Cost:
    counted = Counted(sandbox)
    started = time.perf_counter()
    verdict = run_check(task, patch, check, counted)  # type: ignore[arg-type]
    wall = time.perf_counter() - started
    assert verdict.resolved, verdict.reason
    return Cost(wall=wall, cpu=counted.cpu)


if __name__ == "__main__":
    main()
