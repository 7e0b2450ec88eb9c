"""The visible check of phase 1: which tests, what they showed before the edit, what they show now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from retrial.checks import Check
from retrial.errors import InstallDiffers
from retrial.grading import verdict_cache
from retrial.grading.judge import own_grader
from retrial.grading.run_check import check_selection, lint, nothing_to_check, select
from retrial.patches import policy
from retrial.patches.policy import Selection
from retrial.protocols import Benchmark, Sandbox
from retrial.types import Outcome, Status, Task, Verdict, fingerprint

FEWER = (None, 2, 1)
"""How many test files to ask of: one that hangs or cannot be loaded must not silence the others."""
HEADROOM = 2.0
"""Times the CPU time of the same tests on the untouched tree that they may take after an edit, if that is more than the
limit: tests that ended just within it must not run out of time for a little load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalledVerdicts:
    """What journals have of one task's visible checks, by the key of a check."""

    how: str = ""
    """How checks are made now."""
    recorded: Mapping[str, Verdict] = field(default_factory=dict)
    """Of a run that is played again; they count where `how` is the same."""
    earlier: Mapping[str, Verdict] = field(default_factory=dict)
    """Of this task's own journal: what was asked then went by them, whatever the limits are now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the visible check says of one patch."""

    key: str
    """What the journal knows it by: what was checked, and how."""
    selection: Selection
    verdict: Verdict
    repeated: bool = False
    """The same patch was asked about before."""


class VisibleCheck:
    """The visible check of one task; the same patch is not run twice."""

    def __init__(
        self,
        benchmark: Benchmark,
        task: Task,
        sandbox: Sandbox,
        verdicts: verdict_cache.Verdicts,
        timeout: float | None = None,
        journalled: JournalledVerdicts | None = None,
    ) -> None:
        """`timeout` is in place of each check's own."""
        self._benchmark, self._task, self._sandbox, self._verdicts = benchmark, task, sandbox, verdicts
        self._timeout, self._journalled = timeout, journalled or JournalledVerdicts()
        self._earlier = {_patch_key(key): verdict for key, verdict in self._journalled.earlier.items()}
        self._known: dict[str, Checked] = {}
        self._before: dict[str, Verdict] = {}

    def __call__(self, patch: str) -> Checked:
        if patch in self._known:
            return replace(self._known[patch], repeated=True)
        selected = select(self._task, patch)
        selection = Selection(patch="", dropped=()) if isinstance(selected, Verdict) else selected
        key = self._key(patch, selection)
        verdict = selected if isinstance(selected, Verdict) else self._verdict(key, selection)
        self._known[patch] = Checked(key=key, selection=selection, verdict=verdict)
        return self._known[patch]

    def _verdict(self, key: str, selection: Selection) -> Verdict:
        if not selection.patch:
            return nothing_to_check(selection)
        recorded = self._earlier.get(_patch_key(key)) or self._journalled.recorded.get(key)
        if recorded is not None:
            # A rerun would differ only in timings and temporary paths.
            return recorded
        fallbacks: tuple[str, ...] = ()
        try:
            check, fallbacks = self._choose(policy.changed_paths(selection.patch))
            if isinstance(check, Check):
                verdict = check_selection(self._task, selection, check, self._sandbox)
                return replace(verdict, chosen=check.chosen, fallbacks=fallbacks)
        except InstallDiffers as error:
            # Fewer tests would need the same install.
            check = str(error)
        errors = lint(self._task, selection.patch)
        unverified = Verdict(outcome=Outcome.UNVERIFIED, reason=check, lint=errors, dropped=selection.dropped)
        return replace(unverified, fallbacks=fallbacks)

    def _choose(self, edited: Iterable[str]) -> tuple[Check | str, tuple[str, ...]]:
        """Return a check that can tell something, or why there is none; and why earlier choices were given up."""
        why = ""
        given_up: dict[tuple[str, ...], str] = {}
        for most in FEWER:
            check = self._benchmark.visible(self._task.instance_id, edited, most)
            if isinstance(check, str):
                # Where there are none, fewer will not help.
                why = check
                break
            usable = self._usable(replace(check, timeout=self._timeout or check.timeout))
            if isinstance(usable, Check):
                return usable, tuple(given_up.values())
            why = usable
            given_up[check.chosen] = f"{', '.join(check.chosen) or 'all tests'}: {why}"
        return why, tuple(given_up.values())

    def _key(self, patch: str, selection: Selection) -> str:
        return f"{fingerprint(patch, selection.patch, selection.dropped)[:16]}-{self._journalled.how[:8]}"

    def _usable(self, check: Check) -> Check | str:
        """The check, asking only for what was green before: a repository's own tests need not all pass.

        Or why it tells nothing.
        """
        grader = own_grader(check)
        if grader is None:
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
        return grader.requiring(replace(check, timeout=seconds), green)


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
