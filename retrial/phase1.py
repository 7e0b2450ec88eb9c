"""harness.py: run the agent over the tasks and write predictions."""

from __future__ import annotations

import datetime
import platform
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from retrial import __version__, cache, config, models, program, registry
from retrial.attempts import Prediction
from retrial.chat import Budget
from retrial.config import HarnessOptions
from retrial.errors import NotMeasured
from retrial.plan import FREE, Plan, identity, make_ladder, make_plan, refuse_other_identity, settings
from retrial.progress import Progress, say
from retrial.protocols import Context, Executor, Sandbox
from retrial.records import chat_markdown, prediction_record
from retrial.sandboxes import Bounded, Ready, choose, make_ready, skipped
from retrial.solve import Ladder, solve
from retrial.store import Run
from retrial.table import money
from retrial.types import Check, Environment, Task
from retrial.visible import VisibleCheck
from retrial.words import counted

DESCRIPTION = "Run a code-editing agent over tasks until an edit is plausible, and write predictions."


def main(argv: Sequence[str]) -> int:
    options, _ = config.parse(HarnessOptions, argv, DESCRIPTION)
    plan = make_plan(options, argv)
    environments = {task.environment for task in plan.tasks}
    if options.dry_run:
        return _dry_run(plan, choose(options.sandbox, environments, Context(options=options), say))
    ladder, executor = make_ladder(plan), _executor(options)
    sandbox = choose(options.sandbox, environments, Context(options=options), say)
    left_out = skipped(plan.tasks, sandbox)
    refuse_other_identity(plan)
    todo = [task for task in plan.tasks if task.instance_id not in left_out and not _done(plan, task)]
    _announce(plan, todo, left_out)
    # What is done needs no image.
    ready = make_ready(sandbox, {task.environment for task in todo}, options.cache, say)
    _write_config(plan, sandbox, left_out, ready)
    open_tasks = _close(plan, todo, ready)
    todo = [task for task in todo if task.instance_id not in open_tasks]
    bounded = Bounded(sandbox, config.sandboxes_at_once(options.test_jobs))
    try:
        open_tasks |= _run_all(plan, ladder, executor, bounded, todo)
    finally:
        _add_environments(plan, bounded, ready)
    return _end(plan, open_tasks)


def _close(plan: Plan, todo: Sequence[Task], ready: Ready) -> dict[str, str]:
    """Tasks that nobody is asked about, for their environment is broken: id → reason."""
    found = {task.instance_id: ready.broken[task.environment] for task in todo if task.environment in ready.broken}
    for instance_id, why in found.items():
        plan.run.journal(instance_id).append("not_measured", reason=why)
    return found


def _done(plan: Plan, task: Task) -> bool:
    return plan.run.has_prediction(task.instance_id)


def _write_config(plan: Plan, sandbox: Sandbox, skipped: Mapping[str, str], ready: Ready) -> None:
    old = plan.run.config() if plan.run.exists() else {}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    selected = sorted({*old.get("selected", ()), *(task.instance_id for task in plan.tasks)})
    still = {
        key: why for key, why in old.get("skipped", {}).items() if not any(key == t.instance_id for t in plan.tasks)
    }
    options = plan.options
    plan.run.write_config(
        {
            "program": "harness.py",
            "run": plan.run.name,
            "command": shlex.join(["python", "harness.py", *plan.argv]),
            "started": now,
            "first_started": old.get("first_started", now),
            "identity": identity(plan),
            "provenance": dict(plan.benchmark.provenance),
            "model_name_or_path": plan.model_name,
            "selected": selected,
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
            "versions": {"retrial": __version__, "python": platform.python_version(), "system": platform.platform()},
        }
    )


def _add_environments(plan: Plan, sandbox: Bounded, ready: Ready) -> None:
    """Images that hold a task's tree were brought as they were needed: only now is it known which."""
    stored = plan.run.config()
    known = {environment.name for environment in ready.versions}
    brought = {name: what for name, what in sandbox.record().items() if name not in known}
    used = {**_environments(stored), **brought}
    plan.run.write_config({**stored, "sandbox": {**stored["sandbox"], "environments": used}})


def _environments(stored: Mapping[str, Any]) -> Mapping[str, object]:
    environments: Mapping[str, object] = stored.get("sandbox", {}).get("environments", {})
    return environments


def _announce(plan: Plan, todo: Sequence[Task], skipped: Mapping[str, str]) -> None:
    names = ", ".join(name for name, _ in plan.rungs if name) or "no model"
    done = len(plan.tasks) - len(skipped) - len(todo)
    say(
        f"Run {plan.run.name}: {counted(len(plan.tasks), 'task')} of {plan.benchmark.name}, "
        f"agent {plan.options.agent}, {names}, tries {plan.tries}"
        + (f"; {done} done before" if done else "")
        + (f"; {len(skipped)} skipped" if skipped else "")
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


def _run_all(plan: Plan, ladder: Ladder, executor: Executor, sandbox: Bounded, todo: Sequence[Task]) -> dict[str, str]:
    """Returns the tasks that could not be measured: id → reason."""
    # A budget is the run's: what an earlier go spent is spent.
    budget = Budget(plan.options.max_cost, plan.run.spent().cost or 0.0)
    verdicts = cache.Verdicts(plan.options.cache)

    def work(task: Task) -> Prediction:
        # Before anything is paid for.
        if plan.options.visible_tests != "none":
            sandbox.have(task.environment)
        check = VisibleCheck(task, partial(_visible, plan, task), sandbox, verdicts)
        return solve(task, ladder, check, plan.run.journal(task.instance_id), budget)

    plausible, open_tasks = 0, dict[str, str]()
    with Progress("harness", len(todo)) as progress:
        for task, result in executor.run(work, todo):
            why = _keep(plan.run, task, result)
            if why:
                open_tasks[task.instance_id] = why
            plausible += isinstance(result, Prediction) and not why and result.chosen.plausible
            progress.step(_line(task, result, why), f"{plausible} plausible, {money(budget.spent)}")
    return open_tasks


def _visible(plan: Plan, task: Task, edited: Iterable[str], most: int | None) -> Check | str:
    check = plan.benchmark.visible(task.instance_id, edited, most)
    if isinstance(check, str):
        return check
    return replace(check, timeout=plan.options.test_timeout_seconds or check.timeout)


def _keep(run: Run, task: Task, result: Prediction | Exception) -> str:
    """Write what is finished; returns why it may not be counted."""
    if isinstance(result, Prediction) and not result.not_measured:
        run.write_prediction(task.instance_id, prediction_record(result), chat_markdown(result))
        return ""
    if isinstance(result, Prediction):
        why = result.not_measured
    else:
        why = str(result) if isinstance(result, NotMeasured) else f"{type(result).__name__}: {result}"
    run.journal(task.instance_id).append("not_measured", reason=why)
    return why


def _line(task: Task, result: Prediction | Exception, why: str) -> str:
    if why or isinstance(result, Exception):
        return f"{task.instance_id}: not measured: {why}"
    chosen = result.chosen
    state = "plausible" if chosen.plausible else "unverified" if chosen.unverified else "least bad"
    return f"{task.instance_id}: {state}, attempt {chosen.number} of {len(result.attempts)} ({chosen.model})"


def _end(plan: Plan, open_tasks: Mapping[str, str]) -> int:
    print(f"Predictions: {plan.run.folder}")
    if not open_tasks:
        return program.DONE
    print(f"Not measured: {len(open_tasks)} of {len(plan.tasks)} tasks; the same command does them again.")
    for instance_id, why in sorted(open_tasks.items())[:10]:
        print(f"  {instance_id}: {why}")
    return program.NOT_MEASURED


def _dry_run(plan: Plan, sandbox: Sandbox) -> int:
    from retrial.estimate import most_it_can_cost

    left_out = skipped(plan.tasks, sandbox)
    left = [task for task in plan.tasks if task.instance_id not in left_out and not _done(plan, task)]
    print(f"Run {plan.run.name} would do {counted(len(left), 'task')} of {plan.benchmark.name}{_settled(plan)}:")
    for task in plan.tasks:
        state = left_out.get(task.instance_id) or ("done before" if _done(plan, task) else "")
        print(f"  {task.instance_id}" + (f" ({state})" if state else ""))
    _print_environments(sandbox, {task.environment for task in left})
    costs = {}
    for name, _ in plan.rungs:
        price = models.price_of(name, settings(plan.options)) if name else FREE
        costs[name or "none"] = most_it_can_cost(plan.options, plan.tries, left, price)
        print(f"Model {name or 'none'}: at most {money(costs[name or 'none'])}")
    known = [cost for cost in costs.values() if cost is not None]
    print(f"All together: at most {money(sum(known) if len(known) == len(costs) else None)}. Nothing was asked.")
    return program.DONE


def _print_environments(sandbox: Sandbox, environments: Iterable[Environment]) -> None:
    by_name = sorted(environments, key=lambda each: each.name)
    for environment in (each for each in by_name if not each.tree):
        print(f"Environment {environment.name} on {sandbox.name}: {sandbox.state(environment)}")
    images = [sandbox.state(each) for each in by_name if each.tree]
    if images:
        here = sum(state.startswith("ready") for state in images)
        print(f"Images of tasks: {here} of {len(images)} are here, the others are pulled when they are needed.")
