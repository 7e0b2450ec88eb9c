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
from retrial.reports.analysis.stats import mean_and_spread, pass_at_k, rate
from retrial.reports.scored_row import ScoredRow
from retrial.system.console import first_few, pluralise, printable
from retrial.types import Status, Verdict

IDENTICAL = (
    "all runs came to the same patches, so that their spread says nothing about chance: "
    "whoever answers may take no notice of seeds, as many do at --temperature 0"
)
CONDITIONS = ("sandbox", "limits", "versions", "served")
"""Of a run.json: what should be the same where seeds alone are to differ."""
SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One of several runs on the same tasks, scored."""

    run: str
    seed: int
    resolved: Mapping[str, bool]
    """Of all that was measured."""
    not_measured: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    void: Mapping[str, str] = field(default_factory=dict)
    spent: Usage = field(default_factory=Usage)
    patches: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """One task in all runs."""

    instance_id: str
    resolved: tuple[bool | None, ...]
    """Run by run; None where it was not measured."""

    @property
    def n(self) -> int:
        """How often it was measured."""
        return sum(each is not None for each in self.resolved)

    @property
    def c(self) -> int:
        """How often it was resolved."""
        return sum(each is True for each in self.resolved)

    @property
    def flips(self) -> bool:
        return 0 < self.c < self.n


def together(runs: Sequence[Repeat], not_started: Sequence[str] = ()) -> dict[str, Any]:
    """What results.json has of repeats: each run, their mean and spread, and every task in all of them."""
    tasks = _tasks(runs)
    common = [task for task in tasks if task.n == len(runs)]
    twice = [task for task in tasks if task.n > 1]
    flips = {task.instance_id: list(task.resolved) for task in twice if task.flips}
    return {
        "common": {
            "measured_by_all": len(common),
            "of": len(tasks),
            "instance_ids": [task.instance_id for task in common],
        },
        "runs": [_row(run, common, place) for place, run in enumerate(runs)],
        **_spread(common, len(runs)),
        **_pass_at(tasks, len(runs)),
        "always": [task.instance_id for task in twice if task.c == task.n],
        "never": [task.instance_id for task in twice if task.c == 0],
        "flips": flips,
        "flip_rate": round(100 * len(flips) / len(twice), 2) if twice else None,
        "disagreement": _disagreement(twice),
        "void": {key: why for run in runs for key, why in run.void.items()},
        "identical": identical([run.patches for run in runs]),
        "conditions_differ": _differing(runs),
        "not_started": list(not_started),
        "spent": sum((run.spent for run in runs), Usage()),
        "instances": [
            {"instance_id": task.instance_id, "resolved": list(task.resolved), "n": task.n, "c": task.c}
            for task in tasks
        ],
    }


def _tasks(runs: Sequence[Repeat]) -> list[Repeated]:
    """All that any run was asked for and could have measured, by id."""
    names = sorted({key for run in runs for key in (*run.resolved, *run.not_measured)})
    return [Repeated(instance_id=name, resolved=tuple(run.resolved.get(name) for run in runs)) for name in names]


def _row(run: Repeat, common: Sequence[Repeated], place: int) -> dict[str, Any]:
    cost = run.spent.cost
    return {
        "run": run.run,
        "seed": run.seed,
        **rate(sum(run.resolved.values()), len(run.resolved)),
        "rate_common": rate(sum(bool(task.resolved[place]) for task in common), len(common)),
        "not_measured": len(run.not_measured),
        "skipped": len(run.skipped),
        "cost": None if cost is None else round(cost, 6),
    }


def _spread(common: Sequence[Repeated], runs: int) -> dict[str, Any]:
    """The mean over the tasks that all runs measured, and how far runs lie apart; in percent, and in points of it."""
    if not common:
        return {"mean": None, "spread": None, "standard_error_tasks": None}
    percents = [100 * statistics.fmean(bool(task.resolved[place]) for task in common) for place in range(runs)]
    mean, deviation = mean_and_spread(percents)
    _, between_tasks = mean_and_spread([100 * task.c / task.n for task in common])
    return {
        "mean": round(mean, 2),
        "spread": {
            "standard_deviation": _rounded(deviation),
            "standard_error": _standard_error(deviation, runs),
            "min": round(min(percents), 2),
            "max": round(max(percents), 2),
            "runs": runs,
        },
        "standard_error_tasks": _standard_error(between_tasks, len(common)),
    }


def _disagreement(twice: Sequence[Repeated]) -> float | None:
    """How often two repeats of a task disagree: unlike the share of tasks that flip, it does not grow with repeats."""
    share = stats.disagreement((task.n, task.c) for task in twice)
    return _rounded(None if share is None else 100 * share)


def _pass_at(tasks: Sequence[Repeated], runs: int) -> dict[str, Any]:
    """For each k, of the tasks that were measured at least so often."""
    found: dict[str, float | None] = {}
    of: dict[str, int] = {}
    for k in range(1, runs + 1):
        shares = [pass_at_k(task.n, task.c, k) for task in tasks if task.n >= k]
        of[str(k)] = len(shares)
        found[str(k)] = round(100 * statistics.fmean(shares), 2) if shares else None
    return {"pass_at": found, "pass_at_of": of}


def identical(runs: Sequence[Mapping[str, str]]) -> bool:
    """Whether at least two runs have the same patch for every task that all of them have, and not just none."""
    if len(runs) < 2:
        return False
    shared = set.intersection(*(set(run) for run in runs))
    return any(runs[0][key] for key in shared) and all(run[key] == runs[0][key] for run in runs for key in shared)


def _differing(runs: Sequence[Repeat]) -> dict[str, dict[str, Any]]:
    """Conditions that are not the same in all runs: name → run → what it was there."""
    found = {name: {run.run: run.conditions.get(name) for run in runs} for name in CONDITIONS}
    return {name: own for name, own in found.items() if any(each != own[runs[0].run] for each in own.values())}


def _standard_error(deviation: float | None, of: int) -> float | None:
    return None if deviation is None else _rounded(deviation / sqrt(of))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def flaky(scorings: Sequence[Sequence[ScoredRow]]) -> dict[str, Any]:
    """`repeats` in results.json: whose verdict was not the same in all scorings that could measure it, and by which
    tests. What could not be measured is our fault, and no sign of a flaky test."""
    verdicts: dict[str, list[Verdict]] = {}
    for row in (row for scoring in scorings for row in scoring):
        verdicts.setdefault(row.task.instance_id, []).append(row.verdict)
    measured = {key: [each for each in own if each.outcome.measured] for key, own in sorted(verdicts.items())}
    different = [key for key, own in measured.items() if len({each.outcome for each in own}) > 1]
    steady = [key for key, own in measured.items() if len(own) > 1 and key not in different]
    flickering = {key: _differing_tests(verdicts[key]) for key in steady}
    return {
        "times": len(scorings),
        "of": len(verdicts),
        "flaky": {
            key: {
                "outcomes": [each.outcome for each in verdicts[key]],
                "tests": _differing_tests(verdicts[key]),
            }
            for key in different
        },
        "stable": len(steady),
        "flaky_tests": {key: tests for key, tests in flickering.items() if tests},
        "not_measured": [key for key, own in measured.items() if len(own) < len(scorings)],
    }


def _differing_tests(verdicts: Sequence[Verdict]) -> dict[str, list[Status | None]]:
    """Of scorings that came to tests: those that did not end the same way in all of them; None where one is missing."""
    ran = [each.tests for each in verdicts if each.outcome.measured and each.tests]
    names = sorted({name for tests in ran for name in tests})
    differing = [name for name in names if len({tests.get(name) for tests in ran}) > 1]
    return {name: [each.tests.get(name) for each in verdicts] for name in differing}


def told(content: Mapping[str, Any]) -> str:
    """What several scorings showed, for the end of what report.py prints; empty where there was one."""
    found = content.get("repeats")
    if not found:
        return ""
    lines = [
        f"flaky         {len(found['flaky'])} of {pluralise(found['of'], 'instance')} gave different verdicts "
        f"in {found['times']} scorings" + (":" if found["flaky"] else ""),
        *(f"  {key}: {_shown(each)}" for key, each in list(found["flaky"].items())[:SHOWN]),
    ]
    if len(found["flaky"]) > SHOWN:
        lines.append(f"  and {len(found['flaky']) - SHOWN} more")
    if found["flaky_tests"]:
        lines.append(
            f"  tests that differ in others, without changing a verdict: {first_few(list(found['flaky_tests']))}"
        )
    if found["not_measured"]:
        lines.append(f"  not measured in every scoring: {first_few(found['not_measured'])}")
    return "\n".join(lines)


def _shown(each: Mapping[str, Any]) -> str:
    tests = [f"{printable(name)} ({', '.join(map(_word, own))})" for name, own in each["tests"].items()]
    return first_few(tests) if tests else f"({', '.join(map(_word, each['outcomes']))})"


def _word(status: str | None) -> str:
    return (status or "missing").replace("_", " ")
