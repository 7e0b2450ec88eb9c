"""Runs that are made together, one after the other, on the same tasks: what a grid and repeats have in common."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrial import __version__
from retrial.predict import dry_run
from retrial.predict.manifest import RunManifest, refuse_change
from retrial.predict.plan import Plan, make_ladder
from retrial.predict.run import RunEnd, run_plan, sandbox_for
from retrial.reports.analysis.stats import total
from retrial.sandboxes.prepare import unsupported_tasks
from retrial.store.manifest import ListedRun, Manifest
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.console import pluralise, say


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


def make_group(
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
