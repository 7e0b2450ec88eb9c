"""Rates with their uncertainty, and sums of what may be unknown."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt

Z95 = 1.959963984540054


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


def rate(resolved: int, of: int) -> dict[str, object]:
    """A share in percent with its interval, as results.json has it."""
    low, high = wilson(resolved, of)
    percent = 100 * resolved / of if of else 0.0
    return {
        "percent": round(percent, 2),
        "low": round(100 * low, 2),
        "high": round(100 * high, 2),
        "resolved": resolved,
        "of": of,
    }


def total(costs: Iterable[float | None]) -> float | None:
    """None, unknown, as soon as one of them is."""
    found = list(costs)
    known = [cost for cost in found if cost is not None]
    return sum(known) if len(known) == len(found) else None
