"""Going on after earlier runs (`--prior`): what they have a plausible edit of is left alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from retrial.benchmarks import shards
from retrial.errors import UsageError
from retrial.protocols import Benchmark
from retrial.store import history
from retrial.store.history import RunHistory, find_run
from retrial.store.runs import Run
from retrial.system import paths
from retrial.types import Task


def runs(texts: Iterable[str], benchmark: Benchmark, run: Run) -> tuple[RunHistory, ...]:
    """Raises: UsageError for what `run` cannot go on after."""
    found = []
    for text in shards.expand_to_shards(paths.home(), tuple(texts)):
        prior = find_run(paths.home(), text)
        if prior is None:
            raise UsageError(f"--prior takes runs of harness.py, and {text} is a file from elsewhere.")
        if prior.name == run.name:
            raise UsageError(f"Run '{run.name}' cannot be its own --prior: name another run with --run.")
        found.append(history.read(prior))
    history.refuse_other_benchmark(found, benchmark.provenance["source"], benchmark.provenance["digest"])
    return tuple(found)


def remaining_tasks(prior: Sequence[RunHistory], tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """What prior runs were asked for and have no plausible (nor unverified) edit of; everything without prior runs.

    Raises: UsageError when they know none of these tasks.
    """
    if not prior:
        return tasks
    asked = {instance_id for each in prior for instance_id in each.selected}
    known = [task for task in tasks if task.instance_id in asked]
    if not known:
        raise UsageError(f"No task is left: none of them is in {', '.join(each.run.name for each in prior)}.")
    return tuple(task for task in known if not has_usable_edit(prior, task))


def has_usable_edit(prior: Sequence[RunHistory], task: Task) -> bool:
    records = [each.records[task.instance_id] for each in prior if task.instance_id in each.records]
    return any(record.settled for record in records)
