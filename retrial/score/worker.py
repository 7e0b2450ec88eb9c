"""Phase 2 as work for an executor: one submission in, its score out; and the setup its tests run in."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from retrial import registry
from retrial.benchmarks.remote import RemoteParts
from retrial.executors.limiter import sandboxes_at_once
from retrial.grading.verdict_cache import Verdicts
from retrial.options import ReportOptions
from retrial.protocols import Benchmark, Context, Executor, WorkerNode
from retrial.sandboxes import choose
from retrial.sandboxes.prepare import prepare_all, unsupported_tasks
from retrial.sandboxes.throttled import ThrottledSandbox, UsedEnvironments
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored, Scorer
from retrial.store.runs import Run
from retrial.system import paths, run_log
from retrial.system.console import say
from retrial.system.host import DiskSpace
from retrial.system.shutdown import Stop
from retrial.types import Environment, EnvironmentFacts, Task

AHEAD = 2
"""More workers than sandboxes: they bring images while the others' tests run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreWorker:
    """Safe to call from many threads."""

    scorer: Scorer
    tasks: Mapping[str, Task]
    options: ReportOptions
    ready: frozenset[Environment]
    """What its work needs and is there, or is brought when it is needed."""
    used: UsedEnvironments
    """Is told what sandboxes use elsewhere."""

    def __call__(self, submission: Submission) -> Scored:
        """Raises: NotMeasured."""
        with run_log.about(task=submission.instance_id):
            return self.scorer.score(self.tasks[submission.instance_id], submission)

    def elsewhere(self) -> Callable[[WorkerNode], ScoreWorker]:
        scorer = self.scorer
        there = RemoteParts.of(self.options, scorer.benchmark, scorer.sandbox.name, self.ready)
        # Only what its work needs: benchmark and sandbox are opened there, and so are the tasks.
        same = partial(
            Scorer, verdicts=scorer.verdicts, timeout=scorer.timeout, fresh=scorer.fresh, untouched=scorer.untouched
        )
        return partial(_scoring, there, same, self.options, self.used)


def _scoring(
    there: RemoteParts, same: Callable[..., Scorer], options: ReportOptions, used: UsedEnvironments, site: WorkerNode
) -> ScoreWorker:
    there.enter()
    scorer = same(benchmark=there.benchmark.open(), sandbox=there.sandbox.open(site, used))
    return ScoreWorker(scorer=scorer, tasks=_by_id(scorer), options=options, ready=frozenset(), used=used)


def _by_id(scorer: Scorer) -> dict[str, Task]:
    return {task.instance_id: task for task in scorer.benchmark.tasks()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringSetup:
    options: ReportOptions
    executor: Executor
    sandbox: ThrottledSandbox
    skipped: Mapping[str, str]
    """Tasks whose toolchain is missing or too old here, with the reason."""
    described: Mapping[str, str]
    environments: Mapping[str, EnvironmentFacts]

    def worker(self, benchmark: Benchmark, tasks: Iterable[Task], *, untouched: bool = False) -> ScoreWorker:
        """The work that these tasks of the benchmark are."""
        scorer = Scorer(
            benchmark=benchmark,
            sandbox=self.sandbox,
            verdicts=self.executor.share(Verdicts(paths.cache())),
            timeout=self.options.test_timeout_seconds,
            fresh=self.options.fresh,
            untouched=untouched,
        )
        wanted = {task.environment for task in tasks}
        # What is there, or is brought when it is needed.
        ready = frozenset(each for each in wanted if each.tree or each.name in self.environments)
        used = self.executor.share(self.sandbox.environments)
        return ScoreWorker(scorer=scorer, tasks=_by_id(scorer), options=self.options, ready=ready, used=used)

    @property
    def slowed(self) -> str:
        """For the end of a line: why fewer sandboxes than might be are at work."""
        return f", {self.sandbox.slowed}" if self.sandbox.slowed else ""

    def record(self) -> dict[str, object]:
        """For results.json."""
        return {"sandbox": self.described, "environments": {**self.sandbox.environments.record(), **self.environments}}


def set_up(options: ReportOptions, run: Run, tasks: Sequence[Task], left_out: Container[str] = ()) -> ScoringSetup:
    """All that these tasks of a run need, but for those that are left out anyway.

    Raises: UsageError, SandboxError.
    """
    room = DiskSpace((run.folder, run.logs, paths.cache()), sandboxes_at_once(options.test_jobs))
    room.refuse_unwritable()
    stop = Stop()
    stop.watch(room.shortage)
    executors = registry.module("executors", options.executor)
    sandbox = choose(options.sandbox, {task.environment for task in tasks}, Context(options=options), say)
    at_once = sandboxes_at_once(options.test_jobs, sandbox.machine())
    context = Context(options=options, workers=at_once + AHEAD, stop=stop)
    executor: Executor = executors.make(context)
    missing = unsupported_tasks(tasks, sandbox)
    kept = [task for task in tasks if task.instance_id not in left_out and task.instance_id not in missing]
    ready = prepare_all(sandbox, {task.environment for task in kept}, paths.cache(), say)
    return ScoringSetup(
        options=options,
        executor=executor,
        sandbox=ThrottledSandbox(sandbox, at_once, UsedEnvironments(ready.broken), stop),
        skipped=missing,
        # Asked now: when all is done the engine may be gone, and what was done must not be lost with it.
        described=dict(sandbox.describe()),
        environments=ready.record(sandbox),
    )
