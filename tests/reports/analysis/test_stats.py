"""Statistics: against published values, against scipy as the oracle, and by whether they keep what they promise."""

from __future__ import annotations

import functools
import random
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.reports.analysis.stats import (
    holm,
    mcnemar,
    paired_interval,
    pass_at_k,
    tasks_needed,
    wilson,
)

# One rate


@pytest.mark.parametrize("trials", [1, 2, 7, 34, 225, 500])
def test_the_interval_is_that_of_scipy(trials: int) -> None:
    from scipy.stats import binomtest

    for successes in range(0, trials + 1, max(1, trials // 9)):
        expected = binomtest(successes, trials).proportion_ci(confidence_level=0.95, method="wilson")
        assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_that_of_newcombes_examples(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=0.00005)


def test_nothing_tried_says_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_wilsons_interval_covers_the_truth_about_95_times_of_100() -> None:
    """Not at every rate: near 0 and 1 there are dips, to 84 % where less than one of a thousand tasks is solved."""
    from scipy.stats import binom

    trials = 225
    bounds = np.array([wilson(successes, trials) for successes in range(trials + 1)])
    rates = np.array([0.00078, *np.linspace(0.001, 0.999, 999)])
    chances = binom.pmf(np.arange(trials + 1)[:, None], trials, rates)
    covered = (bounds[:, :1] <= rates) & (rates <= bounds[:, 1:])
    coverage = (chances * covered).sum(axis=0)
    assert 0.945 < coverage.mean() < 0.955
    middle = coverage[(rates > 0.05) & (rates < 0.95)]
    assert middle.min() > 0.93 and middle.max() < 0.97
    assert coverage[1:].min() > 0.92
    assert coverage[0] == pytest.approx(0.839, abs=0.002)


# Two rates on the same tasks


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemars_p_is_that_of_a_fair_coin_in_scipy(gained: int, lost: int) -> None:
    from scipy.stats import binomtest

    expected = binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


@pytest.mark.parametrize(("gained", "lost", "p"), [(1, 7, 0.0703), (6, 16, 0.0525), (5, 0, 0.0625), (6, 0, 0.03125)])
def test_mcnemars_p_is_that_of_published_examples(gained: int, lost: int, p: float) -> None:
    """The first two are those of Fagerland, Lydersen and Laake (2013), exact conditional test."""
    assert mcnemar(gained, lost) == pytest.approx(p, abs=0.00005)


def test_mcnemars_p_of_very_many_tasks_is_still_a_number() -> None:
    assert mcnemar(10_000, 0) == 0.0
    assert mcnemar(5_000, 5_000) == 1.0
    assert 0.3 < mcnemar(5_000, 4_900) < 0.33


@pytest.mark.parametrize(("tasks", "discordant"), [(14, 0.5), (40, 0.2), (225, 0.1), (225, 0.4), (500, 0.05)])
def test_of_two_that_do_not_differ_at_most_one_in_twenty_pairs_is_called_different(
    tasks: int, discordant: float
) -> None:
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(tasks, [discordant / 2, discordant / 2, 1 - discordant], size=4000)
    called = sum(mcnemar(int(gained), int(lost)) < 0.05 for gained, lost, _ in drawn)
    assert called / len(drawn) <= 0.05


def test_of_several_pairs_that_do_not_differ_one_in_twenty_families_has_a_false_alarm() -> None:
    rng = np.random.default_rng(2)
    solved = rng.random((1500, 4, 60)) < 0.5
    alarms = 0
    for runs in solved:
        found = [mcnemar(int((b & ~a).sum()), int((a & ~b).sum())) for a, b in combinations(runs, 2)]
        alarms += min(holm(found)) < 0.05
    assert alarms / len(solved) <= 0.05


def test_holms_adjustment_is_his() -> None:
    # Of four, the smallest counts four times, the next three times, and none less than the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@pytest.mark.parametrize(("gained", "lost", "of"), [(9, 4, 40), (30, 12, 225), (0, 0, 20), (14, 0, 14), (0, 3, 6)])
def test_the_bootstrap_interval_is_what_drawing_comes_to(gained: int, lost: int, of: int) -> None:
    """To within what 40,000 draws leave open: one task at each end."""
    rng = np.random.default_rng(3)
    kinds = np.array([gained + 0.5, lost + 0.5, of - gained - lost + 1]) / (of + 2)
    drawn = rng.multinomial(of, kinds, size=40_000)
    differences = (drawn[:, 0] - drawn[:, 1]) / of
    low, high = np.quantile(differences, [0.025, 0.975])
    assert paired_interval(gained, lost, of) == pytest.approx((low, high), abs=1.01 / of)


@pytest.mark.parametrize("of", [3, 4])
def test_the_bootstrap_interval_is_right_to_the_last_resample(of: int) -> None:
    """Against every way to draw so few tasks from the four kinds, each with its chance."""
    for gained, lost in ((0, 0), (1, 0), (2, 1), (0, of)):
        kinds = {1: gained + 0.5, -1: lost + 0.5, 0: of - gained - lost + 1.0}
        chances: dict[int, float] = {}
        for draw in product(kinds, repeat=of):
            weight = np.prod([kinds[each] / (of + 2) for each in draw])
            chances[sum(draw)] = chances.get(sum(draw), 0.0) + float(weight)
        ends = range(-of, of + 1)
        low = min(end for end in ends if sum(chances[each] for each in ends if each <= end) > 0.025 - 1e-9)
        high = max(end for end in ends if sum(chances[each] for each in ends if each >= end) > 0.025 - 1e-9)
        assert paired_interval(gained, lost, of) == (low / of, high / of)


def test_the_bootstrap_interval_has_no_side() -> None:
    for gained, lost, of in ((9, 4, 40), (3, 0, 6), (700, 650, 10_000)):
        low, high = paired_interval(gained, lost, of)
        assert paired_interval(lost, gained, of) == (-high, -low)
        assert -1 <= low <= (gained - lost) / of <= high <= 1


def test_few_tasks_leave_much_open_even_where_all_agree() -> None:
    low, high = paired_interval(0, 0, 6)
    assert low < -0.2 and high > 0.2
    assert paired_interval(6, 0, 6)[0] < 0.5
    assert paired_interval(0, 0, 0) == (-1.0, 1.0)


@pytest.mark.parametrize(
    ("tasks", "up", "down"), [(225, 0.05, 0.02), (225, 0.1, 0.1), (225, 0.15, 0.05), (40, 0.3, 0.1)]
)
def test_the_bootstrap_interval_covers_the_truth_about_95_times_of_100(tasks: int, up: float, down: float) -> None:
    rng = np.random.default_rng(4)
    drawn = rng.multinomial(tasks, [up, down, 1 - up - down], size=2000)
    covered, interval = 0, functools.cache(paired_interval)
    for gained, lost, _ in drawn:
        low, high = interval(int(gained), int(lost), tasks)
        covered += low - 1e-9 <= up - down <= high + 1e-9
    assert 0.93 < covered / len(drawn) < 0.98


# How many tasks it takes


@pytest.mark.parametrize(("up", "down"), [(0.10, 0.05), (0.20, 0.10), (0.08, 0.02), (0.30, 0.15), (0.04, 0.0)])
def test_on_so_many_tasks_the_difference_is_seen_about_four_times_out_of_five(up: float, down: float) -> None:
    tasks = tasks_needed(up + down, up - down)
    assert tasks
    rng = np.random.default_rng(5)
    drawn = rng.multinomial(tasks, [up, down, 1 - up - down], size=3000)
    seen = sum(mcnemar(int(gained), int(lost)) < 0.05 for gained, lost, _ in drawn) / len(drawn)
    # A little less: the exact test holds back.
    assert 0.7 < seen < 0.85


def test_what_could_not_be_told_needs_more_tasks_than_there_were() -> None:
    for tests, of in product((1, 3), range(1, 50)):
        for gained, lost in ((up, down) for up in range(of + 1) for down in range(min(up, of - up + 1))):
            if mcnemar(gained, lost) >= 0.05 / tests:
                assert (tasks_needed((gained + lost) / of, (gained - lost) / of, tests) or 0) > of


def test_no_difference_is_seen_on_no_number_of_tasks() -> None:
    assert tasks_needed(0.3, 0.0) is None
    assert tasks_needed(1.0, 1.0) == 6
    assert tasks_needed(1.0, -1.0) == 6


# Repeats


def test_pass_at_k_is_the_share_of_all_choices_of_k_tries_with_one_that_passed() -> None:
    for tries in range(1, 7):
        for passed, k in product(range(tries + 1), range(1, tries + 1)):
            marks = [True] * passed + [False] * (tries - passed)
            choices = [any(choice) for choice in combinations(marks, k)]
            assert pass_at_k(tries, passed, k) == pytest.approx(sum(choices) / comb(tries, k))


@given(st.integers(1, 200), st.data())
def test_pass_at_k_grows_with_k_from_the_plain_rate(tries: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, tries))
    found = [pass_at_k(tries, passed, k) for k in range(1, tries + 1)]
    assert found[0] == pytest.approx(passed / tries)
    assert found == sorted(found)
    assert found[-1] == (1.0 if passed else 0.0)


def test_pass_at_k_has_no_bias() -> None:
    """Where a try passes three times of ten, four tries miss with a chance of 0.7 to the fourth."""
    rng = random.Random(6)
    found = [pass_at_k(10, sum(rng.random() < 0.3 for _ in range(10)), 4) for _ in range(20_000)]
    assert sum(found) / len(found) == pytest.approx(1 - 0.7**4, abs=0.006)


@pytest.mark.parametrize(("tries", "passed", "k"), [(3, 1, 4), (3, 1, 0), (3, 4, 1), (3, -1, 1)])
def test_pass_at_k_of_what_cannot_be_is_refused(tries: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="cannot be told"):
        pass_at_k(tries, passed, k)
