"""Reference runs: what the known solution shows in this environment. One cached thing.

The first scoring of a task in an environment runs its reference once, with all its canary candidates in place: that
says which tests there are, whether the task can tell right from wrong here, and which canary fails as it must.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from retrial import registry
from retrial.checks import Answer, Canary, Check
from retrial.grading import canaries, verdict_cache
from retrial.grading.judge import EXIT_STATUS, proof
from retrial.grading.run_check import language_of, run_check
from retrial.languages.canaries.candidates import NAME
from retrial.protocols import Sandbox
from retrial.types import Outcome, Status, Task, Verdict

RUNS = 6
"""At the most, to find a canary that does not keep the others from being compiled or run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the reference solution showed here. Verdict and canaries are cached."""

    verdict: Verdict
    canaries: tuple[Canary, ...]
    """The best of those that the reference fails by an assertion."""
    cached: bool = field(default=False, repr=False)
    ran_out_of_time: bool = field(default=False, repr=False)
    """Candidates ran out of time: on another day there may be more canaries."""

    @property
    def strong(self) -> bool:
        """It passed, and a canary that is a copy of a real test failed as it must."""
        return self.verdict.resolved and any(canary.strong for canary in self.canaries)

    @property
    def timed_out(self) -> bool:
        return self.verdict.outcome is Outcome.TIMED_OUT

    @property
    def expected(self) -> Mapping[str, Status] | None:
        """The tests a solution must pass; unknown when the reference itself fails."""
        return self.verdict.tests if self.verdict.resolved else None

    @property
    def void(self) -> str:
        """Why the task cannot tell right from wrong here; empty when it can."""
        return "" if self.verdict.resolved else f"its reference fails here: {self.verdict.reason}"

    def proof(self, check: Check) -> str:
        """Of the reference's own run."""
        return proof(self.strict(check))

    def strict(self, check: Check) -> Check:
        """The check as it is asked of any other patch."""
        return replace(
            check, expected=self.expected, canaries=self.canaries, run_may_change=frozenset(self.verdict.changed)
        )


def reference(
    task: Task, answer: Answer, sandbox: Sandbox, verdicts: verdict_cache.Verdicts, *, fresh: bool = False
) -> Reference:
    """Runs the reference once for each environment. One that fails is not cached: it may have been load."""
    check = replace(answer.check, allow_skips=True)
    name = verdict_cache.key(task, answer.patch, check, sandbox)
    found = None if fresh else verdicts.value(name, Reference)
    if found is not None:
        return replace(found, cached=True)
    known = _find_failing_canaries(task, answer.patch, check, sandbox)
    if known.verdict.resolved and not known.ran_out_of_time:
        verdicts.put_value(name, known)
    return known


def _find_failing_canaries(task: Task, patch: str, check: Check, sandbox: Sandbox) -> Reference:
    """All candidates at once; where they keep the reference from passing, fewer of them, down to none."""
    run = partial(_run, task, patch, sandbox=sandbox)
    whole = _candidates(task, check)
    first = run(check, whole)
    if whole and first.timed_out:
        # Candidates get time of their own only after the task's own tests have ended.
        own = run(check, ())
        if not own.verdict.resolved:
            return replace(own, ran_out_of_time=True)
        check = replace(check, own_ended=True)
        first = run(check, whole)
    if not whole or first.verdict.resolved:
        return first
    found = _fewer(partial(run, check), whole, ran_out_of_time=first.timed_out)
    if not found.verdict.resolved:
        return found
    # It failed with all of them and passed with fewer: that may have been the moment, not the candidates.
    again = run(check, whole)
    return again if again.strong else replace(found, ran_out_of_time=found.ran_out_of_time or again.timed_out)


def _fewer(
    run: Callable[[Sequence[Canary]], Reference], whole: Sequence[Canary], *, ran_out_of_time: bool
) -> Reference:
    """What smaller groups of candidates show, large ones first: one that cannot be compiled is not to cost all."""
    best: Reference | None = None
    groups = _halves(whole)
    for _ in range(RUNS - 1):
        if not groups:
            break
        group = groups.pop(0)
        found = run(group)
        if found.strong:
            return found
        if found.verdict.resolved:
            best = found if best is None or not best.canaries else best
        else:
            groups += _halves(group)
        ran_out_of_time = ran_out_of_time or found.timed_out
    return replace(best or run(()), ran_out_of_time=ran_out_of_time)


def _halves(group: Sequence[Canary]) -> list[Sequence[Canary]]:
    half = len(group) // 2
    return [group[:half], group[half:]] if half else []


def _run(task: Task, patch: str, check: Check, group: Sequence[Canary], *, sandbox: Sandbox) -> Reference:
    if not group:
        return Reference(verdict=run_check(task, patch, check, sandbox), canaries=())
    planted = replace(canaries.plant(check, group), is_reference_run=True)
    verdict = run_check(task, patch, planted, sandbox)
    proved = [
        replace(canary, id=_id(name, verdict))
        for canary, name in zip(group, planted.planted, strict=True)
        if name in verdict.proved
    ]
    return Reference(verdict=verdict, canaries=_kept(proved))


def _id(name: str, verdict: Verdict) -> str:
    """The plainest under which it failed."""
    return min((id for id in verdict.proved_ids if name in id), key=len).replace(name, NAME)


def _kept(proved: Sequence[Canary]) -> tuple[Canary, ...]:
    """The best of each test; a weak one only where there is no other."""
    strong = [canary for canary in proved if canary.strong]
    of_each = {(canary.path, canary.places, canary.test): canary for canary in reversed(strong)}
    best = [canary for canary in strong if canary in of_each.values()]
    sure = [canary for canary in best if not canary.unsure]
    return tuple(sure if len(sure) >= canaries.DRAWN else best) or tuple(proved[:1])


def _candidates(task: Task, check: Check) -> tuple[Canary, ...]:
    if check.result_parser == EXIT_STATUS:
        return ()
    language = language_of(task)
    made: tuple[Canary, ...] = registry.load(language.canaries).canaries(check.files) if language.canaries else ()
    return made
