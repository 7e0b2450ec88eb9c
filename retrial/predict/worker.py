"""Phase 1 as work for an executor: one task in, its prediction out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from retrial import GRADING
from retrial.attempts import Attempt, Prediction
from retrial.benchmarks.remote import RemoteParts
from retrial.grading import verdict_cache
from retrial.grading.visible_check import VisibleCheck
from retrial.models import endpoints
from retrial.predict.ladder import Ladder, solve
from retrial.predict.metering.driver_service import DriverService, TaskDriver
from retrial.predict.plan import Plan, make_ladder
from retrial.protocols import WorkerNode
from retrial.sandboxes.throttled import ThrottledSandbox
from retrial.store import attempt_log
from retrial.system import run_log
from retrial.types import Check, Task, fingerprint


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
    used: ThrottledSandbox
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
        driver = TaskDriver(task.instance_id, self.driver, self.ladder.max_cost)
        try:
            found = solve(task, self.ladder, self._check(task, driver), driver)
            return replace(found, attempts=tuple(map(_without_output, found.attempts)))
        finally:
            self.driver.close(task.instance_id)

    def _check(self, task: Task, driver: TaskDriver) -> VisibleCheck:
        options = self.plan.options
        digest = self.plan.benchmark.provenance["digest"]
        how = fingerprint(digest, options.visible_tests, options.test_timeout_seconds, GRADING)
        played = self.plan.recording.verdicts(task.instance_id) if self.plan.recording else {}
        earlier = attempt_log.verdicts(driver.lines())
        return VisibleCheck(task, partial(self._visible, task), self.sandbox, self.verdicts, how, played, earlier)

    def _visible(self, task: Task, edited: Iterable[str], most: int | None) -> Check | str:
        check = self.plan.benchmark.visible(task.instance_id, edited, most)
        if isinstance(check, str):
            return check
        return replace(check, timeout=self.plan.options.test_timeout_seconds or check.timeout)


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
    used: ThrottledSandbox,
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
