"""The same again: what several runs on the same tasks say together, and what scoring one run several times shows.

The spread of repeats is that of other seeds on *these* tasks. How far the mean would move on other tasks is another
question, which `standard_error_tasks` answers: repeats of a task are no tasks of their own, so a task counts once, with
the share of its repeats that resolved it. No interval is made of the spread: of three runs, one would be a guess.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from retrial.chat import Usage
from retrial.reports.analysis import stats
from retrial.reports.analysis.cases import ScoredRow
from retrial.reports.analysis.rungs import Common, GroupMember
from retrial.reports.analysis.stats import Rate, pass_at_k, rate
from retrial.store.json_io import FLAT
from retrial.system.console import first_few, pluralise, printable
from retrial.types import Outcome, Status, Verdict

IDENTICAL = (
    "all runs came to the same patches, so that their spread says nothing about chance: "
    "whoever answers may take no notice of seeds, as many do at --temperature 0"
)
CONDITIONS = ("sandbox", "limits", "versions", "served")
"""Of a run.json: what should be the same where seeds alone are to differ."""
SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """One task in all runs."""

    instance_id: str
    resolved: tuple[bool | None, ...]
    """Run by run; None where it was not measured."""
    n: int
    """How often it was measured."""
    c: int
    """How often it was resolved."""

    @property
    def flips(self) -> bool:
        return 0 < self.c < self.n


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatRow:
    """One run, as results.json has it."""

    run: str
    seed: int
    rate: Rate = field(metadata=FLAT)
    rate_common: Rate
    not_measured: int
    skipped: int
    cost: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How far runs lie apart, in points."""

    standard_deviation: float | None
    standard_error: float | None
    min: float
    max: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What runs on the same tasks say together: each run, their mean and spread, and every task in all of them."""

    common: Common
    runs: Sequence[RepeatRow]
    mean: float | None
    """Over the tasks that all runs measured, in percent."""
    spread: Spread | None
    standard_error_tasks: float | None
    pass_at: Mapping[str, float | None]
    """For each k, of the tasks that were measured at least so often."""
    pass_at_of: Mapping[str, int]
    always: Sequence[str]
    never: Sequence[str]
    flips: Mapping[str, Sequence[bool | None]]
    flip_rate: float | None
    disagreement: float | None
    void: Mapping[str, str]
    identical: bool
    conditions_differ: Mapping[str, Mapping[str, Any]]
    """Conditions that are not the same in all runs: name → run → what it was there."""
    not_started: Sequence[str]
    spent: Usage
    instances: Sequence[Repeated]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyTask:
    outcomes: Sequence[Outcome]
    tests: Mapping[str, Sequence[Status | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flakiness:
    """`repeats` of results.json: what several scorings of one run showed."""

    times: int
    of: int
    flaky: Mapping[str, FlakyTask]
    stable: int
    flaky_tests: Mapping[str, Mapping[str, Sequence[Status | None]]]
    not_measured: Sequence[str]


def together(runs: Sequence[GroupMember], not_started: Sequence[str] = ()) -> Together:
    tasks = _tasks(runs)
    common = [task for task in tasks if task.n == len(runs)]
    twice = [task for task in tasks if task.n > 1]
    flips = {task.instance_id: list(task.resolved) for task in twice if task.flips}
    percents = [_percent(common, place) for place in range(len(runs))] if common else []
    pass_at = {k: _pass_at(tasks, k) for k in range(1, len(runs) + 1)}
    return Together(
        common=Common(measured_by_all=len(common), of=len(tasks), instance_ids=[task.instance_id for task in common]),
        runs=[_row(run, common, place) for place, run in enumerate(runs)],
        mean=round(statistics.fmean(percents), 2) if percents else None,
        spread=_spread(percents) if percents else None,
        standard_error_tasks=_standard_error([100 * task.c / task.n for task in common]),
        pass_at={str(k): share for k, (share, _) in pass_at.items()},
        pass_at_of={str(k): of for k, (_, of) in pass_at.items()},
        always=[task.instance_id for task in twice if task.c == task.n],
        never=[task.instance_id for task in twice if task.c == 0],
        flips=flips,
        flip_rate=stats.percent(len(flips), len(twice)),
        disagreement=_disagreement(twice),
        void={key: why for run in runs for key, why in run.void.items()},
        identical=identical([run.patches for run in runs]),
        conditions_differ=_differing(runs),
        not_started=list(not_started),
        spent=sum((run.spent for run in runs), Usage()),
        instances=tasks,
    )


def _tasks(runs: Sequence[GroupMember]) -> list[Repeated]:
    """All that any run was asked for and could have measured, by id."""
    resolved = [{case.instance_id: case.resolved for case in run.measured} for run in runs]
    names = sorted({key for run, own in zip(runs, resolved, strict=True) for key in (*own, *run.not_measured)})
    found = {name: tuple(own.get(name) for own in resolved) for name in names}
    return [
        Repeated(instance_id=name, resolved=own, n=len(own) - own.count(None), c=own.count(True))
        for name, own in found.items()
    ]


def _row(run: GroupMember, common: Sequence[Repeated], place: int) -> RepeatRow:
    return RepeatRow(
        run=run.listed.run,
        seed=run.listed.seed or 0,
        rate=rate(sum(case.resolved for case in run.measured), len(run.measured)),
        rate_common=rate(sum(bool(task.resolved[place]) for task in common), len(common)),
        not_measured=len(run.not_measured),
        skipped=len(run.skipped),
        cost=stats.rounded(run.spent.cost),
    )


def _percent(common: Sequence[Repeated], place: int) -> float:
    """Of one run, over the tasks that all measured."""
    return 100 * statistics.fmean(bool(task.resolved[place]) for task in common)


def _spread(percents: Sequence[float]) -> Spread:
    return Spread(
        standard_deviation=round(statistics.stdev(percents), 2) if len(percents) > 1 else None,
        standard_error=_standard_error(percents),
        min=round(min(percents), 2),
        max=round(max(percents), 2),
        runs=len(percents),
    )


def _disagreement(twice: Sequence[Repeated]) -> float | None:
    """How often two repeats of a task disagree: unlike the share of tasks that flip, it does not grow with repeats."""
    found = [2 * task.c * (task.n - task.c) / (task.n * (task.n - 1)) for task in twice]
    return round(100 * statistics.fmean(found), 2) if found else None


def _pass_at(tasks: Sequence[Repeated], k: int) -> tuple[float | None, int]:
    """In percent, and of how many tasks: those that were measured at least k times."""
    shares = [pass_at_k(task.n, task.c, k) for task in tasks if task.n >= k]
    return round(100 * statistics.fmean(shares), 2) if shares else None, len(shares)


def identical(runs: Sequence[Mapping[str, str]]) -> bool:
    """Whether at least two runs have the same patch for every task that all of them have, and not just none."""
    if len(runs) < 2:
        return False
    shared = set.intersection(*(set(run) for run in runs))
    return any(runs[0][key] for key in shared) and all(run[key] == runs[0][key] for run in runs for key in shared)


def _differing(runs: Sequence[GroupMember]) -> dict[str, dict[str, Any]]:
    found = {name: {run.listed.run: run.conditions.get(name) for run in runs} for name in CONDITIONS}
    return {name: own for name, own in found.items() if any(each != own[runs[0].listed.run] for each in own.values())}


def _standard_error(values: Sequence[float]) -> float | None:
    return round(statistics.stdev(values) / sqrt(len(values)), 2) if len(values) > 1 else None


def flaky(scorings: Sequence[Sequence[ScoredRow]]) -> Flakiness:
    """Whose verdict was not the same in all scorings that could measure it, and by which tests.

    What could not be measured is our fault, and no sign of a flaky test.
    """
    verdicts: dict[str, list[Verdict]] = {}
    for row in (row for scoring in scorings for row in scoring):
        verdicts.setdefault(row.task.instance_id, []).append(row.verdict)
    measured = {key: [each for each in own if each.outcome.measured] for key, own in sorted(verdicts.items())}
    different = [key for key, own in measured.items() if len({each.outcome for each in own}) > 1]
    steady = [key for key, own in measured.items() if len(own) > 1 and key not in different]
    flickering = {key: _differing_tests(verdicts[key]) for key in steady}
    return Flakiness(
        times=len(scorings),
        of=len(verdicts),
        flaky={
            key: FlakyTask(outcomes=[each.outcome for each in verdicts[key]], tests=_differing_tests(verdicts[key]))
            for key in different
        },
        stable=len(steady),
        flaky_tests={key: tests for key, tests in flickering.items() if tests},
        not_measured=[key for key, own in measured.items() if len(own) < len(scorings)],
    )


def _differing_tests(verdicts: Sequence[Verdict]) -> dict[str, list[Status | None]]:
    """Of scorings that came to tests: those that did not end the same way in all of them; None where one is missing."""
    ran = [each.tests for each in verdicts if each.outcome.measured and each.tests]
    names = sorted({name for tests in ran for name in tests})
    differing = [name for name in names if len({tests.get(name) for tests in ran}) > 1]
    return {name: [each.tests.get(name) for each in verdicts] for name in differing}


def told(found: Flakiness) -> str:
    """What several scorings showed, for the end of what report.py prints."""
    lines = [
        f"flaky         {len(found.flaky)} of {pluralise(found.of, 'instance')} gave different verdicts "
        f"in {found.times} scorings" + (":" if found.flaky else ""),
        *(f"  {key}: {_shown(each)}" for key, each in list(found.flaky.items())[:SHOWN]),
    ]
    if len(found.flaky) > SHOWN:
        lines.append(f"  and {len(found.flaky) - SHOWN} more")
    if found.flaky_tests:
        lines.append(f"  tests that differ in others, without changing a verdict: {first_few(list(found.flaky_tests))}")
    if found.not_measured:
        lines.append(f"  not measured in every scoring: {first_few(found.not_measured)}")
    return "\n".join(lines)


def _shown(each: FlakyTask) -> str:
    tests = [f"{printable(name)} ({', '.join(map(_word, own))})" for name, own in each.tests.items()]
    return first_few(tests) if tests else f"({', '.join(map(_word, each.outcomes))})"


def _word(status: str | None) -> str:
    return (status or "missing").replace("_", " ")
