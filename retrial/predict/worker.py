"""Phase 1 as work for an executor: one task in, its prediction out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from retrial import GRADING
from retrial.attempts import Attempt, Prediction
from retrial.benchmarks.remote import RemoteParts
from retrial.grading import verdict_cache
from retrial.grading.visible_check import JournalledVerdicts, VisibleCheck
from retrial.models import endpoints
from retrial.predict.ladder import Ladder, solve
from retrial.predict.metering.driver_service import DriverService
from retrial.predict.metering.model_session import TaskLedger
from retrial.predict.plan import Plan, make_ladder
from retrial.protocols import WorkerNode
from retrial.sandboxes.throttled import ThrottledSandbox, UsedEnvironments
from retrial.system import run_log
from retrial.types import Task, fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictWorker:
    """Safe to call from many threads."""

    plan: Plan
    ladder: Ladder
    sandbox: ThrottledSandbox
    driver: DriverService
    verdicts: verdict_cache.Verdicts
    tasks: Mapping[str, Task]
    """By their ids."""
    used: UsedEnvironments
    """Is told what sandboxes use elsewhere."""

    def __call__(self, instance_id: str) -> Prediction:
        with run_log.about(task=instance_id):
            return self._solve(self.tasks[instance_id])

    def elsewhere(self) -> Callable[[WorkerNode], PredictWorker]:
        options = self.plan.options
        keys = {name for rung in self.plan.rungs for name in endpoints.variables(rung.name)}
        there = RemoteParts.of(
            options,
            self.plan.benchmark,
            self.sandbox.name,
            {task.environment for task in self.tasks.values()},
            {*options.agent_env, *keys},
        )
        # Only what its work needs of a plan: tasks are many, and the benchmark there has them too.
        planned = partial(
            Plan,
            options=options,
            argv=(),
            tasks=(),
            rungs=self.plan.rungs,
            run=self.plan.run,
            recording=self.plan.recording,
        )
        return partial(_solving, there, planned, self.driver, self.verdicts, self.used)

    def _solve(self, task: Task) -> Prediction:
        # Before anything is paid for.
        if self.plan.options.visible_tests != "none" and self.plan.recording is None:
            self.sandbox.ensure_image(task.environment)
        ledger = TaskLedger(task.instance_id, self.driver, self.ladder.max_cost)
        try:
            found = solve(task, self.ladder, self._check(task, ledger), ledger)
            return replace(found, attempts=tuple(map(_without_output, found.attempts)))
        finally:
            self.driver.close(task.instance_id)

    def _check(self, task: Task, ledger: TaskLedger) -> VisibleCheck:
        plan, options = self.plan, self.plan.options
        digest = plan.benchmark.provenance["digest"]
        journalled = JournalledVerdicts(
            how=fingerprint(digest, options.visible_tests, options.test_timeout_seconds, GRADING),
            recorded=plan.recording.verdicts(task.instance_id) if plan.recording else {},
            earlier=ledger.earlier.verdicts if ledger.earlier else {},
        )
        return VisibleCheck(plan.benchmark, task, self.sandbox, self.verdicts, options.test_timeout_seconds, journalled)


def _without_output(attempt: Attempt) -> Attempt:
    """Without what tests printed and what was said: the journal has that."""
    verdict = replace(attempt.verdict, stdout="", stderr="", telling="") if attempt.verdict else None
    effort = replace(attempt.effort, chat=()) if attempt.effort else None
    return replace(attempt, verdict=verdict, effort=effort)


def _solving(
    there: RemoteParts,
    planned: Callable[..., Plan],
    driver: DriverService,
    verdicts: verdict_cache.Verdicts,
    used: UsedEnvironments,
    site: WorkerNode,
) -> PredictWorker:
    there.enter()
    plan = planned(benchmark=there.benchmark.open())
    return PredictWorker(
        plan=plan,
        ladder=make_ladder(plan),
        sandbox=there.sandbox.open(site, used, must_finish=plan.spends),
        driver=driver,
        verdicts=verdicts,
        tasks={task.instance_id: task for task in plan.benchmark.tasks()},
        used=used,
    )
