"""`--dry-run`: what would be done, where, and what it can cost at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrial import program
from retrial.plan import Plan, options_of, price_of
from retrial.prices import no_price
from retrial.protocols import Sandbox
from retrial.sandboxes import skipped
from retrial.stats import total
from retrial.table import money
from retrial.types import Environment, Task
from retrial.words import counted


def show(plan: Plan, sandbox: Sandbox) -> int:
    left_out = skipped(plan.tasks, sandbox)
    left = [task for task in plan.tasks if task.instance_id not in left_out and not plan.is_done(task)]
    print(f"Run {plan.run.name} would do {counted(len(left), 'task')} of {plan.benchmark.name}{plan.without}:")
    for task in plan.tasks:
        state = left_out.get(task.instance_id) or ("done before" if plan.is_done(task) else "")
        print(f"  {task.instance_id}" + (f" ({state})" if state else ""))
    _print_environments(sandbox, {task.environment for task in left})
    costs = most_it_costs(plan, left)
    for name, cost in costs:
        print(f"Model {name}: {at_most(cost, [name])}")
    unpriced = [name for name, cost in costs if cost is None]
    print(f"All together: {at_most(total(cost for _, cost in costs), unpriced)}. Nothing was asked.")
    return program.DONE


def at_most(cost: float | None, unpriced: Iterable[str]) -> str:
    return f"cost unknown ({no_price(unpriced)})" if cost is None else f"at most {money(cost)}"


def most_it_costs(plan: Plan, left: Sequence[Task]) -> list[tuple[str, float | None]]:
    """(Model, the most it can cost), rung by rung."""
    from retrial.estimate import most_it_can_cost

    found = []
    for rung in plan.rungs:
        # What an agent asks on its own, nobody can foresee.
        price = None if plan.spends else price_of(plan, rung)
        found.append((rung.name or "none", most_it_can_cost(options_of(plan, rung), plan.tries, left, price)))
    return found


def _print_environments(sandbox: Sandbox, environments: Iterable[Environment]) -> None:
    by_name = sorted(environments, key=lambda each: each.name)
    for environment in (each for each in by_name if not each.tree):
        print(f"Environment {environment.name} on {sandbox.name}: {sandbox.state(environment)}")
    images = [sandbox.state(each) for each in by_name if each.tree]
    if images:
        here = sum(state.startswith("ready") for state in images)
        print(f"Images of tasks: {here} of {len(images)} are here, the others are pulled when they are needed.")
