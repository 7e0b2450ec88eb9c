"""`--grid`: every model with every edit format as a run of its own, one after the other, on the same tasks."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from retrial import __version__, dry_run, models, paths, phase1, program, registry
from retrial.config import HarnessOptions
from retrial.errors import UsageError
from retrial.identity import identity, refuse_change, refuse_other_identity
from retrial.plan import Plan, make_ladder, make_plan, with_models
from retrial.progress import say
from retrial.recorded import PREFIX
from retrial.sandboxes import skipped
from retrial.stats import total
from retrial.store import Run, file_name
from retrial.table import money
from retrial.words import counted

AGENT = "edit"
OF_ONE_RUN = ("models", "model_options", "model_name_or_path", "prompts")
"""What of an identity may differ between the runs of a grid."""


def run(options: HarnessOptions, argv: Sequence[str]) -> int:
    """What is not done yet of all its runs; returns the worst exit code."""
    grid, plans = make_plans(options, argv)
    sandbox = phase1.sandbox_for(plans[0])
    if options.dry_run:
        return _dry_run(plans, set(skipped(plans[0].tasks, sandbox)))
    # All of them before the first: what cannot be is said before anything is spent.
    ladders = [make_ladder(plan) for plan in plans]
    for plan in plans:
        refuse_other_identity(plan)
    _write_config(grid, plans)
    worst = program.DONE
    for place, (plan, ladder) in enumerate(zip(plans, ladders, strict=True), start=1):
        say(f"Grid {grid.name}: run {place} of {len(plans)}")
        worst = max(worst, phase1.run_plan(plan, ladder, sandbox))
    print(f"Grid: {grid.folder}")
    return worst


def make_plans(options: HarnessOptions, argv: Sequence[str]) -> tuple[Run, tuple[Plan, ...]]:
    """The grid, and its runs in order.

    Raises: UsageError for anything that cannot be.
    """
    _refuse(options)
    formats = options.edit_format or registry.names("edits")
    first = make_plan(replace(options, model=options.models[:1], edit_format=formats[:1]), argv)
    prefix = options.run or f"{first.benchmark.name}--{options.agent}"
    names = dict.fromkeys(file_name(models.split(choice.name, "")[0]) for choice in options.models)
    grid = Run(paths.home(), options.run or "--".join([prefix, *names, "grid"]))
    refuse_change(grid, _shared_identity(first), grid=True)
    plans = [with_models(first, own) for own in _cells(options, formats, prefix)]
    runs = {run.name: run for run in (*_listed_runs(grid), *(plan.run for plan in plans))}
    return grid, tuple(_beside(plan, grid, runs.values()) for plan in plans)


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
        for name, edit_format in dict.fromkeys(models.split(choice.name, each) for each in formats):
            run = f"{prefix}--{file_name(name)}--{edit_format}"
            if run in found:
                raise UsageError(f"Run '{run}' would be there twice in this grid: name each model once.")
            found[run] = replace(options, model=(choice,), edit_format=(edit_format,), run=run)
    return list(found.values())


def _beside(plan: Plan, grid: Run, runs: Iterable[Run]) -> Plan:
    return replace(plan, grid=grid.name, beside=tuple(run for run in runs if run.name != plan.run.name))


def _shared_identity(plan: Plan) -> dict[str, Any]:
    return {name: value for name, value in identity(plan).items() if name not in OF_ONE_RUN}


def _listed(grid: Run) -> list[dict[str, str]]:
    """What is known of its runs from earlier goes."""
    return list(grid.config()["runs"]) if grid.exists() else []


def _listed_runs(grid: Run) -> list[Run]:
    return [Run(paths.home(), each["run"]) for each in _listed(grid)]


def _write_config(grid: Run, plans: Sequence[Plan]) -> None:
    old = grid.config() if grid.exists() else {}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    first = plans[0]
    new = [
        {"run": plan.run.name, "model": rung.name, "edit_format": rung.edit_format}
        for plan in plans
        for rung in plan.rungs
    ]
    grid.write_config(
        {
            "program": "harness.py",
            "kind": "grid",
            "run": grid.name,
            "command": first.command,
            "started": now,
            "first_started": old.get("first_started", now),
            "identity": _shared_identity(first),
            # A grid grows: what was compared once stays so.
            "runs": list({each["run"]: each for each in (*_listed(grid), *new)}.values()),
            "max_cost": first.options.max_cost,
            "versions": {"retrial": __version__},
        }
    )


def _dry_run(plans: Sequence[Plan], left_out: Collection[str]) -> int:
    costs = []
    for plan in plans:
        tasks = [task for task in plan.tasks if task.instance_id not in left_out and not plan.is_done(task)]
        costs.append(total(cost for _, cost in dry_run.most_it_costs(plan, tasks)))
        print(f"Run {plan.run.name} would do {counted(len(tasks), 'task')}: at most {money(costs[-1])}")
    print(f"All {counted(len(plans), 'run')} together: at most {money(total(costs))}. Nothing was asked.")
    return program.DONE
