"""What is settled before the first call: tasks, models, the run's name and identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from retrial import config, models, past, paths, registry
from retrial.attempts import Reply, Request
from retrial.benchmarks import open_benchmark
from retrial.config import HarnessOptions
from retrial.errors import UsageError
from retrial.models import ModelSettings
from retrial.past import Past
from retrial.prices import Price, parse_price
from retrial.protocols import Benchmark, Context
from retrial.selection import select_tasks
from retrial.solve import Ladder, Rung
from retrial.store import Run, file_name, find_run
from retrial.types import Task, fingerprint

FREE = Price(prompt=0.0, completion=0.0)


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
    prior: tuple[str, ...] = ()
    """Runs whose plausible and unverified edits are left alone."""
    settled: int = 0
    """How many of the tasks asked for were left out for that."""

    @property
    def tries(self) -> int:
        """An agent without a model has nothing to try again with."""
        asks = any(name for name, _ in self.rungs)
        return (self.options.tries or self.benchmark.default_tries) if asks else 1

    @property
    def model_name(self) -> str:
        """model_name_or_path."""
        return self.options.name or "--".join([self.options.agent, *_names(self.rungs)])


def make_plan(options: HarnessOptions, argv: Sequence[str] = ()) -> Plan:
    """Raises: UsageError for anything that cannot be."""
    benchmark = open_benchmark(Context(options=options, name=options.benchmark))
    if benchmark.visible_is_hidden and options.visible_tests != config.NEARBY:
        raise UsageError(f"--visible-tests is for repositories: {benchmark.name} shows its acceptance tests.")
    tasks = select_tasks(
        benchmark.tasks(),
        names=options.task,
        languages=options.filter_category,
        sample_size=options.sample_size,
        seed=options.seed,
    )
    rungs = _rungs(options)
    run = Run(paths.home(), options.run or "--".join([benchmark.name, options.agent, *_names(rungs)]))
    prior = _prior_runs(options, benchmark, run)
    left = _left_by(prior, tasks)
    return Plan(
        options=options,
        argv=tuple(argv),
        benchmark=benchmark,
        tasks=left,
        rungs=rungs,
        run=run,
        prior=tuple(each.run.name for each in prior),
        settled=sum(_settled(prior, task) for task in tasks),
    )


def _prior_runs(options: HarnessOptions, benchmark: Benchmark, run: Run) -> tuple[Past, ...]:
    found = []
    for text in options.prior:
        prior = find_run(paths.home(), text)
        if prior is None:
            raise UsageError(f"--prior takes runs of harness.py, and {text} is a file from elsewhere.")
        if prior.name == run.name:
            raise UsageError(f"Run '{run.name}' cannot be its own --prior: name another run with --run.")
        found.append(past.read(prior))
    past.refuse_other_benchmark(found, benchmark.provenance["source"], benchmark.provenance["digest"])
    return tuple(found)


def _left_by(prior: Sequence[Past], tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """What prior runs were asked for and have no plausible (nor unverified) edit of; everything without prior runs."""
    if not prior:
        return tasks
    known = [task for task in tasks if any(task.instance_id in each.selected for each in prior)]
    if not known:
        raise UsageError(f"No task is left: none of them is in {', '.join(each.run.name for each in prior)}.")
    return tuple(task for task in known if not _settled(prior, task))


def _settled(prior: Sequence[Past], task: Task) -> bool:
    records = [each.records[task.instance_id] for each in prior if task.instance_id in each.records]
    return any(past.settled(record) for record in records)


def _names(rungs: Sequence[tuple[str, str]]) -> list[str]:
    return [file_name(name) for name, _ in rungs if name]


def _rungs(options: HarnessOptions) -> tuple[tuple[str, str], ...]:
    if not getattr(registry.module("agents", options.agent), "ASKS_MODEL", True):
        if options.model:
            raise UsageError(f"Agent '{options.agent}' asks no model: leave -m out.")
        return (("", ""),)
    formats = options.edit_format or ("auto",)
    for name in formats:
        if name != "auto":
            registry.module("edits", name)
    if len(formats) > 1:
        raise UsageError("Several --edit-format go with --grid; in a ladder each model has its own: -m NAME:FORMAT.")
    return tuple(models.split(text, formats[0]) for text in options.models)


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
    wanted = settings(plan.options)
    price = models.price_of(name, wanted)
    if price is None and plan.options.max_cost is not None:
        raise UsageError(f"--max-cost needs a price, and none is known for '{name}': give one with --price IN/OUT.")
    model = models.open_model(name, wanted)
    return Rung(name=name, model=model, agent=agent, edit_format=edit_format, price=price)


def settings(options: HarnessOptions) -> ModelSettings:
    price = parse_price(options.price) if options.price else None
    return ModelSettings(api_base=options.api_base or None, price=price, cache=options.cache)


def identity(plan: Plan) -> dict[str, Any]:
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
        **({} if plan.benchmark.visible_is_hidden else {"visible_tests": options.visible_tests}),
        "editor_files": "hidden" if options.hide_editor_files else "shown",
        "prompts": fingerprint(_prompts(plan))[:16],
    }


def _prompts(plan: Plan) -> list[str]:
    """Every text of ours that a model may read."""
    agent = registry.module("agents", plan.options.agent)
    formats = [registry.module("edits", edit_format).make().prompt for _, edit_format in plan.rungs if edit_format]
    return [*getattr(agent, "PROMPTS", ()), *formats]


def refuse_other_identity(plan: Plan) -> None:
    if not plan.run.exists():
        return
    stored, new = plan.run.config(), identity(plan)
    if stored.get("program") != "harness.py":
        raise UsageError(f"Run '{plan.run.name}' holds predictions made elsewhere: name another run with --run.")
    old = stored.get("identity", {})
    changed = [f"{key}: {old.get(key)} then, {value} now" for key, value in new.items() if old.get(key) != value]
    if changed:
        raise UsageError(
            f"Run '{plan.run.name}' was started with other settings ({'; '.join(changed)}): "
            "use them again, or name another run with --run."
        )
