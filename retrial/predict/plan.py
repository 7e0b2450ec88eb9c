"""What is settled before the first call: tasks, models, the run's name."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from retrial import agents, models, registry
from retrial.benchmarks import open_benchmark, select_tasks, shards
from retrial.benchmarks.shards import Shard
from retrial.chat import Reply, Request
from retrial.errors import UsageError
from retrial.formats import defaults
from retrial.models.prices import Price, parse_price
from retrial.options import NEARBY, HarnessOptions, ModelChoice, ModelOptions, ModelSettings
from retrial.predict import prior_runs
from retrial.predict.ladder import Ladder, Rung
from retrial.predict.metering import recording as run_recording
from retrial.predict.metering.recording import RecordedModel, Recording
from retrial.protocols import AgentContext, Benchmark, Context, Model
from retrial.store.runs import Run, file_name
from retrial.system import paths
from retrial.system.secrets import redact_by_name
from retrial.types import Task

FREE = Price(prompt=0.0, completion=0.0)


class NoModel:
    """For agents that ask nobody, or on their own."""

    def __init__(self, name: str = "none") -> None:
        self.name = name

    def complete(self, request: Request) -> Reply:
        raise AssertionError("this agent asks no model")


@dataclass(frozen=True, slots=True, kw_only=True)
class RungPlan:
    """One model of the ladder, before it is opened."""

    name: str
    """Empty for none."""
    edit_format: str
    """Empty where it is not for us to say."""
    options: ModelOptions
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Which options the file gives this model alone."""

    @property
    def title(self) -> str:
        return f"{self.name}:{self.edit_format}" if self.edit_format else self.name or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that is settled before the first call."""

    options: HarnessOptions
    argv: tuple[str, ...]
    benchmark: Benchmark
    tasks: tuple[Task, ...]
    rungs: tuple[RungPlan, ...]
    """In the ladder's order."""
    run: Run
    prior: tuple[str, ...] = ()
    """Runs whose plausible and unverified edits are left alone."""
    excluded_by_prior: int = 0
    """How many of the tasks asked for were left out for that."""
    grid: str = ""
    """The grid that this run belongs to."""
    group_siblings: tuple[Run, ...] = ()
    """Its other runs: they share the budget."""
    recording: Recording | None = None
    """The run that is played again."""
    shard: Shard | None = None
    """Which part of a whole it is."""

    @property
    def tries(self) -> int:
        """An agent without a model has nothing to try again with."""
        tries = self.options.tries or self.benchmark.default_tries
        return 1 if _model_of(self.options.agent) == "none" else tries

    @property
    def spends(self) -> bool:
        """The agent asks on its own, and says afterwards what that cost."""
        return bool(getattr(registry.module("agents", self.options.agent), "SPENDS", False))

    @property
    def command(self) -> str:
        """As it may be shown."""
        return shlex.join(["python", "harness.py", *self.argv])

    @property
    def exclusions_note(self) -> str:
        """What of the tasks asked for is left out, for people."""
        settled = (
            f"; {self.excluded_by_prior} left out, plausible or unverified in {', '.join(self.prior)}"
            if self.prior
            else ""
        )
        return (self.shard.note if self.shard else "") + settled

    @property
    def ids(self) -> set[str]:
        return {task.instance_id for task in self.tasks}

    @property
    def model_name(self) -> str:
        """model_name_or_path."""
        return self.options.name or "--".join([self.options.agent, *_names(self.rungs)])


def make_plan(options: HarnessOptions, argv: Sequence[str] = ()) -> Plan:
    """Raises: UsageError for anything that cannot be."""
    agents.refuse_misplaced(options)
    # Opened here too, so that a wrong name is refused on a machine without a sandbox.
    registry.module("executors", options.executor)
    shard = shards.parse(options.shard)
    recording = run_recording.named(choice.name for choice in options.model)
    benchmark = open_benchmark(Context(options=options, name=options.benchmark))
    if benchmark.visible_is_hidden and options.visible_tests != NEARBY:
        raise UsageError(f"--visible-tests is for repositories: {benchmark.name} shows its acceptance tests.")
    tasks, shard = _selected(options, benchmark, shard)
    rungs = _rungs(options, recording)
    name = options.run or _run_name(benchmark, options, rungs, recording)
    run = Run(paths.home(), shard.name(name) if shard else name)
    if recording is not None and run.name == recording.run.name:
        raise UsageError(f"Run '{run.name}' cannot be played again into itself: name another run with --run.")
    prior = prior_runs.runs(options.prior, benchmark, run)
    # Of the whole: what is left of another shard is no reason to refuse this one.
    left = {task.instance_id for task in prior_runs.remaining_tasks(prior, tasks)}
    part = shard.part(tasks) if shard else tasks
    return Plan(
        options=options,
        argv=tuple(map(redact_by_name, agents.as_kept(argv))),
        benchmark=benchmark,
        tasks=tuple(task for task in part if task.instance_id in left),
        rungs=rungs,
        run=run,
        prior=tuple(each.run.name for each in prior),
        excluded_by_prior=sum(prior_runs.has_usable_edit(prior, task) for task in part),
        recording=recording,
        shard=shard,
    )


def _selected(
    options: HarnessOptions, benchmark: Benchmark, shard: Shard | None
) -> tuple[tuple[Task, ...], Shard | None]:
    """All tasks of the whole, and what part of it this is."""
    how: dict[str, Any] = {
        "names": options.task,
        "languages": options.filter_category,
        "sample_size": options.sample_size,
        "seed": options.seed,
    }
    tasks = select_tasks(benchmark.tasks(), **how)
    return tasks, shards.of_whole(shard, tasks, how) if shard else None


def _run_name(
    benchmark: Benchmark, options: HarnessOptions, rungs: Sequence[RungPlan], recording: Recording | None
) -> str:
    if recording is not None:
        return f"replay--{recording.run.name}"
    return "--".join([benchmark.name, options.agent, *_names(rungs)])


def with_models(plan: Plan, options: HarnessOptions) -> Plan:
    """The same tasks for other models: a run of its own, named by these options."""
    return replace(plan, options=options, rungs=_rungs(options), run=Run(paths.home(), options.run))


def _model_of(agent: str) -> str:
    """What an agent needs of a model: it is `asked` through us, only `named`, or there is `none`."""
    return str(getattr(registry.module("agents", agent), "MODEL", "asked"))


def _names(rungs: Sequence[RungPlan]) -> list[str]:
    return [file_name(rung.name) for rung in rungs if rung.name]


def _rungs(options: HarnessOptions, recording: Recording | None = None) -> tuple[RungPlan, ...]:
    needs = _model_of(options.agent)
    if recording is not None:
        if needs != "asked":
            raise UsageError(f"Agent '{options.agent}' asks nobody through us: no recorded run can answer it.")
        return tuple(_planned(options, choice, "auto") for choice in recording.choices)
    nobody = ModelChoice(name="")
    if needs == "none":
        if options.model:
            raise UsageError(f"Agent '{options.agent}' asks no model: leave -m out.")
        return (RungPlan(name="", edit_format="", options=options.of(nobody)),)
    choices = options.models if needs == "asked" else options.model or (nobody,)
    default = _default_format(options)
    if needs == "named" and default == "auto":
        default = ""  # an agent of its own has its own way of choosing
    return tuple(_planned(options, choice, default) for choice in choices)


def _planned(options: HarnessOptions, choice: ModelChoice, default_format: str) -> RungPlan:
    name, edit_format = defaults.split(choice.name, default_format)
    return RungPlan(name=name, edit_format=edit_format, options=options.of(choice), overrides=choice.overrides)


def _default_format(options: HarnessOptions) -> str:
    formats = options.edit_format or ("auto",)
    for name in formats:
        if name != "auto":
            registry.module("formats", name)
    if len(formats) > 1:
        raise UsageError("Several --edit-format go with --grid; in a ladder each model has its own: -m NAME:FORMAT.")
    return formats[0]


def make_ladder(plan: Plan) -> Ladder:
    """Raises: UsageError when a model cannot be asked, before anything is spent."""
    options = plan.options
    return Ladder(
        rungs=tuple(_rung(plan, rung) for rung in plan.rungs),
        tries=plan.tries,
        seconds=options.timeout_seconds,
        name=plan.model_name,
        max_cost=options.max_cost_per_task,
    )


def _rung(plan: Plan, planned: RungPlan) -> Rung:
    options = options_of(plan, planned)
    context = AgentContext(
        options=options, benchmark=plan.benchmark, model=planned.name, edit_format=planned.edit_format
    )
    price = price_of(plan, planned)
    if price is None and planned.name:
        _refuse_a_limit(options, planned.name)
    return Rung(
        name=planned.name or "none",
        model=_model(plan, planned),
        agent=registry.module("agents", options.agent).make(context),
        edit_format=planned.edit_format,
        price=price,
        options=planned.options,
        spends=plan.spends,
    )


def _model(plan: Plan, planned: RungPlan) -> Model:
    if plan.recording is not None:
        return RecordedModel(planned.name, plan.recording)
    if _model_of(plan.options.agent) == "asked":
        return models.open_model(planned.name, settings(planned))
    return NoModel(planned.name or "none")


def options_of(plan: Plan, planned: RungPlan) -> HarnessOptions:
    """The program's, as they are for this model."""
    return replace(plan.options, **asdict(planned.options))


def _refuse_a_limit(options: HarnessOptions, name: str) -> None:
    limits = {"--max-cost": options.max_cost, "--max-cost-per-task": options.max_cost_per_task}
    for flag, limit in limits.items():
        if limit is not None:
            raise UsageError(f"{flag} needs a price, and none is known for '{name}': give one with --price IN/OUT.")


def price_of(plan: Plan, planned: RungPlan) -> Price | None:
    """Return the price of a rung: no model costs nothing; the price of an unnamed model is unknown."""
    nobody = _model_of(plan.options.agent) == "none"
    return FREE if nobody else models.price_of(planned.name, settings(planned))


def settings(planned: RungPlan) -> ModelSettings:
    """What its model part is made from."""
    options = planned.options
    effort = {"reasoning_effort": options.reasoning_effort} if options.reasoning_effort else {}
    return ModelSettings(
        api_base=options.api_base or None,
        price=parse_price(options.price) if options.price else None,
        cache=paths.cache(),
        extra={**effort, **json.loads(options.extra_body or "{}")},
        try_seconds=options.request_timeout_seconds,
    )
