"""Groups of runs that are made together, one after the other, on the same tasks: `--grid` and `--repeat`."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrial import __version__, registry
from retrial.errors import UsageError
from retrial.formats import defaults
from retrial.options import HarnessOptions, ModelChoice
from retrial.predict import dry_run
from retrial.predict.manifest import RunManifest, identity, refuse_change
from retrial.predict.metering.recording import PREFIX
from retrial.predict.plan import Plan, make_ladder, make_plan, with_models
from retrial.predict.run import RunEnd, run_plan, sandbox_for
from retrial.reports.analysis.repeats import IDENTICAL, identical
from retrial.reports.analysis.stats import total
from retrial.sandboxes.prepare import unsupported_tasks
from retrial.store.manifest import ListedRun, Manifest
from retrial.store.runs import Run, file_name
from retrial.system import paths
from retrial.system.console import pluralise, say

GRID, REPEATS = "grid", "repeats"
GRID_AGENT = "edit"
DIFFERS_IN_GRID = ("models", "model_options", "model_name_or_path", "prompts")
"""What of an identity may differ between the runs of a grid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """A group: a folder that lists its runs, and what is to be done of them."""

    kind: str
    """`grid` or `repeats`."""
    group: Run
    identity: Mapping[str, Any]
    """What may not change between two goes at the group."""
    plans: tuple[Plan, ...]
    rows: tuple[ListedRun, ...]
    """What the group's run.json says of each run."""
    earlier: Manifest
    """That run.json as earlier goes left it."""

    @property
    def title(self) -> str:
        return f"{self.kind.capitalize()} {self.group.name}"


def make_group(options: HarnessOptions, argv: Sequence[str]) -> RunGroup:
    """Return the group that the options ask for, and its runs in order.

    Raises: UsageError for anything that cannot be.
    """
    if options.repeat > 1:
        _refuse_in_repeats(options)
        return _make_repeats(options, argv)
    _refuse_in_grid(options)
    return _make_grid(options, argv)


def _make_grid(options: HarnessOptions, argv: Sequence[str]) -> RunGroup:
    """Every model with every edit format as a run of its own."""
    formats = options.edit_format or registry.names("formats")
    first = make_plan(replace(options, model=options.models[:1], edit_format=formats[:1]), argv)
    prefix = options.run or f"{first.benchmark.name}--{options.agent}"
    names = dict.fromkeys(file_name(defaults.split(choice.name, "")[0]) for choice in options.models)
    grid = Run(paths.home(), options.run or "--".join([prefix, *names, "grid"]))
    plans = [with_models(first, own) for own in _cells(options, formats, prefix)]
    members = [
        (plan, ListedRun(run=plan.run.name, model=rung.name, edit_format=rung.edit_format))
        for plan in plans
        for rung in plan.rungs
    ]
    shared = {name: value for name, value in identity(first).items() if name not in DIFFERS_IN_GRID}
    return _assemble(GRID, grid, shared, members)


def _make_repeats(options: HarnessOptions, argv: Sequence[str]) -> RunGroup:
    """The same tasks K times, each time as a run of its own whose models have other seeds.

    Run NAME.i asks with seed S+i-1. A model's later attempts at a task count on from their run's seed, so that the
    second attempt of NAME.1 has the seed of the first one of NAME.2: the same question only where `--temperature` and
    `--retry-temperature` are the same, too.
    """
    # Its tasks are all runs' tasks: the sample is drawn once, with the seed that was given.
    first = make_plan(options, argv)
    plans = [with_models(first, _shifted(options, first.run.name, number)) for number in range(options.repeat)]
    members = [(plan, ListedRun(run=plan.run.name, seed=plan.options.seed)) for plan in plans]
    return _assemble(REPEATS, first.run, identity(first), members)


def _refuse_in_grid(options: HarnessOptions) -> None:
    if options.shard:
        raise UsageError("--grid does not go with --shard: cut its runs one by one, with -m NAME:FORMAT each.")
    if options.agent != GRID_AGENT:
        raise UsageError(f"--grid compares edit formats, and only agent '{GRID_AGENT}' is told which: leave -a out.")
    if _replays(options):
        raise UsageError(
            "--grid asks anew in every format, and replay:RUN has the replies of one: leave one of them out."
        )


def _refuse_in_repeats(options: HarnessOptions) -> None:
    if options.grid:
        raise UsageError("--repeat does not go with --grid: repeat its runs one by one, with -m NAME:FORMAT each.")
    if options.shard:
        raise UsageError("--repeat does not go with --shard: cut its runs one by one, with a --run and a --seed each.")
    if _replays(options):
        raise UsageError(
            "--repeat asks anew with other seeds, and replay:RUN has the replies to one: leave one of them out."
        )


def _replays(options: HarnessOptions) -> bool:
    return any(choice.name.startswith(PREFIX) for choice in options.model)


def _cells(options: HarnessOptions, formats: Sequence[str], prefix: str) -> list[HarnessOptions]:
    """One for each run, with its name; a model that is named with its format is asked in that one alone."""
    found: dict[str, HarnessOptions] = {}
    for choice in options.models:
        for name, edit_format in dict.fromkeys(defaults.split(choice.name, each) for each in formats):
            run = f"{prefix}--{file_name(name)}--{edit_format}"
            if run in found:
                raise UsageError(f"Run '{run}' would be there twice in this grid: name each model once.")
            found[run] = replace(options, model=(choice,), edit_format=(edit_format,), run=run)
    return list(found.values())


def _shifted(options: HarnessOptions, name: str, by: int) -> HarnessOptions:
    """Those of one run; also a seed that a model has of its own moves on."""

    def moved(choice: ModelChoice) -> ModelChoice:
        own = choice.overrides
        return replace(choice, overrides={**own, "seed": own["seed"] + by}) if "seed" in own else choice

    model = tuple(map(moved, options.model))
    return replace(options, run=f"{name}.{by + 1}", seed=options.seed + by, model=model)


def _assemble(
    kind: str, group: Run, identity: Mapping[str, Any], members: Sequence[tuple[Plan, ListedRun]]
) -> RunGroup:
    """These runs as one group, with those of earlier goes: all share a budget.

    Raises: UsageError when there is something else of that name already.
    """
    earlier = refuse_change(group, identity, kind=kind)
    known = [Run(paths.home(), each.run) for each in earlier.runs]
    runs = {run.name: run for run in (*known, *(plan.run for plan, _ in members))}
    return RunGroup(
        kind=kind,
        group=group,
        identity=identity,
        plans=tuple(_with_siblings(plan, group, runs) for plan, _ in members),
        rows=tuple(row for _, row in members),
        earlier=earlier,
    )


def _with_siblings(plan: Plan, group: Run, runs: Mapping[str, Run]) -> Plan:
    return replace(
        plan, grid=group.name, group_siblings=tuple(run for name, run in runs.items() if name != plan.run.name)
    )


def run_group(several: RunGroup) -> Iterator[RunEnd]:
    """What is not done yet of all its runs, one after the other."""
    plans = several.plans
    sandbox = sandbox_for(plans[0])
    # All of them before the first: what cannot be is said before anything is spent.
    ladders = [make_ladder(plan) for plan in plans]
    for plan in plans:
        RunManifest(plan).refuse_other()
    _write_config(several)
    for place, (plan, ladder) in enumerate(zip(plans, ladders, strict=True), start=1):
        say(f"{several.title}: run {place} of {len(plans)}")
        yield run_plan(plan, ladder, sandbox)


def _write_config(several: RunGroup) -> None:
    group, first = several.group, several.plans[0]
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    group.write_config(
        {
            "program": "harness.py",
            "kind": several.kind,
            "run": group.name,
            "command": first.command,
            "started": now,
            "first_started": several.earlier.first_started or now,
            "identity": several.identity,
            # A group grows: what was compared once stays so.
            "runs": list({each.run: each for each in (*several.earlier.runs, *several.rows)}.values()),
            "max_cost": first.options.max_cost,
            "versions": {"retrial": __version__},
        }
    )


def dry_run_lines(several: RunGroup) -> Iterator[str]:
    """What would be done, and what it can cost at most."""
    plans = several.plans
    left_out = unsupported_tasks(plans[0].tasks, sandbox_for(plans[0]))
    costs: list[float | None] = []
    every: list[tuple[str, float | None]] = []
    for plan in plans:
        tasks = dry_run.waiting(plan, left_out)
        found = dry_run.most_it_costs(plan, tasks)
        costs.append(total(cost for _, cost in found))
        every += found
        cost = dry_run.at_most(costs[-1], dry_run.why_unknown(plan, found))
        yield f"Run {plan.run.name} would do {pluralise(len(tasks), 'task')}: {cost}"
    together = dry_run.at_most(total(costs), dry_run.why_unknown(plans[0], every))
    yield f"All {pluralise(len(plans), 'run')} together: {together}. Nothing was asked."


def identical_note(several: RunGroup) -> str:
    """Say that all repeats made the same patches; empty if they did not, and for a grid."""
    repeated = several.kind == REPEATS
    return IDENTICAL if repeated and identical([_patches(plan) for plan in several.plans]) else ""


def _patches(plan: Plan) -> dict[str, str]:
    found = (plan.run.prediction(task.instance_id) for task in plan.tasks)
    return {record.instance_id: record.model_patch or "" for record in found if record is not None}
