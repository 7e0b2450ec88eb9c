"""Phase 1 as work for an executor: one task in, its prediction out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from retrial import GRADING, cache
from retrial.attempts import Prediction
from retrial.desk import Desk, TaskDesk
from retrial.plan import Plan
from retrial.sandboxes import Bounded
from retrial.solve import Ladder, solve
from retrial.types import Check, Task, fingerprint
from retrial.visible import VisibleCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Solving:
    """Safe to call from many threads."""

    plan: Plan
    ladder: Ladder
    sandbox: Bounded
    desk: Desk
    verdicts: cache.Verdicts

    def __call__(self, task: Task) -> Prediction:
        # Before anything is paid for.
        if self.plan.options.visible_tests != "none" and self.plan.recording is None:
            self.sandbox.have(task.environment)
        desk = TaskDesk(task.instance_id, self.desk, self.ladder.max_cost)
        try:
            return solve(task, self.ladder, self._check(task, desk), desk)
        finally:
            self.desk.close(task.instance_id)

    def _check(self, task: Task, desk: TaskDesk) -> VisibleCheck:
        options = self.plan.options
        digest = self.plan.benchmark.provenance["digest"]
        how = fingerprint(digest, options.visible_tests, options.test_timeout_seconds, GRADING)
        known = self.plan.recording.verdicts(task.instance_id) if self.plan.recording else None
        return VisibleCheck(task, partial(self._visible, task), self.sandbox, self.verdicts, desk, how, known)

    def _visible(self, task: Task, edited: Iterable[str], most: int | None) -> Check | str:
        check = self.plan.benchmark.visible(task.instance_id, edited, most)
        if isinstance(check, str):
            return check
        return replace(check, timeout=self.plan.options.test_timeout_seconds or check.timeout)
