"""Sources of tasks, one folder each, with their graders. `make(context)` returns None for a name it does not know.

Imports `grading` and what is below; `agents` and the folders above may import it.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Sequence

from retrial import registry
from retrial.errors import UsageError
from retrial.protocols import Benchmark, Context
from retrial.types import Task


def open_benchmark(context: Context) -> Benchmark:
    """The benchmark that `-b` names."""
    known: list[str] = []
    modules = [registry.module("benchmarks", part) for part in registry.names("benchmarks")]
    for module in sorted(modules, key=lambda module: getattr(module, "TAKES_ANY_FOLDER", False)):
        benchmark: Benchmark | None = module.make(context)
        if benchmark is not None:
            return benchmark
        known += module.known()
    close = difflib.get_close_matches(context.name, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}."
    raise UsageError(f"Unknown benchmark '{context.name}', and no such file or folder; {hint}")


def select_tasks(
    tasks: Sequence[Task],
    *,
    names: Sequence[str] = (),
    languages: Sequence[str] = (),
    sample_size: int | None = None,
    seed: int = 0,
) -> tuple[Task, ...]:
    """Sorted by id. A larger sample contains a smaller one: both are the start of one shuffle of all ids.

    Raises: UsageError for an unknown task or language, or when nothing is left.
    """
    wanted = {_find(name, tasks).instance_id for name in names} or {task.instance_id for task in tasks}
    known = sorted({task.language for task in tasks})
    if unknown := sorted(set(languages) - set(known)):
        raise UsageError(f"There is no task in '{unknown[0]}' here; languages: {', '.join(known)}.")
    order = sorted(tasks, key=lambda task: task.instance_id)
    random.Random(seed).shuffle(order)
    chosen = [task for task in order if task.instance_id in wanted and (not languages or task.language in languages)]
    if not chosen:
        raise UsageError("No task is left: --task and --filter-category exclude each other.")
    return tuple(sorted(chosen[:sample_size], key=lambda task: task.instance_id))


def _find(name: str, tasks: Sequence[Task]) -> Task:
    found = [task for task in tasks if name == task.instance_id or name in task.aliases]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"'{name}' names {len(found)} tasks: {', '.join(sorted(task.aliases[0] for task in found))}.")
    known = [alias for task in tasks for alias in (task.instance_id, *task.aliases)]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"it has {len(tasks)} tasks, such as {tasks[0].instance_id}."
    raise UsageError(f"There is no task '{name}' in {tasks[0].benchmark}; {hint}")
