"""Runs that are made together, one after the other, on the same tasks: what a grid and repeats have in common."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from retrial import __version__
from retrial.errors import ExitCode
from retrial.predict import dry_run
from retrial.predict.manifest import refuse_change, refuse_other_identity
from retrial.predict.plan import Plan, make_ladder
from retrial.predict.run import run_plan, sandbox_for
from retrial.reports.analysis.stats import total
from retrial.sandboxes.prepare import unsupported_tasks
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
    rows: tuple[Mapping[str, Any], ...]
    """What the group's run.json says of each run."""

    @property
    def title(self) -> str:
        return f"{self.kind.capitalize()} {self.group.name}"


def make_group(
    kind: str, group: Run, identity: Mapping[str, Any], members: Sequence[tuple[Plan, Mapping[str, Any]]]
) -> RunGroup:
    """These runs as one group, with those of earlier goes: all share a budget.

    Raises: UsageError when there is something else of that name already.
    """
    refuse_change(group, identity, kind=kind)
    known = [Run(paths.home(), each["run"]) for each in listed_runs(group)]
    runs = {run.name: run for run in (*known, *(plan.run for plan, _ in members))}
    return RunGroup(
        kind=kind,
        group=group,
        identity=identity,
        plans=tuple(_with_siblings(plan, group, runs) for plan, _ in members),
        rows=tuple({"run": plan.run.name, **row} for plan, row in members),
    )


def _with_siblings(plan: Plan, group: Run, runs: Mapping[str, Run]) -> Plan:
    return replace(
        plan, grid=group.name, group_siblings=tuple(run for name, run in runs.items() if name != plan.run.name)
    )


def listed_runs(group: Run) -> list[dict[str, Any]]:
    """What is known of its runs from earlier goes."""
    return list(group.config()["runs"]) if group.exists() else []


def run_group(several: RunGroup) -> int:
    """What is not done yet of all its runs; returns the worst exit code."""
    plans = several.plans
    sandbox = sandbox_for(plans[0])
    if plans[0].options.dry_run:
        return _dry_run(plans, set(unsupported_tasks(plans[0].tasks, sandbox)))
    # All of them before the first: what cannot be is said before anything is spent.
    ladders = [make_ladder(plan) for plan in plans]
    for plan in plans:
        refuse_other_identity(plan)
    _write_config(several)
    worst: int = ExitCode.DONE
    for place, (plan, ladder) in enumerate(zip(plans, ladders, strict=True), start=1):
        say(f"{several.title}: run {place} of {len(plans)}")
        worst = max(worst, run_plan(plan, ladder, sandbox))
    print(f"{several.kind.capitalize()}: {several.group.folder}")
    return worst


def _write_config(several: RunGroup) -> None:
    group, first = several.group, several.plans[0]
    old = group.config() if group.exists() else {}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    group.write_config(
        {
            "program": "harness.py",
            "kind": several.kind,
            "run": group.name,
            "command": first.command,
            "started": now,
            "first_started": old.get("first_started", now),
            "identity": several.identity,
            # A group grows: what was compared once stays so.
            "runs": list({each["run"]: each for each in (*listed_runs(group), *several.rows)}.values()),
            "max_cost": first.options.max_cost,
            "versions": {"retrial": __version__},
        }
    )


def _dry_run(plans: Sequence[Plan], left_out: Collection[str]) -> int:
    costs: list[float | None] = []
    every: list[tuple[str, float | None]] = []
    for plan in plans:
        tasks = dry_run.waiting(plan, left_out)
        found = dry_run.most_it_costs(plan, tasks)
        costs.append(total(cost for _, cost in found))
        every += found
        cost = dry_run.at_most(costs[-1], dry_run.why_unknown(plan, found))
        print(f"Run {plan.run.name} would do {pluralise(len(tasks), 'task')}: {cost}")
    together = dry_run.at_most(total(costs), dry_run.why_unknown(plans[0], every))
    print(f"All {pluralise(len(plans), 'run')} together: {together}. Nothing was asked.")
    return ExitCode.DONE
