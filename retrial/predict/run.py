"""Phase 1 as a whole: what is not done yet of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from retrial import registry
from retrial.attempts import Prediction
from retrial.errors import ExitCode
from retrial.executors.limiter import FairLimiter, calls_at_once, sandboxes_at_once, tasks_in_flight
from retrial.grading import verdict_cache
from retrial.options import HarnessOptions
from retrial.predict.ladder import Ladder
from retrial.predict.manifest import RunManifest
from retrial.predict.metering.driver_service import DriverService, budget_for_runs
from retrial.predict.plan import Plan
from retrial.predict.save import RunProgress, WriterPool, not_measured, save_prediction, state
from retrial.predict.worker import PredictWorker
from retrial.protocols import Context, Executor, Sandbox
from retrial.reports.analysis import rungs
from retrial.reports.analysis.rungs import LadderRow
from retrial.sandboxes import choose
from retrial.sandboxes.prepare import PreparedEnvironments, prepare_all, unsupported_tasks
from retrial.sandboxes.throttled import ThrottledSandbox
from retrial.store import history
from retrial.store.events import TaskNotMeasured
from retrial.store.records import PredictionSummary
from retrial.system import paths, run_log
from retrial.system.console import NOTE, Progress, pluralise, say
from retrial.system.host import DiskSpace
from retrial.system.locks import PREDICTING
from retrial.system.shutdown import Stop
from retrial.types import Task


def sandbox_for(plan: Plan) -> Sandbox:
    """Raises: UsageError when there is none."""
    environments = {task.environment for task in plan.tasks}
    return choose(plan.options.sandbox, environments, Context(options=plan.options), say)


def run_plan(plan: Plan, ladder: Ladder, sandbox: Sandbox) -> RunEnd:
    """What is not done yet of one run."""
    room, stop = _room(plan), Stop()
    room.refuse_unwritable()
    executor = _executor(plan.options, stop)
    run = plan.run
    with run.lock(PREDICTING) as lost, room.reserved(run.folder), run_log.RunLog(run.logs, run.name, plan.command):
        stop.watch(room.shortage)
        stop.watch(lost)
        manifest = RunManifest(plan)
        # Not before: another may have begun this run in the meantime.
        manifest.refuse_other()
        return PredictRun(plan=plan, ladder=ladder, manifest=manifest, executor=executor, stop=stop).rest(sandbox)


def _executor(options: HarnessOptions, stop: Stop) -> Executor:
    workers = tasks_in_flight(options.jobs, options.test_jobs)
    made: Executor = registry.module("executors", options.executor).make(
        Context(options=options, workers=workers, stop=stop)
    )
    return made


def _room(plan: Plan) -> DiskSpace:
    options = plan.options
    under_way = tasks_in_flight(options.jobs, options.test_jobs)
    return DiskSpace((plan.run.folder, plan.run.logs, paths.cache()), under_way)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """What phase 1 has to say of one run when it ends."""

    folder: Path
    tasks: int
    agent_failed: str
    """Why the agent never worked, in one sentence; empty if it did."""
    ladder: Sequence[LadderRow]
    """What each rung brought to these tasks; empty without models."""
    served_changes: Sequence[str]
    """Models that more than one answered for, a sentence each."""
    unmeasured: Mapping[str, str]
    """Id → reason."""
    replayed: bool

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.NOT_MEASURED if self.unmeasured or self.agent_failed else ExitCode.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRun:
    """One run under way: its lock is held."""

    plan: Plan
    ladder: Ladder
    manifest: RunManifest
    executor: Executor
    stop: Stop

    def rest(self, sandbox: Sandbox) -> RunEnd:
        """Do what is not done yet."""
        plan = self.plan
        left_out = unsupported_tasks(plan.tasks, sandbox)
        done = self._done(left_out)
        todo = [task for task in plan.tasks if task.instance_id not in left_out and task.instance_id not in done]
        plan.run.set_aside_damaged(task.instance_id for task in todo)
        self._announce(todo, left_out)
        # What is done needs no image.
        ready = prepare_all(sandbox, {task.environment for task in todo}, paths.cache(), say)
        self.manifest.start(self.ladder, sandbox, left_out, ready)
        self.manifest.add_recorded(done.values())
        so_far = RunProgress(done=done, unmeasured=self._close(todo, ready))
        todo = [task for task in todo if task.instance_id not in so_far.unmeasured]
        throttled = self._throttled(sandbox)
        try:
            if todo:
                self._work(todo, throttled, so_far)
        finally:
            self.manifest.finish(throttled.environments, ready)
            if todo:
                plan.run.keep_sums()
        return self._end(so_far)

    def _done(self, skipped: Mapping[str, str]) -> dict[str, PredictionSummary]:
        """Predictions of earlier goes; none if the run is finished and its agent never worked."""
        plan = self.plan
        done = history.prediction_summaries(plan.run, plan.ids)
        if history.is_done_again(plan.run, done, plan.ids - set(done) - set(skipped)):
            say(f"{NOTE}no attempt of this run has worked so far; all tasks start again")
            history.discard_attempts(plan.run)
            return {}
        return done

    def _announce(self, todo: Sequence[Task], skipped: Mapping[str, str]) -> None:
        plan = self.plan
        names = ", ".join(rung.name for rung in plan.rungs if rung.name) or "no model"
        done = len(plan.tasks) - len(skipped) - len(todo)
        say(
            f"Run {plan.run.name}: {pluralise(len(plan.tasks), 'task')} of {plan.benchmark.name}, "
            f"agent {plan.options.agent}, {names}, tries {plan.tries}"
            + (f"; {done} done before" if done else "")
            + (f"; {len(skipped)} skipped" if skipped else "")
            + (f"; played again from {plan.recording.run.name}" if plan.recording else "")
            + plan.exclusions_note
        )
        for why in sorted(set(skipped.values())):
            say(f"  skipped {sum(reason == why for reason in skipped.values())}: {why}")

    def _close(self, todo: Sequence[Task], ready: PreparedEnvironments) -> dict[str, str]:
        """Journal and return the tasks whose environment is broken: id → reason."""
        found = {task.instance_id: ready.broken[task.environment] for task in todo if task.environment in ready.broken}
        for instance_id, why in found.items():
            self.plan.run.journal(instance_id).append(TaskNotMeasured(reason=why))
        return found

    def _throttled(self, sandbox: Sandbox) -> ThrottledSandbox:
        # An agent that spends on its own cannot be resumed, so one that has started is allowed to finish.
        must_finish = any(rung.spends for rung in self.ladder.rungs)
        at_once = sandboxes_at_once(self.plan.options.test_jobs, sandbox.machine())
        return ThrottledSandbox(sandbox, at_once, stop=None if must_finish else self.stop)

    def _work(self, todo: Sequence[Task], sandbox: ThrottledSandbox, so_far: RunProgress) -> None:
        plan, options, share = self.plan, self.plan.options, self.executor.share
        # A budget is the run's, or its grid's: what an earlier go spent is spent.
        budget = budget_for_runs(options.max_cost, (plan.run, *plan.group_siblings))
        turns = FairLimiter(calls_at_once(options.jobs), self.stop)
        work = PredictWorker(
            plan=replace(plan, recording=share(plan.recording) if plan.recording else None),
            ladder=self.ladder,
            sandbox=sandbox,
            driver=share(DriverService(plan.run, budget, turns, self.stop)),
            verdicts=share(verdict_cache.Verdicts(paths.cache())),
            tasks={task.instance_id: task for task in todo},
            used=share(sandbox.environments),
        )
        plausible = 0
        unpriced = [rung.name for rung in self.ladder.rungs if rung.unpriced]
        with Progress("harness", len(todo)) as progress, WriterPool() as keepers:
            for instance_id, result in self.executor.run(work, work.tasks):
                keepers.submit(partial(save_prediction, plan.run, work.tasks[instance_id], result, so_far))
                if isinstance(result, Prediction):
                    self.manifest.add(result.attempts)
                    plausible += not result.not_measured and result.chosen.plausible
                tally = (f"{plausible} plausible", budget.shown(unpriced), turns.slowed, sandbox.slowed)
                told = ", ".join(filter(None, tally))
                progress.step(f"{instance_id}: {state(result)}", told, measured=not not_measured(result))

    def _end(self, so_far: RunProgress) -> RunEnd:
        plan = self.plan
        done = (so_far.done[task.instance_id] for task in plan.tasks if task.instance_id in so_far.done)
        asked = any(rung.name for rung in plan.rungs)
        return RunEnd(
            folder=plan.run.folder,
            tasks=len(plan.tasks),
            agent_failed=history.why_agent_failed(plan.run, so_far.done),
            ladder=rungs.ladder(done, (), [rung.title for rung in plan.rungs]) if asked else (),
            served_changes=self.manifest.served_changes(),
            unmeasured=so_far.unmeasured,
            replayed=plan.recording is not None,
        )
