"""What the driver itself takes for a finished task: no model and no sandbox, only what is written down about both.

Work is done by the executor's own workers, as in a run; goal: 300 finished tasks a second in either phase.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from retrial import registry
from retrial.attempts import AgentResult, Attempt, Prediction
from retrial.benchmarks.exercism.exercise import FolderTree
from retrial.chat import Message, Reply, Request, Sampling, Usage
from retrial.checks import Check
from retrial.executors.limiter import FairLimiter
from retrial.grading import verdict_cache
from retrial.models.prices import Price
from retrial.options import HarnessOptions
from retrial.predict.metering.driver_service import Budget, DriverService
from retrial.predict.metering.model_session import ModelSession, TaskLedger
from retrial.predict.save import RunProgress, WriterPool, save_prediction, state
from retrial.protocols import Context, Executor
from retrial.score.predictions_file import Submission
from retrial.score.save import save_verdict
from retrial.score.scorer import Scored
from retrial.store.events import AttemptEnded, AttemptStarted, VisibleChecked
from retrial.store.records import attempt_record
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.system.console import Progress, money
from retrial.system.shutdown import Stop
from retrial.types import Environment, Outcome, Status, Task, Verdict
from tests.support.clusters import two_nodes

CALLS = 3
"""Questions in one attempt."""
COST = 0.01
SAID = "A line of a chat, of a file or of a log, as long as such lines are.\n"
PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1,40 @@\n-pass\n" + "+    total += 1  # and so on\n" * 40
VERDICT = Verdict(
    outcome=Outcome.TESTS_FAILED,
    reason="2 of 20 tests failed",
    tests={f"test_a.py::test_{number}": Status.PASSED if number > 1 else Status.FAILED for number in range(20)},
    exit_code=1,
    seconds=1.5,
    stdout=SAID * 60,
    stderr=SAID * 5,
)
SAMPLING = Sampling(temperature=0.0, seed=0, max_tokens=4096, seconds=300)


class Instant:
    """A model that has its answer ready."""

    name = "instant"

    def complete(self, request: Request) -> Reply:
        usage = Usage(calls=1, prompt_tokens=2000, completion_tokens=400, cost=COST, seconds=2.0)
        return Reply(text=SAID * 25, usage=usage, model="instant-1")


def lines_of_an_attempt(run: Run) -> tuple[bytes, ...]:
    """As a worker makes them: that is no work of the driver's, so it is done once."""
    stop = Stop()
    ledger = TaskLedger("once", DriverService(run, Budget(None), FairLimiter(1, stop), stop))
    chat = ModelSession(Instant(), Price(prompt=1, completion=1), SAMPLING, ledger, 1)
    ledger.append_with_next(AttemptStarted(attempt=1, model="instant", sampling=SAMPLING))
    said: tuple[Message, ...] = (Message(role="system", content=SAID * 30), Message(role="user", content=SAID * 40))
    for _ in range(CALLS):
        reply = chat.ask(said)
        said = (*said, Message(role="assistant", content=reply.text), Message(role="user", content=SAID * 15))
    ledger.append(VisibleChecked(key="once", verdict=VERDICT))
    ledger.append(AttemptEnded(attempt=1, result=attempt_record(_attempt(chat.usage))))
    return tuple(run.journal("once").content().splitlines(keepends=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """Has everything written down that an attempt has written down."""

    driver: DriverService
    lines: tuple[bytes, ...]

    def __call__(self, task: Task) -> Prediction:
        name, (started, *rest) = task.instance_id, self.lines
        self.driver.open(name)
        for number in range(CALLS):
            asked, answered = rest[2 * number : 2 * number + 2]
            leave = self.driver.reserve(name, asked if number else started + asked, COST)
            self.driver.settle(leave, name, answered, COST)
        for line in rest[2 * CALLS :]:
            self.driver.append(name, line)
        self.driver.close(name)
        attempt = _attempt(Usage(calls=CALLS, cost=CALLS * COST))
        return Prediction(instance_id=name, model_name_or_path="edit--instant", attempts=(attempt,), tries=1)


def _attempt(usage: Usage) -> Attempt:
    return Attempt(
        number=1,
        round=1,
        model="instant",
        edit_format="whole",
        seed=0,
        temperature=0.0,
        patch=PATCH,
        counted=PATCH,
        edit_outcome=True,
        lint_outcome=True,
        usage=usage,
        effort=AgentResult(edit_outcome=True, tests_outcomes=(False, False)),
        verdict=VERDICT,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """A verdict that has just been found, and is kept."""

    verdicts: verdict_cache.Verdicts

    def __call__(self, task: Task) -> Scored:
        self.verdicts.put(f"{hash(task.instance_id) & 0xFFFFFFFF:08x}{task.instance_id}", VERDICT)
        check = Check(script="run", files={"test_a.py": SAID.encode() * 30}, result_parser="languages.junit")
        return Scored(submission=_submission(task), task=task, verdict=VERDICT, check=check, counted=PATCH)


def _submission(task: Task) -> Submission:
    return Submission(instance_id=task.instance_id, model_name_or_path="edit--instant", patch=PATCH)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=3000)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--executor", default="local", help="for ray, a cluster of two nodes on this machine")
    options = parser.parse_args()
    with contextlib.ExitStack() as open_until_end:
        options.address = open_until_end.enter_context(two_nodes()).address if options.executor == "ray" else ""
        name = open_until_end.enter_context(tempfile.TemporaryDirectory())
        os.environ |= {"RETRIAL_HOME": f"{name}/home", "RETRIAL_CACHE": f"{name}/cache"}
        run = Run(Path(name, "home"), "driven")
        tasks = [task(f"task-{number:05d}") for number in range(options.tasks)]
        with run_log.RunLog(run.logs, run.name, "speed.driver"):
            tell("phase 1", options, lambda: _phase1(options, run, tasks))
            tell("phase 2", options, lambda: _phase2(options, run, tasks))


def task(instance_id: str) -> Task:
    return Task(
        instance_id=instance_id,
        benchmark="driven",
        language="python",
        problem_statement=SAID,
        tree=FolderTree(root=Path(), paths=()),
        environment=Environment(name="python", image="python", language="python", tree="/testbed"),
        editable=("a.py",),
    )


def _executor(options: argparse.Namespace, stop: Stop) -> Executor:
    context = Context(options=HarnessOptions(ray_address=options.address), workers=options.workers, stop=stop)
    executor: Executor = registry.module("executors", options.executor).make(context)
    return executor


def _phase1(options: argparse.Namespace, run: Run, tasks: list[Task]) -> None:
    stop, budget = Stop(), Budget(None)
    executor = _executor(options, stop)
    came = RunProgress(done={}, unmeasured={})
    driver = executor.share(DriverService(run, budget, FairLimiter(options.workers, stop), stop))
    work = Writing(driver=driver, lines=lines_of_an_attempt(Run(run.folder, "lines")))
    with Progress("harness", len(tasks)) as progress, WriterPool() as keepers:
        for task, result in executor.run(work, tasks):
            keepers.submit(partial(save_prediction, run, task, result, came))
            progress.step(f"{task.instance_id}: {state(result)}", money(budget.spent))
    assert len(came.done) == len(tasks), came.unmeasured


def _phase2(options: argparse.Namespace, run: Run, tasks: list[Task]) -> None:
    executor = _executor(options, Stop())
    work = Judging(verdicts=executor.share(verdict_cache.Verdicts(Path(os.environ["RETRIAL_CACHE"]))))
    rows = []
    with Progress("report", len(tasks)) as progress:
        for task, result in executor.run(work, tasks):
            rows.append(row := save_verdict(run, task, _submission(task), result))
            progress.step(f"{task.instance_id}: {row.verdict.outcome}", "")
    assert all(row.verdict.outcome is VERDICT.outcome for row in rows), rows


def tell(title: str, options: argparse.Namespace, work: Callable[[], None]) -> None:
    with counted() as synced, open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
        started, before = time.perf_counter(), cpu()
        work()
        wall, spent = time.perf_counter() - started, cpu() - before
    print(
        f"{title}, {options.executor}: {options.tasks / wall:.0f} finished tasks a second; "
        f"for each {1000 * spent / options.tasks:.2f} ms CPU, {synced[0] / options.tasks:.1f} fsyncs"
    )


def cpu() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


@contextlib.contextmanager
def counted() -> Iterator[list[int]]:
    """How often something was made sure to be on disk."""
    sync, found = os.fsync, [0]

    def fsync(file: int) -> None:
        found[0] += 1
        sync(file)

    os.fsync = fsync  # type: ignore[assignment]
    try:
        yield found
    finally:
        os.fsync = sync


if __name__ == "__main__":
    main()
