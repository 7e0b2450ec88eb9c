"""The most that a run can cost, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence

from retrial.agents.edit import FEEDBACK_LINES
from retrial.agents.edit.file_picker import LISTED, LONGEST_PATH, SHOWN
from retrial.models.prices import Price
from retrial.options import HarnessOptions
from retrial.predict.metering.budget import size
from retrial.types import Task

FEEDBACK_TOKENS = FEEDBACK_LINES * 40
OVERHEAD_BYTES = 2000
"""System prompt and the words around the instructions."""
BYTES_PER_MAP_TOKEN = 8
"""More than any word of a map has for each of its tokens, as we count them."""


def most_it_can_cost(options: HarnessOptions, tries: int, tasks: Sequence[Task], price: Price | None) -> float | None:
    """For one model of the ladder: every reply as long as allowed, every turn and reflection used."""
    if price is None:
        return None
    total = 0.0
    for task in tasks:
        # In a repository the model is asked for the files to edit first.
        calls = (options.turns + task.anywhere) * (1 + options.reflections)
        opening = _shown(task, options.map_tokens) + OVERHEAD_BYTES  # a token is a byte at least
        # Each call carries all that was said before it.
        earlier = sum(call * (options.max_tokens + FEEDBACK_TOKENS) for call in range(calls))
        total += tries * price.cost(calls * opening + earlier, calls * options.max_tokens)
    return total


def _shown(task: Task, map_tokens: int) -> int:
    """Bytes of the task that the model is sent, at most."""
    if task.anywhere:
        listed = map_tokens * BYTES_PER_MAP_TOKEN or LISTED * LONGEST_PATH
        return SHOWN + listed + 2 * size(task.problem_statement)
    return sum(len(content) for content in task.tree.files().values()) + size(task.problem_statement)
