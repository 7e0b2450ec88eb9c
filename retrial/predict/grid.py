"""`--grid`: every model with every edit format as a run of its own, one after the other, on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from retrial import registry
from retrial.errors import UsageError
from retrial.formats import defaults
from retrial.options import HarnessOptions
from retrial.predict import groups
from retrial.predict.groups import RunGroup
from retrial.predict.manifest import identity
from retrial.predict.metering.recording import PREFIX
from retrial.predict.plan import Plan, make_plan, with_models
from retrial.store.manifest import ListedRun
from retrial.store.runs import Run, file_name
from retrial.system import paths

KIND = "grid"
AGENT = "edit"
OF_ONE_RUN = ("models", "model_options", "model_name_or_path", "prompts")
"""What of an identity may differ between the runs of a grid."""


def make_group(options: HarnessOptions, argv: Sequence[str]) -> RunGroup:
    """The grid, and its runs in order.

    Raises: UsageError for anything that cannot be.
    """
    _refuse(options)
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
    return groups.make_group(KIND, grid, _shared_identity(first), members)


def _refuse(options: HarnessOptions) -> None:
    if options.shard:
        raise UsageError("--grid does not go with --shard: cut its runs one by one, with -m NAME:FORMAT each.")
    if options.agent != AGENT:
        raise UsageError(f"--grid compares edit formats, and only agent '{AGENT}' is told which: leave -a out.")
    if any(choice.name.startswith(PREFIX) for choice in options.model):
        raise UsageError(
            "--grid asks anew in every format, and replay:RUN has the replies of one: leave one of them out."
        )


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


def _shared_identity(plan: Plan) -> dict[str, Any]:
    return {name: value for name, value in identity(plan).items() if name not in OF_ONE_RUN}
