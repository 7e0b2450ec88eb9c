"""Rates with their uncertainty."""

from __future__ import annotations

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
