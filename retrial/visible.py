"""The visible check of phase 1: which tests, what they showed before the edit, what they show now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from retrial import cache, patches
from retrial.checks import check_selection, lint, nothing_to_check, select
from retrial.patches import Selection
from retrial.protocols import Sandbox
from retrial.types import Check, Outcome, Status, Task, Verdict

FEWER = (None, 2, 1)
"""How many test files to ask of: one that hangs or cannot be loaded must not silence the others."""


class VisibleCheck:
    """The visible check of one task; the same patch is not run twice."""

    def __init__(
        self,
        task: Task,
        tests: Callable[[Iterable[str], int | None], Check | str],
        sandbox: Sandbox,
        verdicts: cache.Verdicts,
    ) -> None:
        self._task, self._tests, self._sandbox, self._verdicts = task, tests, sandbox, verdicts
        self._known: dict[str, tuple[Selection, Verdict]] = {}
        self._before: dict[str, Verdict] = {}

    def __call__(self, patch: str) -> tuple[Selection, Verdict]:
        if patch not in self._known:
            self._known[patch] = self._ask(patch)
        return self._known[patch]

    def _ask(self, patch: str) -> tuple[Selection, Verdict]:
        selection = select(self._task, patch)
        if isinstance(selection, Verdict):
            return Selection(patch="", dropped=()), selection
        if not selection.patch:
            return selection, nothing_to_check(selection)
        edited, why = patches.touched(selection.patch), ""
        for most in FEWER:
            check = self._tests(edited, most)
            if isinstance(check, str):
                # Where there are none, fewer will not help.
                why = check
                break
            usable = self._usable(check)
            if isinstance(usable, Check):
                return selection, check_selection(self._task, selection, usable, self._sandbox)
            why = usable
        errors = lint(self._task, selection.patch)
        return selection, Verdict(outcome=Outcome.UNVERIFIED, reason=why, lint=errors, dropped=selection.dropped)

    def _usable(self, check: Check) -> Check | str:
        """The check, asking only for what was green before: a repository's own tests need not all pass.

        Or why it tells nothing.
        """
        if check.required is None:
            return check
        if check.digest not in self._before:
            self._before[check.digest] = baseline(self._task, check, self._sandbox, self._verdicts)
        before = self._before[check.digest]
        green = tuple(sorted(test for test, status in before.tests.items() if status is Status.PASSED))
        if not before.resolved or not green:
            why = before.reason or "none of them passes"
            return f"the visible tests say nothing on the untouched tree: {why}"
        return replace(check, required=replace(check.required, pass_to_pass=green))


def baseline(task: Task, check: Check, sandbox: Sandbox, verdicts: cache.Verdicts) -> Verdict:
    """What the visible tests show on the untouched tree; asked once for each choice of tests.

    Raises: NotMeasured.
    """
    untouched = replace(check, lint=False)
    name = cache.key(task, "", untouched, sandbox)
    found = verdicts.get(name)
    if found is None:
        found = check_selection(task, Selection(patch="", dropped=()), untouched, sandbox, untouched=True)
        if found.resolved:
            # Tests that could not be run may have been a busy machine's doing.
            verdicts.put(name, found)
    return found
