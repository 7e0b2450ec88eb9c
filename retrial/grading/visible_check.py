"""The visible check of phase 1: which tests, what they showed before the edit, what they show now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from retrial.errors import InstallDiffers
from retrial.grading import verdict_cache
from retrial.grading.run_check import check_selection, lint, nothing_to_check, select
from retrial.patches import policy
from retrial.patches.policy import Selection
from retrial.protocols import Sandbox
from retrial.types import Check, Outcome, Status, Task, Verdict, fingerprint

FEWER = (None, 2, 1)
"""How many test files to ask of: one that hangs or cannot be loaded must not silence the others."""
HEADROOM = 2.0
"""Times the CPU time of the same tests on the untouched tree that they may take after an edit, if that is more than the
limit: tests that ended just within it must not run out of time for a little load."""

Note = Callable[[str, Verdict | None], None]
"""Writes down that a check was made: by its key, with what came of it if that was not written before."""


class VisibleCheck:
    """The visible check of one task; the same patch is not run twice."""

    def __init__(
        self,
        task: Task,
        tests: Callable[[Iterable[str], int | None], Check | str],
        sandbox: Sandbox,
        verdicts: verdict_cache.Verdicts,
        how: str = "",
        recorded: Mapping[str, Verdict] | None = None,
        earlier: Mapping[str, Verdict] | None = None,
    ) -> None:
        """`recorded` is what the journal of a run has that is played again; it counts where `how` is the same.
        `earlier` is what this task's own has: what was asked then went by it, whatever the limits are now."""
        self._task, self._tests, self._sandbox, self._verdicts = task, tests, sandbox, verdicts
        self._how, self._recorded = how, recorded or {}
        self._earlier = {_patch_key(key): verdict for key, verdict in (earlier or {}).items()}
        self._known: dict[str, tuple[Selection, Verdict]] = {}
        self._before: dict[str, Verdict] = {}

    def __call__(self, patch: str, note: Note | None = None) -> tuple[Selection, Verdict]:
        new = patch not in self._known
        if new:
            self._known[patch] = self._ask(patch)
        selection, verdict = self._known[patch]
        if note is not None:
            note(self._key(patch, selection), verdict if new else None)
        return selection, verdict

    def _ask(self, patch: str) -> tuple[Selection, Verdict]:
        selection = select(self._task, patch)
        if isinstance(selection, Verdict):
            return Selection(patch="", dropped=()), selection
        if not selection.patch:
            return selection, nothing_to_check(selection)
        key = self._key(patch, selection)
        recorded = self._earlier.get(_patch_key(key)) or self._recorded.get(key)
        if recorded is not None:
            # Run again, the same tests would say the same in other words: how long they took, where they lie.
            return selection, recorded
        fallbacks: tuple[str, ...] = ()
        try:
            check, fallbacks = self._choose(policy.changed_paths(selection.patch))
            if isinstance(check, Check):
                verdict = check_selection(self._task, selection, check, self._sandbox)
                return selection, replace(verdict, chosen=check.chosen, fallbacks=fallbacks)
        except InstallDiffers as error:
            # Fewer tests would need the same install.
            check = str(error)
        errors = lint(self._task, selection.patch)
        unverified = Verdict(outcome=Outcome.UNVERIFIED, reason=check, lint=errors, dropped=selection.dropped)
        return selection, replace(unverified, fallbacks=fallbacks)

    def _choose(self, edited: Iterable[str]) -> tuple[Check | str, tuple[str, ...]]:
        """Return a check that can tell something, or why there is none; and why earlier choices were given up."""
        why = ""
        given_up: dict[tuple[str, ...], str] = {}
        for most in FEWER:
            check = self._tests(edited, most)
            if isinstance(check, str):
                # Where there are none, fewer will not help.
                why = check
                break
            usable = self._usable(check)
            if isinstance(usable, Check):
                return usable, tuple(given_up.values())
            why = usable
            given_up[check.chosen] = f"{', '.join(check.chosen) or 'all tests'}: {why}"
        return why, tuple(given_up.values())

    def _key(self, patch: str, selection: Selection) -> str:
        """What a check of this patch is known by in the journal: what was checked, and how."""
        return f"{fingerprint(patch, selection.patch, selection.dropped)[:16]}-{self._how[:8]}"

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
        # On a busy machine the same work takes more CPU time, too.
        seconds = max(check.timeout, HEADROOM * (before.cpu_seconds or 0))
        return replace(check, timeout=seconds, required=replace(check.required, pass_to_pass=green))


def _patch_key(key: str) -> str:
    """What was checked, however."""
    return key.partition("-")[0]


def baseline(task: Task, check: Check, sandbox: Sandbox, verdicts: verdict_cache.Verdicts) -> Verdict:
    """What the visible tests show on the untouched tree; asked once for each choice of tests.

    Raises: NotMeasured.
    """
    untouched = replace(check, lint=False)
    name = verdict_cache.key(task, "", untouched, sandbox)
    found = verdicts.get(name)
    if found is None:
        found = check_selection(task, Selection(patch="", dropped=()), untouched, sandbox, untouched=True)
        # Tests that could not be run, or waited, may have been a busy machine's doing.
        if found.resolved or (found.outcome is Outcome.TIMED_OUT and _used_up(check, found)):
            verdicts.put(name, found)
    return found


def _used_up(check: Check, verdict: Verdict) -> bool:
    """Whether the limit is one of CPU time, and all of that was used: load does not change it."""
    return check.patience > 1 and verdict.cpu_seconds is not None and verdict.cpu_seconds >= check.timeout
