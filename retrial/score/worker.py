"""Phase 2 as work for an executor: one submission in, what came of it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from retrial.benchmarks.remote import RemoteParts
from retrial.options import ReportOptions
from retrial.protocols import WorkerNode
from retrial.sandboxes.throttled import ThrottledSandbox
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored, Scorer
from retrial.types import Environment, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWorker:
    """Safe to call from many threads."""

    scorer: Scorer
    tasks: Mapping[str, Task]
    """By their ids."""
    maker: Callable[[WorkerNode], Scorer]
    """Of the same scorer on another machine."""

    def __call__(self, submission: Submission) -> Scored:
        """Raises: NotMeasured."""
        return self.scorer.score(self.tasks[submission.instance_id], submission)

    def elsewhere(self) -> Callable[[WorkerNode], ScoreWorker]:
        return partial(_scoring, self.maker)


def _scoring(maker: Callable[[WorkerNode], Scorer], site: WorkerNode) -> ScoreWorker:
    scorer = maker(site)
    return ScoreWorker(scorer=scorer, tasks=by_id(scorer), maker=maker)


def by_id(scorer: Scorer) -> dict[str, Task]:
    """All tasks of its benchmark."""
    return {task.instance_id: task for task in scorer.benchmark.tasks()}


def remote_scorer(
    scorer: Scorer, options: ReportOptions, environments: frozenset[Environment], used: ThrottledSandbox
) -> Callable[[WorkerNode], Scorer]:
    """What makes the same scorer on another machine; it can be pickled. `used` is told there what sandboxes use."""
    there = RemoteParts.of(options, scorer.benchmark, scorer.sandbox.name, environments)
    same = partial(
        Scorer, verdicts=scorer.verdicts, timeout=scorer.timeout, fresh=scorer.fresh, untouched=scorer.untouched
    )
    return partial(_scorer, there, same, used)


def _scorer(there: RemoteParts, same: Callable[..., Scorer], used: ThrottledSandbox, site: WorkerNode) -> Scorer:
    there.enter()
    return same(benchmark=there.benchmark.open(), sandbox=there.sandbox.open(site, used))
