"""Intervals, against scipy as the oracle."""

from __future__ import annotations

import pytest

from retrial.stats import wilson


@pytest.mark.parametrize("trials", [1, 2, 7, 34, 225, 500])
def test_the_interval_is_that_of_scipy(trials: int) -> None:
    from scipy.stats import binomtest

    for successes in range(0, trials + 1, max(1, trials // 9)):
        expected = binomtest(successes, trials).proportion_ci(confidence_level=0.95, method="wilson")
        assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_nothing_tried_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)
