"""What the defence costs a check: each demo task's reference with canary and sealed files, and without, by turns.

The one reference run that finds the canary is not counted: its result is kept. CPU is that of all processes of a check,
and is seen only where they are children of ours, so not on Docker.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from retrial import registry
from retrial.benchmarks.exercism import DEMO, Exercism
from retrial.cache import Verdicts
from retrial.checks import run_check
from retrial.protocols import Context, Sandbox
from retrial.references import reference
from retrial.types import Check, Task

GOAL_SHARE = 0.10
GOAL_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    wall: float
    cpu: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sandbox", default="bwrap", choices=registry.names("sandboxes"))
    parser.add_argument("--language", action="append", choices=registry.names("languages"))
    parser.add_argument("--tasks", type=int, default=2, help="of each language")
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    sandbox: Sandbox = registry.module("sandboxes", options.sandbox).make(Context(options=None))
    benchmark = Exercism(DEMO, "demo")
    print(f"{'task':40} {'proof':12} {'without':>9} {'with':>9} {'added':>9} {'ratio':>6} {'CPU':>9}  goal")
    for language in options.language or registry.names("languages"):
        for task in [task for task in benchmark.tasks() if task.language == language][: options.tasks]:
            sandbox.prepare(task.environment, print)
            compare(benchmark, task, sandbox, options.rounds)


def compare(benchmark: Exercism, task: Task, sandbox: Sandbox, rounds: int) -> None:
    answer = benchmark.answer(task.instance_id)
    with tempfile.TemporaryDirectory() as folder:
        known = reference(task, answer, sandbox, Verdicts(Path(folder)))
    defended = known.strict(answer.check)
    bare = replace(defended, canaries=(), unsealed=frozenset(defended.files))
    pairs = [
        (clock(task, answer.patch, bare, sandbox), clock(task, answer.patch, defended, sandbox)) for _ in range(rounds)
    ]
    without, with_it = (median(each.wall for each in side) for side in zip(*pairs, strict=True))
    # Of neighbours in time: what else the machine does is then the same for both.
    added, cpu = median_of_differences(pairs)
    within = added <= max(GOAL_SHARE * without, GOAL_SECONDS)
    print(
        f"{task.instance_id:40} {known.proof(answer.check):12} {without:7.3f} s {with_it:7.3f} s {added:+7.3f} s "
        f"{1 + added / without:6.2f} {cpu:+7.3f} s  {'met' if within else 'MISSED'}",
        flush=True,
    )


def median_of_differences(pairs: Iterable[tuple[Cost, Cost]]) -> tuple[float, float]:
    known = [(after.wall - before.wall, after.cpu - before.cpu) for before, after in pairs]
    return median(wall for wall, _ in known), median(cpu for _, cpu in known)


def clock(task: Task, patch: str, check: Check, sandbox: Sandbox) -> Cost:
    started, spent = time.perf_counter(), children()
    verdict = run_check(task, patch, check, sandbox)
    cost = Cost(wall=time.perf_counter() - started, cpu=children() - spent)
    assert verdict.resolved, verdict.reason
    return cost


def children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
