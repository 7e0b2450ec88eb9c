"""harness.py: run the agent over the tasks and write predictions."""

from __future__ import annotations

import datetime
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from retrial import GRADING, __version__, cache, config, program, recorded, registry, rungs, served, table, transcript
from retrial.agents import about
from retrial.attempts import Prediction
from retrial.budget import Budget, committed_in
from retrial.claims import claimed
from retrial.config import HarnessOptions
from retrial.errors import NotMeasured
from retrial.identity import identity, refuse_other_identity
from retrial.plan import Plan, make_ladder, make_plan, options_of, price_of
from retrial.progress import Progress, say
from retrial.protocols import Context, Executor, Sandbox
from retrial.records import prediction_record
from retrial.sandboxes import Bounded, Ready, choose, make_ready, skipped
from retrial.solve import Ladder, solve
from retrial.stats import total
from retrial.store import Journal, Run
from retrial.table import money
from retrial.types import Check, Environment, Task, fingerprint
from retrial.visible import VisibleCheck
from retrial.words import counted

SHOWN = 10
DESCRIPTION = "Run a code-editing agent over tasks until an edit is plausible, and write predictions."


def main(argv: Sequence[str]) -> int:
    options, _ = config.parse(HarnessOptions, argv, DESCRIPTION, complete=recorded.complete)
    if options.grid:
        from retrial import grid

        return grid.run(options, argv)
    plan = make_plan(options, argv)
    if options.dry_run:
        return _dry_run(plan, sandbox_for(plan))
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
    options, executor = plan.options, _executor(plan.options)
    left_out = skipped(plan.tasks, sandbox)
    todo = [task for task in plan.tasks if task.instance_id not in left_out and not is_done(plan, task)]
    _announce(plan, todo, left_out)
    # What is done needs no image.
    ready = make_ready(sandbox, {task.environment for task in todo}, options.cache, say)
    _write_config(plan, ladder, sandbox, left_out, ready)
    open_tasks = _close(plan, todo, ready)
    todo = [task for task in todo if task.instance_id not in open_tasks]
    bounded = Bounded(sandbox, config.sandboxes_at_once(options.test_jobs))
    answered = served.so_far(plan.run.config()["served"], _done(plan))
    try:
        open_tasks |= _run_all(plan, ladder, executor, bounded, todo, answered)
    finally:
        _add_what_came(plan, bounded, ready, answered)
    return _end(plan, open_tasks)


def _close(plan: Plan, todo: Sequence[Task], ready: Ready) -> dict[str, str]:
    """Tasks that nobody is asked about, for their environment is broken: id → reason."""
    found = {task.instance_id: ready.broken[task.environment] for task in todo if task.environment in ready.broken}
    for instance_id, why in found.items():
        plan.run.journal(instance_id).append("not_measured", reason=why)
    return found


def is_done(plan: Plan, task: Task) -> bool:
    return plan.run.has_prediction(task.instance_id)


def _write_config(plan: Plan, ladder: Ladder, sandbox: Sandbox, skipped: Mapping[str, str], ready: Ready) -> None:
    old = plan.run.config() if plan.run.exists() else {}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    tasks = {task.instance_id for task in plan.tasks}
    still = {key: why for key, why in old.get("skipped", {}).items() if key not in tasks}
    options = plan.options
    plan.run.write_config(
        {
            "program": "harness.py",
            "run": plan.run.name,
            **({"grid": plan.grid} if plan.grid else {}),
            "command": shlex.join(["python", "harness.py", *plan.argv]),
            "started": now,
            "first_started": old.get("first_started", now),
            "identity": identity(plan),
            "agent": about(options.agent, ladder.rungs[0].agent),
            "provenance": dict(plan.benchmark.provenance),
            "model_name_or_path": plan.model_name,
            "selected": sorted({*old.get("selected", ()), *tasks}),
            "prior": list(dict.fromkeys((*old.get("prior", ()), *plan.prior))),
            "skipped": {**still, **skipped},
            "sandbox": {**sandbox.describe(), "environments": {**_environments(old), **ready.record(sandbox)}},
            "limits": {
                "timeout_seconds": options.timeout_seconds,
                "test_timeout_seconds": options.test_timeout_seconds,
            },
            "jobs": config.tasks_in_flight(options.jobs),
            "test_jobs": config.sandboxes_at_once(options.test_jobs),
            "max_cost": options.max_cost,
            "max_cost_per_task": options.max_cost_per_task,
            "served": old.get("served", {}),
            "versions": {"retrial": __version__, "python": platform.python_version(), "system": platform.platform()},
        }
    )


def _add_what_came(plan: Plan, sandbox: Bounded, ready: Ready, answered: served.Served) -> None:
    """Images that hold a task's tree were brought as they were needed: only now is it known which, and who answered."""
    stored = plan.run.config()
    known = {environment.name for environment in ready.versions}
    brought = {name: what for name, what in sandbox.record().items() if name not in known}
    used = {**_environments(stored), **brought}
    sandboxes = {**stored["sandbox"], "environments": used}
    plan.run.write_config({**stored, "sandbox": sandboxes, "served": answered})


def _environments(stored: Mapping[str, Any]) -> Mapping[str, object]:
    environments: Mapping[str, object] = stored.get("sandbox", {}).get("environments", {})
    return environments


def _announce(plan: Plan, todo: Sequence[Task], skipped: Mapping[str, str]) -> None:
    names = ", ".join(rung.name for rung in plan.rungs if rung.name) or "no model"
    done = len(plan.tasks) - len(skipped) - len(todo)
    say(
        f"Run {plan.run.name}: {counted(len(plan.tasks), 'task')} of {plan.benchmark.name}, "
        f"agent {plan.options.agent}, {names}, tries {plan.tries}"
        + (f"; {done} done before" if done else "")
        + (f"; {len(skipped)} skipped" if skipped else "")
        + (f"; played again from {plan.recording.run.name}" if plan.recording else "")
        + _settled(plan)
    )
    for why in sorted(set(skipped.values())):
        say(f"  skipped {sum(reason == why for reason in skipped.values())}: {why}")


def _settled(plan: Plan) -> str:
    return f"; {plan.settled} left out, plausible or unverified in {', '.join(plan.prior)}" if plan.prior else ""


def _executor(options: HarnessOptions) -> Executor:
    context = Context(options=options, workers=config.tasks_in_flight(options.jobs))
    executor: Executor = registry.module("executors", options.executor).make(context)
    return executor


def _run_all(
    plan: Plan, ladder: Ladder, executor: Executor, sandbox: Bounded, todo: Sequence[Task], answered: served.Served
) -> dict[str, str]:
    """Returns the tasks that could not be measured: id → reason."""
    # A budget is the run's, or its grid's: what an earlier go spent is spent.
    budget = Budget(plan.options.max_cost, sum(map(committed_in, (plan.run, *plan.beside))))

    def work(task: Task) -> Prediction:
        # Before anything is paid for.
        if plan.options.visible_tests != "none" and plan.recording is None:
            sandbox.have(task.environment)
        journal = plan.run.journal(task.instance_id)
        return solve(task, ladder, _check(plan, task, sandbox, journal), journal, budget)

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


def _check(plan: Plan, task: Task, sandbox: Sandbox, journal: Journal) -> VisibleCheck:
    options, verdicts = plan.options, cache.Verdicts(plan.options.cache)
    digest = plan.benchmark.provenance["digest"]
    how = fingerprint(digest, options.visible_tests, options.test_timeout_seconds, GRADING)
    known = plan.recording.verdicts(task.instance_id) if plan.recording else None
    return VisibleCheck(task, partial(_visible, plan, task), sandbox, verdicts, journal, how, known)


def _visible(plan: Plan, task: Task, edited: Iterable[str], most: int | None) -> Check | str:
    check = plan.benchmark.visible(task.instance_id, edited, most)
    if isinstance(check, str):
        return check
    return replace(check, timeout=plan.options.test_timeout_seconds or check.timeout)


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


def _dry_run(plan: Plan, sandbox: Sandbox) -> int:
    left_out = skipped(plan.tasks, sandbox)
    left = [task for task in plan.tasks if task.instance_id not in left_out and not is_done(plan, task)]
    print(f"Run {plan.run.name} would do {counted(len(left), 'task')} of {plan.benchmark.name}{_settled(plan)}:")
    for task in plan.tasks:
        state = left_out.get(task.instance_id) or ("done before" if is_done(plan, task) else "")
        print(f"  {task.instance_id}" + (f" ({state})" if state else ""))
    _print_environments(sandbox, {task.environment for task in left})
    costs = most_it_costs(plan, left)
    for name, cost in costs:
        print(f"Model {name}: at most {money(cost)}")
    print(f"All together: at most {money(total(cost for _, cost in costs))}. Nothing was asked.")
    return program.DONE


def most_it_costs(plan: Plan, left: Sequence[Task]) -> list[tuple[str, float | None]]:
    """(Model, the most it can cost), rung by rung."""
    from retrial.estimate import most_it_can_cost

    found = []
    for rung in plan.rungs:
        # What an agent asks on its own, nobody can foresee.
        price = None if plan.spends else price_of(plan, rung)
        found.append((rung.name or "none", most_it_can_cost(options_of(plan, rung), plan.tries, left, price)))
    return found


def _print_environments(sandbox: Sandbox, environments: Iterable[Environment]) -> None:
    by_name = sorted(environments, key=lambda each: each.name)
    for environment in (each for each in by_name if not each.tree):
        print(f"Environment {environment.name} on {sandbox.name}: {sandbox.state(environment)}")
    images = [sandbox.state(each) for each in by_name if each.tree]
    if images:
        here = sum(state.startswith("ready") for state in images)
        print(f"Images of tasks: {here} of {len(images)} are here, the others are pulled when they are needed.")
