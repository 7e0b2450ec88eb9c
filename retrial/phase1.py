"""harness.py: run the agent over the tasks and write predictions."""

from __future__ import annotations

import datetime
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrial import __version__, config, models, paths, program, registry
from retrial.benchmarks import open_benchmark
from retrial.chat import Budget
from retrial.config import HarnessOptions
from retrial.errors import NotMeasured, UsageError
from retrial.models import ModelSettings
from retrial.prices import Price, parse_price
from retrial.progress import Progress, say
from retrial.protocols import Benchmark, Context, Executor, Sandbox
from retrial.records import chat_markdown, prediction_record
from retrial.sandboxes import Bounded, choose, make_ready, skipped
from retrial.selection import select_tasks
from retrial.solve import Ladder, Rung, VisibleCheck, solve
from retrial.store import Run, file_name
from retrial.table import money
from retrial.types import Check, Prediction, Reply, Request, Task, fingerprint

FREE = Price(prompt=0.0, completion=0.0)
DESCRIPTION = "Run a code-editing agent over tasks until an edit is plausible, and write predictions."


class NoModel:
    """For agents that ask nobody."""

    name = "none"

    def complete(self, request: Request) -> Reply:
        raise AssertionError("this agent asks no model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is settled before the first call."""

    options: HarnessOptions
    argv: tuple[str, ...]
    benchmark: Benchmark
    tasks: tuple[Task, ...]
    rungs: tuple[tuple[str, str], ...]
    """(model, edit format) in the ladder's order; one with empty names for agents without a model."""
    run: Run

    @property
    def tries(self) -> int:
        """An agent without a model has nothing to try again with."""
        asks = any(name for name, _ in self.rungs)
        return (self.options.tries or self.benchmark.default_tries) if asks else 1

    @property
    def model_name(self) -> str:
        """model_name_or_path."""
        return self.options.name or "--".join([self.options.agent, *_names(self.rungs)])


def main(argv: Sequence[str]) -> int:
    options, _ = config.parse(HarnessOptions, argv, DESCRIPTION)
    plan = make_plan(options, argv)
    environments = {task.environment for task in plan.tasks}
    if options.dry_run:
        return _dry_run(plan, choose(options.sandbox, environments, Context(options=options), say))
    ladder, executor = make_ladder(plan), _executor(options)
    sandbox = choose(options.sandbox, environments, Context(options=options), say)
    left_out = skipped(plan.tasks, sandbox)
    here = {task.environment for task in plan.tasks if task.instance_id not in left_out}
    _refuse_other_identity(plan)
    todo = [task for task in plan.tasks if task.instance_id not in left_out and not _done(plan, task)]
    _announce(plan, todo, left_out)
    if todo:
        make_ready(sandbox, here, options.cache, say)
    _write_config(plan, sandbox, left_out, {environment.name: sandbox.digest(environment) for environment in here})
    return _run_all(plan, ladder, executor, Bounded(sandbox, config.sandboxes_at_once(options.test_jobs)), todo)


def make_plan(options: HarnessOptions, argv: Sequence[str] = ()) -> Plan:
    """Raises: UsageError for anything that cannot be."""
    benchmark = open_benchmark(Context(options=options, name=options.benchmark))
    tasks = select_tasks(
        benchmark.tasks(),
        names=options.task,
        languages=options.filter_category,
        sample_size=options.sample_size,
        seed=options.seed,
    )
    rungs = _rungs(options)
    run = Run(paths.home(), options.run or "--".join([benchmark.name, options.agent, *_names(rungs)]))
    return Plan(options=options, argv=tuple(argv), benchmark=benchmark, tasks=tasks, rungs=rungs, run=run)


def _names(rungs: Sequence[tuple[str, str]]) -> list[str]:
    return [file_name(name) for name, _ in rungs if name]


def _done(plan: Plan, task: Task) -> bool:
    return plan.run.has_prediction(task.instance_id)


def _rungs(options: HarnessOptions) -> tuple[tuple[str, str], ...]:
    if not getattr(registry.module("agents", options.agent), "ASKS_MODEL", True):
        if options.model:
            raise UsageError(f"Agent '{options.agent}' asks no model: leave -m out.")
        return (("", ""),)
    if options.edit_format != "auto":
        registry.module("edits", options.edit_format)
    return tuple(models.split(text, options.edit_format) for text in options.models)


def make_ladder(plan: Plan) -> Ladder:
    """Raises: UsageError when a model cannot be asked, before anything is spent."""
    options = plan.options
    return Ladder(
        rungs=tuple(_rung(plan, name, edit_format) for name, edit_format in plan.rungs),
        tries=plan.tries,
        seed=options.seed,
        temperature=options.temperature,
        retry_temperature=options.retry_temperature,
        max_tokens=options.max_tokens,
        seconds=options.timeout_seconds,
        name=plan.model_name,
    )


def _rung(plan: Plan, name: str, edit_format: str) -> Rung:
    context = Context(options=plan.options, benchmark=plan.benchmark, edit_format=edit_format)
    agent = registry.module("agents", plan.options.agent).make(context)
    if not name:
        return Rung(name="none", model=NoModel(), agent=agent, edit_format="", price=FREE)
    settings = _settings(plan.options)
    price = models.price_of(name, settings)
    if price is None and plan.options.max_cost is not None:
        raise UsageError(f"--max-cost needs a price, and none is known for '{name}': give one with --price IN/OUT.")
    model = models.open_model(name, settings)
    return Rung(name=name, model=model, agent=agent, edit_format=edit_format, price=price)


def _settings(options: HarnessOptions) -> ModelSettings:
    price = parse_price(options.price) if options.price else None
    return ModelSettings(api_base=options.api_base or None, price=price, cache=options.cache)


def _write_config(plan: Plan, sandbox: Sandbox, skipped: Mapping[str, str], digests: Mapping[str, str]) -> None:
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
            "identity": _identity(plan),
            "model_name_or_path": plan.model_name,
            "selected": selected,
            "skipped": {**still, **skipped},
            "sandbox": {**sandbox.describe(), "environments": dict(digests)},
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


def _identity(plan: Plan) -> dict[str, Any]:
    """What may not change between two goes at one run."""
    options, provenance = plan.options, plan.benchmark.provenance
    return {
        "benchmark": provenance["source"],
        "benchmark_digest": provenance["digest"],
        "agent": options.agent,
        "model_name_or_path": plan.model_name,
        "models": [f"{name}:{edit_format}" if name else "none" for name, edit_format in plan.rungs],
        "tries": plan.tries,
        "turns": options.turns,
        "reflections": options.reflections,
        "seed": options.seed,
        "temperature": options.temperature,
        "retry_temperature": options.retry_temperature,
        "max_tokens": options.max_tokens,
        "api_base": options.api_base,
        "prompts": fingerprint(_prompts(plan))[:16],
    }


def _prompts(plan: Plan) -> list[str]:
    """Every text of ours that a model may read."""
    agent = registry.module("agents", plan.options.agent)
    formats = [registry.module("edits", edit_format).make().prompt for _, edit_format in plan.rungs if edit_format]
    return [*getattr(agent, "PROMPTS", ()), *formats]


def _refuse_other_identity(plan: Plan) -> None:
    if not plan.run.exists():
        return
    stored, new = plan.run.config(), _identity(plan)
    if stored.get("program") != "harness.py":
        raise UsageError(f"Run '{plan.run.name}' holds predictions made elsewhere: name another run with --run.")
    old = stored.get("identity", {})
    changed = [f"{key}: {old.get(key)} then, {value} now" for key, value in new.items() if old.get(key) != value]
    if changed:
        raise UsageError(
            f"Run '{plan.run.name}' was started with other settings ({'; '.join(changed)}): "
            "use them again, or name another run with --run."
        )


def _announce(plan: Plan, todo: Sequence[Task], skipped: Mapping[str, str]) -> None:
    names = ", ".join(name for name, _ in plan.rungs if name) or "no model"
    done = len(plan.tasks) - len(skipped) - len(todo)
    say(
        f"Run {plan.run.name}: {len(plan.tasks)} tasks of {plan.benchmark.name}, agent {plan.options.agent}, {names}, "
        f"tries {plan.tries}"
        + (f"; {done} done before" if done else "")
        + (f"; {len(skipped)} skipped" if skipped else "")
    )
    for why in sorted(set(skipped.values())):
        say(f"  skipped {sum(reason == why for reason in skipped.values())}: {why}")


def _executor(options: HarnessOptions) -> Executor:
    context = Context(options=options, workers=config.tasks_in_flight(options.jobs))
    executor: Executor = registry.module("executors", options.executor).make(context)
    return executor


def _run_all(plan: Plan, ladder: Ladder, executor: Executor, sandbox: Sandbox, todo: Sequence[Task]) -> int:
    # A budget is the run's: what an earlier go spent is spent.
    budget = Budget(plan.options.max_cost, plan.run.spent().cost or 0.0)

    def work(task: Task) -> Prediction:
        check = VisibleCheck(task, _visible(plan, task), sandbox)
        return solve(task, ladder, check, plan.run.journal(task.instance_id), budget)

    plausible, open_tasks = 0, dict[str, str]()
    with Progress("harness", len(todo)) as progress:
        for task, result in executor.run(work, todo):
            why = _keep(plan.run, task, result)
            if why:
                open_tasks[task.instance_id] = why
            plausible += isinstance(result, Prediction) and not why and result.chosen.plausible
            progress.step(_line(task, result, why), f"{plausible} plausible, {money(budget.spent)}")
    return _end(plan, open_tasks)


def _visible(plan: Plan, task: Task) -> Check:
    return replace(plan.benchmark.visible(task.instance_id), timeout=plan.options.test_timeout_seconds)


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
    state = "plausible" if chosen.plausible else "least bad"
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
    print(f"Run {plan.run.name} would do {len(left)} tasks of {plan.benchmark.name}:")
    for task in plan.tasks:
        state = left_out.get(task.instance_id) or ("done before" if _done(plan, task) else "")
        print(f"  {task.instance_id}" + (f" ({state})" if state else ""))
    for environment in sorted({task.environment for task in left}, key=lambda each: each.name):
        print(f"Environment {environment.name} on {sandbox.name}: {sandbox.state(environment)}")
    costs = {}
    for name, _ in plan.rungs:
        price = models.price_of(name, _settings(plan.options)) if name else FREE
        costs[name or "none"] = most_it_can_cost(plan.options, plan.tries, left, price)
        print(f"Model {name or 'none'}: at most {money(costs[name or 'none'])}")
    known = [cost for cost in costs.values() if cost is not None]
    print(f"All together: at most {money(sum(known) if len(known) == len(costs) else None)}. Nothing was asked.")
    return program.DONE
