"""`--dry-run`: what would be done, where, and what it can cost at most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from retrial.agents.edit import FEEDBACK_LINES
from retrial.agents.edit.file_picker import LISTED, LONGEST_PATH, SHOWN
from retrial.models.prices import Price, no_price
from retrial.options import HarnessOptions
from retrial.predict.metering.model_session import size
from retrial.predict.plan import Plan, options_of, price_of
from retrial.protocols import Sandbox
from retrial.reports.analysis.stats import total
from retrial.sandboxes.prepare import unsupported_tasks
from retrial.store import history
from retrial.system.console import money, pluralise
from retrial.types import Environment, Task

FEEDBACK_TOKENS = FEEDBACK_LINES * 40
OVERHEAD_BYTES = 2000
"""System prompt and the words around the instructions."""
BYTES_PER_MAP_TOKEN = 8
"""More than any word of a map has for each of its tokens, as we count them."""


def lines(plan: Plan, sandbox: Sandbox) -> Iterator[str]:
    left_out = unsupported_tasks(plan.tasks, sandbox)
    left = waiting(plan, left_out)
    yield f"Run {plan.run.name} would do {pluralise(len(left), 'task')} of {plan.benchmark.name}{plan.exclusions_note}:"
    for task in plan.tasks:
        state = left_out.get(task.instance_id) or ("" if task in left else "done before")
        yield f"  {task.instance_id}" + (f" ({state})" if state else "")
    yield from _environments(sandbox, {task.environment for task in left})
    costs = most_it_costs(plan, left)
    for name, cost in costs:
        yield f"Model {name}: {at_most(cost, why_unknown(plan, [(name, cost)]))}"
    whole = at_most(total(cost for _, cost in costs), why_unknown(plan, costs))
    yield f"All together: {whole}. Nothing was asked."


def waiting(plan: Plan, left_out: Collection[str]) -> list[Task]:
    """Return the tasks that would be done."""
    done = history.prediction_summaries(plan.run, plan.ids)
    ids = plan.ids - set(done) - set(left_out)
    if history.is_done_again(plan.run, done, ids):
        ids = set(done)
    return [task for task in plan.tasks if task.instance_id in ids]


def at_most(cost: float | None, why: str) -> str:
    return f"cost unknown ({why})" if cost is None else f"at most {money(cost)}"


def why_unknown(plan: Plan, costs: Iterable[tuple[str, float | None]]) -> str:
    """Why some of these costs are unknown, and what to do."""
    if plan.spends:
        return f"the agent '{plan.options.agent}' calls its model by itself"
    return no_price(name for name, cost in costs if cost is None)


def most_it_costs(plan: Plan, left: Sequence[Task]) -> list[tuple[str, float | None]]:
    """(Model, the most it can cost), rung by rung."""

    found = []
    for rung in plan.rungs:
        # What an agent asks on its own, nobody can foresee.
        price = None if plan.spends else price_of(plan, rung)
        found.append((rung.name or "none", most_it_can_cost(options_of(plan, rung), plan.tries, left, price)))
    return found


def _environments(sandbox: Sandbox, environments: Iterable[Environment]) -> Iterator[str]:
    by_name = sorted(environments, key=lambda each: each.name)
    for environment in (each for each in by_name if not each.tree):
        yield f"Environment {environment.name} on {sandbox.name}: {sandbox.state(environment)}"
    images = [sandbox.state(each) for each in by_name if each.tree]
    if images:
        here = sum(state.startswith("ready") for state in images)
        yield f"Images of tasks: {here} of {len(images)} are here, the others are pulled when they are needed."


def most_it_can_cost(options: HarnessOptions, tries: int, tasks: Sequence[Task], price: Price | None) -> float | None:
    """For one model of the ladder: every reply as long as allowed, every turn and reflection used."""
    if price is None:
        return None
    total = 0.0
    for task in tasks:
        # In a repository the model is asked for the files to edit first.
        calls = (options.turns + task.whole_repository) * (1 + options.reflections)
        opening = _shown(task, options.map_tokens) + OVERHEAD_BYTES  # a token is a byte at least
        # Each call carries all that was said before it.
        earlier = sum(call * (options.max_tokens + FEEDBACK_TOKENS) for call in range(calls))
        total += tries * price.cost(calls * opening + earlier, calls * options.max_tokens)
    return total


def _shown(task: Task, map_tokens: int) -> int:
    """Bytes of the task that the model is sent, at most."""
    if task.whole_repository:
        listed = map_tokens * BYTES_PER_MAP_TOKEN or LISTED * LONGEST_PATH
        return SHOWN + listed + 2 * size(task.problem_statement)
    return sum(len(content) for content in task.tree.files().values()) + size(task.problem_statement)
