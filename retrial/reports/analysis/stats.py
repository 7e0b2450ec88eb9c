"""Rates with their uncertainty, whether two of them differ by more than chance, and sums of what may be unknown.

What each number is, by which formula, and when to believe it: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, comb, exp, log, log1p, log2, sqrt
from statistics import NormalDist

from retrial.store.json_io import IF_GIVEN

Z95 = 1.959963984540054
Z_POWER = 0.8416212335729143
"""Of a normal distribution 80 % lie below it."""
LEVEL = 0.05
"""What happens less often than this when there is nothing to see is called more than chance."""
ROUNDING = 1e-9
HALF = 0.5
"""A task, put into each of the four cells that two outcomes make."""


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion; (0, 1) when nothing was tried."""
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    spread = Z95 * Z95 / trials
    centre = (share + spread / 2) / (1 + spread)
    half = Z95 * sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    # At the ends rounding would leave the interval by a hair.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == trials else centre + half
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share in percent with its interval, as results.json has it."""

    percent: float | None
    """None, as the interval, where an agent that did not work has none."""
    low: float | None
    high: float | None
    resolved: int
    of: int

    @property
    def text(self) -> str:
        """For people."""
        return f"{self.percent:.1f} % (95 % interval {self.low:.1f} to {self.high:.1f})"

    @property
    def share(self) -> str:
        return f"{self.resolved}/{self.of}"

    @property
    def short(self) -> str:
        """For a cell; of nothing there is none."""
        return f"{self.percent:.1f} % ({self.low:.0f} to {self.high:.0f})" if self.of else "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRate(Rate):
    """`rate` of results.json."""

    attempts: str | None = field(default=None, metadata=IF_GIVEN)
    """`2+` as soon as one chosen patch had more than one go at it."""
    visible_is_hidden: bool | None = field(default=None, metadata=IF_GIVEN)


NO_RATE = Rate(percent=None, low=None, high=None, resolved=0, of=0)


def rate(resolved: int, of: int) -> Rate:
    low, high = wilson(resolved, of)
    percent = 100 * resolved / of if of else 0.0
    return Rate(percent=round(percent, 2), low=round(100 * low, 2), high=round(100 * high, 2), resolved=resolved, of=of)


def percent(part: float, of: float) -> float | None:
    """None of nothing."""
    return round(100 * part / of, 2) if of else None


def rounded(cost: float | None) -> float | None:
    """USD; None where it is unknown."""
    return None if cost is None else round(cost, 6)


def for_each(cost: float | None, number: int) -> float | None:
    """USD for each of so many; None also where there is none."""
    return None if cost is None or number <= 0 else round(cost / number, 6)


def total(costs: Iterable[float | None]) -> float | None:
    """None, unknown, as soon as one of them is."""
    found = list(costs)
    known = [cost for cost in found if cost is not None]
    return sum(known) if len(known) == len(found) else None


def mcnemar(gained: int, lost: int) -> float:
    """The exact two-sided p of McNemar's test: how often as many tasks or more would go to one side by chance."""
    discordant, fewer = gained + lost, min(gained, lost)
    if gained == lost:
        return 1.0
    ways = term = 1
    for taken in range(fewer):
        term = term * (discordant - taken) // (taken + 1)
        ways += term
    p: float = 2 * ways / 2**discordant
    return p


def holm(chances: Sequence[float]) -> list[float]:
    """Each p for one of so many tests, adjusted by Holm's step-down method."""
    order = sorted(range(len(chances)), key=chances.__getitem__)
    stepped = [min(1.0, (len(chances) - place) * chances[index]) for place, index in enumerate(order)]
    adjusted = dict(zip(order, accumulate(stepped, max), strict=True))
    return [adjusted[index] for index in range(len(chances))]


def paired_interval(gained: int, lost: int, of: int) -> tuple[float, float]:
    """The 95 % bootstrap interval (percentiles) of a difference of two rates on the same tasks; (-1, 1) of none.

    Tasks are drawn again from those seen and half a task more of each kind: few that differ, or none, are no proof
    that there is nothing to differ in. A draw adds one, takes one or does nothing, so that what infinitely many
    resamples would give is known without drawing any.
    """
    if of == 0:
        return -1.0, 1.0
    up, down = (gained + HALF) / (of + 4 * HALF), (lost + HALF) / (of + 4 * HALF)
    chances = _walk(of, down, 1 - up - down, up)
    low, high = _outside(chances) - of, of - _outside(chances[::-1])
    return low / of, high / of


def _outside(chances: Sequence[float]) -> int:
    """How many of these ends, from the first on, belong to the tail that is left out."""
    # A tail of just that size is let in, whatever rounding made of it.
    return sum(below < LEVEL / 2 - ROUNDING for below in accumulate(chances))


def _walk(steps: int, down: float, stay: float, up: float) -> list[float]:
    """How likely so many steps, each by -1, 0 or 1, are to end at -steps, …, steps."""
    left, right = _half_walk(steps, down, stay, up), _half_walk(steps, up, stay, down)
    return [*map(exp, left), *map(exp, reversed(right[:-1]))]


def _half_walk(steps: int, down: float, stay: float, up: float) -> list[float]:
    """The logarithms of the coefficients of (down + stay x + up x²)^steps, up to the middle one.

    By the recurrence that f g' = steps f' g gives for g = f^steps. Up to the middle it adds only what is positive, and
    so loses no digits; the other half is this one seen from its other end.
    """
    found = [steps * log(down)]
    for place in range(steps):
        terms = log((steps - place) * stay) + found[-1]
        if place:
            other = log((2 * steps - place + 1) * up) + found[-2]
            terms = max(terms, other) + log1p(exp(-abs(terms - other)))
        found.append(terms - log(down * (place + 1)))
    return found


def tasks_needed(discordant: float, difference: float, tests: int = 1) -> int | None:
    """Tasks on which a true difference of that size would be seen four times out of five; None for none.

    Connor's formula (1987) for McNemar's test, from the share of tasks on which the two differ; and at least as many
    tasks as the exact test needs to say anything at all. With several tests, each has its share of the level.
    """
    if not difference:
        return None
    level = LEVEL / tests
    spread = sqrt(max(0.0, discordant - difference**2))
    tasks = ((NormalDist().inv_cdf(1 - level / 2) * sqrt(discordant) + Z_POWER * spread) / difference) ** 2
    least = int(log2(2 / level)) + 1
    return ceil(max(tasks, least / discordant))


def pass_at_k(tries: int, passed: int, k: int) -> float:
    """The chance that one of k tries passes, without bias, from a task's independent tries and how many passed."""
    if not 1 <= k <= tries or not 0 <= passed <= tries:
        raise ValueError(f"pass@{k} cannot be told from {passed} of {tries} tries")
    return 1 - comb(tries - passed, k) / comb(tries, k)
