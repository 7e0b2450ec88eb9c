"""harness.py: run the agent over the tasks and write predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrial import cache, config, orphans, program, recorded, registry, run_config, rungs, served, table, transcript
from retrial.attempts import Prediction
from retrial.budget import Budget, committed_in
from retrial.claims import claimed
from retrial.config import HarnessOptions
from retrial.desk import Desk
from retrial.errors import NotMeasured
from retrial.identity import refuse_other_identity
from retrial.plan import Plan, make_ladder, make_plan
from retrial.progress import Progress, say
from retrial.protocols import Context, Executor, Sandbox
from retrial.records import prediction_record
from retrial.sandboxes import Bounded, Ready, choose, make_ready, skipped
from retrial.solve import Ladder
from retrial.solving import Solving
from retrial.stopping import Stop
from retrial.store import Run
from retrial.table import money
from retrial.turns import Turns
from retrial.types import Task
from retrial.words import counted

SHOWN = 10
DESCRIPTION = "Run a code-editing agent over tasks until an edit is plausible, and write predictions."


def main(argv: Sequence[str]) -> int:
    options, _ = config.parse(HarnessOptions, argv, DESCRIPTION, complete=recorded.complete)
    orphans.remove()
    if options.grid:
        from retrial import grid

        return grid.run(options, argv)
    plan = make_plan(options, argv)
    if options.dry_run:
        from retrial import dry_run

        return dry_run.show(plan, sandbox_for(plan))
    return run_plan(plan, make_ladder(plan), sandbox_for(plan))


def sandbox_for(plan: Plan) -> Sandbox:
    """Raises: UsageError when there is none."""
    environments = {task.environment for task in plan.tasks}
    return choose(plan.options.sandbox, environments, Context(options=plan.options), say)


def run_plan(plan: Plan, ladder: Ladder, sandbox: Sandbox) -> int:
    """What is not done yet of one run; returns the exit code."""
    refuse_other_identity(plan)
    with claimed(plan.run):
        return _go_on(plan, ladder, sandbox)


def _go_on(plan: Plan, ladder: Ladder, sandbox: Sandbox) -> int:
    options = plan.options
    left_out = skipped(plan.tasks, sandbox)
    todo = [task for task in plan.tasks if task.instance_id not in left_out and not plan.is_done(task)]
    _announce(plan, todo, left_out)
    # What is done needs no image.
    ready = make_ready(sandbox, {task.environment for task in todo}, options.cache, say)
    run_config.write(plan, ladder, sandbox, left_out, ready)
    open_tasks = _close(plan, todo, ready)
    todo = [task for task in todo if task.instance_id not in open_tasks]
    bounded = Bounded(sandbox, config.sandboxes_at_once(options.test_jobs))
    answered = served.so_far(plan.run.config()["served"], _done(plan))
    try:
        open_tasks |= _run_all(plan, ladder, bounded, todo, answered)
    finally:
        run_config.add_what_came(plan, bounded, ready, answered)
    return _end(plan, open_tasks)


def _close(plan: Plan, todo: Sequence[Task], ready: Ready) -> dict[str, str]:
    """Tasks that nobody is asked about, for their environment is broken: id → reason."""
    found = {task.instance_id: ready.broken[task.environment] for task in todo if task.environment in ready.broken}
    for instance_id, why in found.items():
        plan.run.journal(instance_id).append("not_measured", reason=why)
    return found


def _announce(plan: Plan, todo: Sequence[Task], skipped: Mapping[str, str]) -> None:
    names = ", ".join(rung.name for rung in plan.rungs if rung.name) or "no model"
    done = len(plan.tasks) - len(skipped) - len(todo)
    say(
        f"Run {plan.run.name}: {counted(len(plan.tasks), 'task')} of {plan.benchmark.name}, "
        f"agent {plan.options.agent}, {names}, tries {plan.tries}"
        + (f"; {done} done before" if done else "")
        + (f"; {len(skipped)} skipped" if skipped else "")
        + (f"; played again from {plan.recording.run.name}" if plan.recording else "")
        + plan.without
    )
    for why in sorted(set(skipped.values())):
        say(f"  skipped {sum(reason == why for reason in skipped.values())}: {why}")


def _run_all(
    plan: Plan, ladder: Ladder, sandbox: Bounded, todo: Sequence[Task], answered: served.Served
) -> dict[str, str]:
    """Returns the tasks that could not be measured: id → reason."""
    options, stop = plan.options, Stop()
    # A budget is the run's, or its grid's: what an earlier go spent is spent.
    budget = Budget(options.max_cost, sum(map(committed_in, (plan.run, *plan.beside))))
    calls = config.tasks_in_flight(options.jobs)
    executor: Executor = registry.module("executors", options.executor).make(
        Context(options=options, workers=calls, stop=stop)
    )
    work = Solving(
        plan=plan,
        ladder=ladder,
        sandbox=sandbox,
        desk=executor.share(Desk(plan.run, budget, Turns(calls, stop), stop)),
        verdicts=executor.share(cache.Verdicts(options.cache)),
    )
    plausible, open_tasks = 0, dict[str, str]()
    with Progress("harness", len(todo)) as progress:
        for task, result in executor.run(work, todo):
            why = _keep(plan.run, task, result)
            if why:
                open_tasks[task.instance_id] = why
            if isinstance(result, Prediction):
                served.add(answered, result.attempts)
            plausible += isinstance(result, Prediction) and not why and result.chosen.plausible
            progress.step(f"{task.instance_id}: {_state(result, why)}", f"{plausible} plausible, {money(budget.spent)}")
    return open_tasks


def _keep(run: Run, task: Task, result: Prediction | Exception) -> str:
    """Write what is finished; returns why it may not be counted."""
    why, journal = _not_measured(result), run.journal(task.instance_id)
    chat = transcript.markdown(task.instance_id, _state(result, why), journal.lines())
    if isinstance(result, Prediction) and not why:
        run.write_prediction(task.instance_id, prediction_record(result), chat)
    else:
        run.write_chat(task.instance_id, chat)
        journal.append("not_measured", reason=why)
    return why


def _not_measured(result: Prediction | Exception) -> str:
    if isinstance(result, Prediction):
        return result.not_measured
    return str(result) if isinstance(result, NotMeasured) else f"{type(result).__name__}: {result}"


def _state(result: Prediction | Exception, why: str) -> str:
    if why or isinstance(result, Exception):
        return f"not measured: {why}"
    chosen = result.chosen
    state = "plausible" if chosen.plausible else "unverified" if chosen.unverified else "least bad"
    return f"{state}, attempt {chosen.number} of {len(result.attempts)} ({chosen.model})"


def _end(plan: Plan, open_tasks: Mapping[str, str]) -> int:
    if any(rung.name for rung in plan.rungs):
        print(table.ladder(_ladder(plan), scored=False) + "\n")
    for change in served.changes(plan.run.config()["served"]):
        print(change)
    print(f"Predictions: {plan.run.folder}")
    if not open_tasks:
        return program.DONE
    print(f"Not measured: {len(open_tasks)} of {len(plan.tasks)} tasks; the same command does them again.")
    # Where one question of a run that is played again differs, most do: the first says why.
    shown = 1 if plan.recording else SHOWN
    for instance_id, why in sorted(open_tasks.items())[:shown]:
        print(f"  {instance_id}: {why}")
    if len(open_tasks) > shown:
        print(f"  and {len(open_tasks) - shown} more")
    return program.NOT_MEASURED


def _ladder(plan: Plan) -> list[dict[str, Any]]:
    """What each rung brought to these tasks."""
    return rungs.ladder(_done(plan), (), [rung.title for rung in plan.rungs])


def _done(plan: Plan) -> list[dict[str, Any]]:
    records = (plan.run.prediction(task.instance_id) for task in plan.tasks)
    return [record for record in records if record]
