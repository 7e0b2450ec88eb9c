"""`--repeat K`: the same tasks K times, each time as a run of its own whose models have other seeds.

Run NAME.i asks with seed S+i-1. A model's later attempts at a task count on from their run's seed, so that the second
attempt of NAME.1 has the seed of the first one of NAME.2: the same question only where `--temperature` and
`--retry-temperature` are the same, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retrial.errors import UsageError
from retrial.options import HarnessOptions, ModelChoice
from retrial.predict import groups
from retrial.predict.groups import RunGroup
from retrial.predict.manifest import identity
from retrial.predict.metering.recording import PREFIX
from retrial.predict.plan import Plan, make_plan, with_models
from retrial.reports.analysis.repeats import IDENTICAL, identical
from retrial.store.manifest import ListedRun

KIND = "repeats"


def make_group(options: HarnessOptions, argv: Sequence[str]) -> RunGroup:
    """The group, and its runs in order.

    Raises: UsageError for anything that cannot be.
    """
    _refuse(options)
    # Its tasks are all runs' tasks: the sample is drawn once, with the seed that was given.
    first = make_plan(options, argv)
    shifted = [_shifted(options, first.run.name, number) for number in range(options.repeat)]
    plans = [with_models(first, own) for own in shifted]
    members = [(plan, ListedRun(run=plan.run.name, seed=plan.options.seed)) for plan in plans]
    return groups.make_group(KIND, first.run, identity(first), members)


def note(group: RunGroup) -> str:
    """Say that all its runs made the same patches; empty if they did not."""
    return IDENTICAL if identical([_patches(plan) for plan in group.plans]) else ""


def _refuse(options: HarnessOptions) -> None:
    if options.grid:
        raise UsageError("--repeat does not go with --grid: repeat its runs one by one, with -m NAME:FORMAT each.")
    if options.shard:
        raise UsageError("--repeat does not go with --shard: cut its runs one by one, with a --run and a --seed each.")
    if any(choice.name.startswith(PREFIX) for choice in options.model):
        raise UsageError(
            "--repeat asks anew with other seeds, and replay:RUN has the replies to one: leave one of them out."
        )


def _shifted(options: HarnessOptions, name: str, by: int) -> HarnessOptions:
    """Those of one run; also a seed that a model has of its own moves on."""

    def moved(choice: ModelChoice) -> ModelChoice:
        own = choice.overrides
        return replace(choice, overrides={**own, "seed": own["seed"] + by}) if "seed" in own else choice

    model = tuple(map(moved, options.model))
    return replace(options, run=f"{name}.{by + 1}", seed=options.seed + by, model=model)


def _patches(plan: Plan) -> dict[str, str]:
    found = (plan.run.prediction(task.instance_id) for task in plan.tasks)
    return {record.instance_id: record.model_patch or "" for record in found if record is not None}
