"""Where the tests of report.py run: a sandbox that was chosen, tried and made ready, and workers for it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from retrial import registry
from retrial.executors.limiter import sandboxes_at_once
from retrial.options import ReportOptions
from retrial.protocols import Context, Executor
from retrial.sandboxes import choose
from retrial.sandboxes.prepare import prepare_all, unsupported_tasks
from retrial.sandboxes.throttled import ThrottledSandbox
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.console import say
from retrial.system.host import DiskSpace
from retrial.system.shutdown import Stop
from retrial.types import Environment, Task

AHEAD = 2
"""More workers than sandboxes: they bring images while the others' tests run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringSetup:
    """Ready to be used."""

    executor: Executor
    sandbox: ThrottledSandbox
    skipped: Mapping[str, str]
    """Tasks whose toolchain is missing or too old here, with the reason."""
    described: Mapping[str, str]
    environments: Mapping[str, object]

    def ready(self, tasks: Iterable[Task]) -> frozenset[Environment]:
        """What these tasks need and is there, or is brought when it is needed."""
        wanted = {task.environment for task in tasks}
        return frozenset(each for each in wanted if each.tree or each.name in self.environments)

    @property
    def slowed(self) -> str:
        """For the end of a line: why fewer sandboxes than might be are at work."""
        return f", {self.sandbox.slowed}" if self.sandbox.slowed else ""

    def record(self) -> dict[str, object]:
        """For results.json."""
        return {"sandbox": self.described, "environments": {**self.sandbox.record(), **self.environments}}


def set_up(options: ReportOptions, run: Run, tasks: Sequence[Task], left_out: Container[str] = ()) -> ScoringSetup:
    """All that these tasks of a run need, but for those that are left out anyway.

    Raises: UsageError, SandboxError.
    """
    room = DiskSpace((run.folder, run.logs, paths.cache()), sandboxes_at_once(options.test_jobs))
    room.refuse_unwritable()
    stop = Stop()
    stop.watch(room.shortage)
    sandbox = choose(options.sandbox, {task.environment for task in tasks}, Context(options=options), say)
    at_once = sandboxes_at_once(options.test_jobs, sandbox.machine())
    context = Context(options=options, workers=at_once + AHEAD, stop=stop)
    executor: Executor = registry.module("executors", options.executor).make(context)
    missing = unsupported_tasks(tasks, sandbox)
    kept = [task for task in tasks if task.instance_id not in left_out and task.instance_id not in missing]
    ready = prepare_all(sandbox, {task.environment for task in kept}, paths.cache(), say)
    return ScoringSetup(
        executor=executor,
        sandbox=ThrottledSandbox(sandbox, at_once, ready.broken, stop=stop),
        skipped=missing,
        # Asked now: when all is done the engine may be gone, and what was done must not be lost with it.
        described=dict(sandbox.describe()),
        environments=ready.record(sandbox),
    )
