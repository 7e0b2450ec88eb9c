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
from retrial.store import history
from retrial.system.console import NOTE, say

KIND = "repeats"


def run(options: HarnessOptions, argv: Sequence[str]) -> int:
    """What is not done yet of all its runs; returns the worst exit code."""
    found = make_plans(options, argv)
    code = groups.run_group(found)
    if not options.dry_run and identical([_patches(plan) for plan in found.plans]):
        say(f"{NOTE}{IDENTICAL}")
    return code


def make_plans(options: HarnessOptions, argv: Sequence[str]) -> RunGroup:
    """The group, and its runs in order.

    Raises: UsageError for anything that cannot be.
    """
    _refuse(options)
    # Its tasks are all runs' tasks: the sample is drawn once, with the seed that was given.
    first = make_plan(options, argv)
    shifted = [_shifted(options, first.run.name, number) for number in range(options.repeat)]
    members = [(with_models(first, own), {"seed": own.seed}) for own in shifted]
    return groups.make_group(KIND, first.run, identity(first), members)


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
    found = history.prediction_summaries(plan.run, plan.tasks)
    return {instance_id: str(record["model_patch"] or "") for instance_id, record in found.items()}
