"""Phase 1 as a whole: what is not done yet of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from retrial import registry
from retrial.attempts import Prediction
from retrial.errors import ExitCode
from retrial.executors.limiter import FairLimiter, calls_at_once, sandboxes_at_once, tasks_in_flight
from retrial.executors.writer_pool import WriterPool
from retrial.grading import verdict_cache
from retrial.options import HarnessOptions
from retrial.predict import manifest, save
from retrial.predict.ladder import Ladder
from retrial.predict.manifest import refuse_other_identity
from retrial.predict.metering.budget import budget_for_runs
from retrial.predict.metering.driver_service import DriverService
from retrial.predict.plan import Plan
from retrial.predict.save import RunProgress, not_measured, save_prediction, state
from retrial.predict.worker import PredictWorker
from retrial.protocols import Context, Executor, Sandbox
from retrial.reports import console_tables
from retrial.reports.analysis import rungs
from retrial.sandboxes import choose
from retrial.sandboxes.prepare import PreparedEnvironments, prepare_all, unsupported_tasks
from retrial.sandboxes.throttled import ThrottledSandbox
from retrial.store import agent_failures, history
from retrial.store.history import PredictionSummary
from retrial.system import paths, run_log
from retrial.system.console import NOTE, Progress, pluralise, say
from retrial.system.host import DiskSpace
from retrial.system.run_locks import PREDICTING
from retrial.system.shutdown import Stop
from retrial.types import Task

SHOWN = 10


def sandbox_for(plan: Plan) -> Sandbox:
    """Raises: UsageError when there is none."""
    environments = {task.environment for task in plan.tasks}
    return choose(plan.options.sandbox, environments, Context(options=plan.options), say)


def run_plan(plan: Plan, ladder: Ladder, sandbox: Sandbox) -> int:
    """What is not done yet of one run; returns the exit code."""
    room, stop = _room(plan), Stop()
    room.refuse_unwritable()
    executor = _executor(plan.options, stop)
    run = plan.run
    with run.lock(PREDICTING) as lost, room.reserved(run.folder), run_log.RunLog(run.logs, run.name, plan.command):
        stop.watch(room.shortage)
        stop.watch(lost)
        # Not before: another may have begun this run in the meantime.
        refuse_other_identity(plan)
        return _run_rest(plan, ladder, sandbox, executor, stop)


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


def _run_rest(plan: Plan, ladder: Ladder, sandbox: Sandbox, executor: Executor, stop: Stop) -> int:
    options = plan.options
    left_out = unsupported_tasks(plan.tasks, sandbox)
    done = _done(plan, left_out)
    todo = [task for task in plan.tasks if task.instance_id not in left_out and task.instance_id not in done]
    plan.run.set_aside_damaged(task.instance_id for task in todo)
    _announce(plan, todo, left_out)
    # What is done needs no image.
    ready = prepare_all(sandbox, {task.environment for task in todo}, paths.cache(), say)
    manifest.write(plan, ladder, sandbox, left_out, ready)
    answered = save.served_so_far(plan.run.config()["served"], done.values())
    so_far = RunProgress(done=done, answered=answered, unmeasured=_close(plan, todo, ready))
    todo = [task for task in todo if task.instance_id not in so_far.unmeasured]
    # An agent that spends on its own cannot be gone on with: when it has begun, it comes to its end.
    must_finish = any(rung.spends for rung in ladder.rungs)
    at_once = sandboxes_at_once(options.test_jobs, sandbox.machine())
    bounded = ThrottledSandbox(sandbox, at_once, stop=None if must_finish else stop)
    try:
        if todo:
            _run_all(plan, ladder, bounded, todo, so_far, executor, stop)
    finally:
        manifest.finish(plan, bounded, ready, answered)
        if todo:
            plan.run.keep_sums()
    return _end(plan, so_far)


def _done(plan: Plan, skipped: Mapping[str, str]) -> dict[str, PredictionSummary]:
    """Predictions of earlier goes; none if the run is finished and its agent never worked."""
    done = history.prediction_summaries(plan.run, plan.tasks)
    if agent_failures.is_repeated(plan.run, done, plan.without_prediction(skipped)):
        say(f"{NOTE}no attempt of this run has worked so far; all tasks start again")
        agent_failures.discard(plan.run)
        return {}
    return done


def _close(plan: Plan, todo: Sequence[Task], ready: PreparedEnvironments) -> dict[str, str]:
    """Tasks that nobody is asked about, for their environment is broken: id → reason."""
    found = {task.instance_id: ready.broken[task.environment] for task in todo if task.environment in ready.broken}
    for instance_id, why in found.items():
        plan.run.journal(instance_id).append("not_measured", reason=why)
    return found


def _announce(plan: Plan, todo: Sequence[Task], skipped: Mapping[str, str]) -> None:
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


def _run_all(
    plan: Plan,
    ladder: Ladder,
    sandbox: ThrottledSandbox,
    todo: Sequence[Task],
    so_far: RunProgress,
    executor: Executor,
    stop: Stop,
) -> None:
    options = plan.options
    # A budget is the run's, or its grid's: what an earlier go spent is spent.
    budget = budget_for_runs(options.max_cost, (plan.run, *plan.group_siblings))
    turns = FairLimiter(calls_at_once(options.jobs), stop)
    by_id = {task.instance_id: task for task in todo}
    played = executor.share(plan.recording) if plan.recording else None
    work = PredictWorker(
        plan=replace(plan, recording=played),
        ladder=ladder,
        sandbox=sandbox,
        driver=executor.share(DriverService(plan.run, budget, turns, stop)),
        verdicts=executor.share(verdict_cache.Verdicts(paths.cache())),
        tasks=by_id,
        used=executor.share(sandbox),
    )
    plausible = 0
    unpriced = [rung.name for rung in ladder.rungs if rung.unpriced]
    with Progress("harness", len(todo)) as progress, WriterPool() as keepers:
        for instance_id, result in executor.run(work, by_id):
            keepers.submit(partial(save_prediction, plan.run, by_id[instance_id], result, so_far))
            if isinstance(result, Prediction):
                save.add_served(so_far.answered, result.attempts)
                plausible += not result.not_measured and result.chosen.plausible
            tally = (f"{plausible} plausible", budget.shown(unpriced), turns.slowed, sandbox.slowed)
            told = ", ".join(filter(None, tally))
            progress.step(f"{instance_id}: {state(result)}", told, measured=not not_measured(result))


def _end(plan: Plan, so_far: RunProgress) -> int:
    open_tasks, failed = so_far.unmeasured, agent_failures.of_run(plan.run, so_far.done)
    if failed:
        print(f"{failed}\nCheck the agent's command, --agent-path and its keys, then run the same command again.\n")
    if any(rung.name for rung in plan.rungs):
        print(console_tables.ladder(_ladder(plan, so_far), scored=False) + "\n")
    for change in save.served_model_changes(plan.run.config()["served"]):
        print(change)
    print(f"Predictions: {plan.run.folder}")
    if not open_tasks:
        return ExitCode.NOT_MEASURED if failed else ExitCode.DONE
    print(f"Not measured: {len(open_tasks)} of {len(plan.tasks)} tasks; the same command does them again.")
    # Where one question of a run that is played again differs, most do: the first says why.
    shown = 1 if plan.recording else SHOWN
    for instance_id, why in sorted(open_tasks.items())[:shown]:
        print(f"  {instance_id}: {why}")
    if len(open_tasks) > shown:
        print(f"  and {len(open_tasks) - shown} more")
    return ExitCode.NOT_MEASURED


def _ladder(plan: Plan, so_far: RunProgress) -> list[dict[str, Any]]:
    """What each rung brought to these tasks."""
    done = (so_far.done[task.instance_id] for task in plan.tasks if task.instance_id in so_far.done)
    return rungs.ladder(done, (), [rung.title for rung in plan.rungs])
