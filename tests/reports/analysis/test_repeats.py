"""Runs that are repeats, and scorings of one run: every number counted by hand, and what must hold of any."""

from __future__ import annotations

import statistics
from math import comb, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.chat import Usage
from retrial.reports.analysis import repeats
from retrial.reports.analysis.cases import Case, ScoredRow
from retrial.reports.analysis.repeats import identical, together
from retrial.reports.analysis.rungs import GroupMember
from retrial.reports.comparison_table import render_repeats
from retrial.score.save import scored_row
from retrial.store.manifest import ListedRun
from retrial.types import Outcome, Status, Verdict
from tests.support.plain import plain
from tests.support.rows import row

PASSED, FAILED = Status.PASSED, Status.FAILED
FAILS = Outcome.TESTS_FAILED


def repeat(number: int, outcomes: str, **fields: Any) -> GroupMember:
    """A run whose tasks are a, b, c …: `1` resolved, `0` not, `-` not measured."""
    names = dict(zip("abcdefgh", outcomes, strict=False))
    return GroupMember(
        listed=ListedRun(run=f"r.{number}", seed=number - 1),
        measured=tuple(measured(name, outcome == "1") for name, outcome in names.items() if outcome != "-"),
        not_measured={name: "the provider broke" for name, outcome in names.items() if outcome == "-"},
        **{"spent": Usage(cost=0.5), **fields},
    )


def measured(name: str, resolved: bool) -> Case:
    return Case(instance_id=name, attempts=(), chosen=1, resolved=resolved)


THREE = (repeat(1, "1100"), repeat(2, "1010"), repeat(3, "1110"))


# Mean and spread


def test_the_mean_and_the_spread_are_those_of_the_runs() -> None:
    found = plain(together(THREE))
    assert [(each["run"], each["seed"], each["percent"], each["cost"]) for each in found["runs"]] == [
        ("r.1", 0, 50.0, 0.5),
        ("r.2", 1, 50.0, 0.5),
        ("r.3", 2, 75.0, 0.5),
    ]
    assert found["mean"] == 58.33
    deviation = statistics.stdev([50, 50, 75])
    assert found["spread"] == {
        "standard_deviation": round(deviation, 2),
        "standard_error": round(deviation / sqrt(3), 2),
        "min": 50.0,
        "max": 75.0,
        "runs": 3,
    }
    # Tasks: 3, 2, 2 and 0 of 3.
    shares = [100.0, 200 / 3, 200 / 3, 0.0]
    assert found["standard_error_tasks"] == round(statistics.stdev(shares) / 2, 2)
    assert found["spent"]["cost"] == 1.5


def test_every_task_is_always_never_or_sometimes_resolved() -> None:
    found = plain(together(THREE))
    assert (found["always"], found["never"]) == (["a"], ["d"])
    assert found["flips"] == {"b": [True, False, True], "c": [False, True, True]}
    assert found["flip_rate"] == 50.0
    # Two of the three pairs of runs disagree about b, and two about c.
    assert found["disagreement"] == pytest.approx(100 * (2 / 3 + 2 / 3) / 4, abs=0.01)
    assert found["instances"][1] == {"instance_id": "b", "resolved": [True, False, True], "n": 3, "c": 2}


def test_pass_at_k_is_the_chance_that_one_of_k_runs_resolves_a_task() -> None:
    found = plain(together(THREE))
    # Any two of three runs have one that resolves b, and so for c.
    assert found["pass_at"] == {"1": 58.33, "2": 75.0, "3": 75.0}
    assert found["pass_at_of"] == {"1": 4, "2": 4, "3": 4}


def test_only_tasks_that_all_runs_measured_make_the_mean() -> None:
    found = plain(together((repeat(1, "11-0"), repeat(2, "1000"))))
    assert found["common"] == {"measured_by_all": 3, "of": 4, "instance_ids": ["a", "b", "d"]}
    assert [each["rate_common"]["resolved"] for each in found["runs"]] == [2, 1]
    assert (found["mean"], found["runs"][0]["not_measured"]) == (50.0, 1)
    # What was measured once cannot flip, but says something about one try.
    assert (found["always"], found["never"], list(found["flips"])) == (["a"], ["d"], ["b"])
    assert found["flip_rate"] == 33.33
    assert found["pass_at_of"] == {"1": 4, "2": 3}
    assert found["instances"][2] == {"instance_id": "c", "resolved": [None, False], "n": 1, "c": 0}


def test_one_run_has_no_spread_and_none_has_no_mean() -> None:
    alone = together(THREE[:1], ["r.2"])
    one = plain(alone)
    assert (one["mean"], one["spread"]["standard_deviation"], one["spread"]["standard_error"]) == (50.0, None, None)
    assert (one["flip_rate"], one["disagreement"], one["identical"], one["not_started"]) == (None, None, False, ["r.2"])
    assert "of one run" in render_repeats(alone)
    none = together(())
    assert (none.mean, none.spread, none.pass_at, none.instances) == (None, None, {}, [])
    assert "there is no task that all runs have measured" in render_repeats(none)


@given(st.lists(st.lists(st.sampled_from("10-"), min_size=5, max_size=5), min_size=1, max_size=5))
def test_numbers_of_any_repeats_agree_with_each_other(outcomes: list[list[str]]) -> None:
    runs = [repeat(number, "".join(each)) for number, each in enumerate(outcomes, start=1)]
    values = together(runs)
    found = plain(values)
    twice = [each for each in found["instances"] if each["n"] > 1]
    assert len(found["always"]) + len(found["never"]) + len(found["flips"]) == len(twice)
    for each in found["instances"]:
        assert each["n"] == sum(outcome is not None for outcome in each["resolved"])
        assert (each["instance_id"] in found["flips"]) == (len({*each["resolved"]} - {None}) == 2)
    if found["spread"] is None:
        assert found["mean"] is None and not found["common"]["measured_by_all"]
    else:
        assert found["spread"]["min"] <= found["mean"] + 0.01 and found["mean"] <= found["spread"]["max"] + 0.01
    assert render_repeats(values)


@given(st.lists(st.text("10", min_size=6, max_size=6), min_size=2, max_size=5))
def test_where_all_was_measured_pass_at_1_is_the_mean_and_pass_at_k_grows(outcomes: list[str]) -> None:
    found = plain(together([repeat(number, each) for number, each in enumerate(outcomes, start=1)]))
    values = list(found["pass_at"].values())
    assert values[0] == pytest.approx(found["mean"], abs=0.01)
    assert values == sorted(values)
    assert values[-1] == pytest.approx(100 * (6 - len(found["never"])) / 6, abs=0.01)
    pairs = comb(len(outcomes), 2)
    differ = sum(a[task] != b[task] for task in range(6) for i, a in enumerate(outcomes) for b in outcomes[i + 1 :])
    assert found["disagreement"] == pytest.approx(100 * differ / (6 * pairs), abs=0.01)


# What makes repeats worth less


def test_runs_with_the_same_patches_say_nothing_about_chance() -> None:
    same = [repeat(number, "10", patches={"a": "x", "b": ""}) for number in (1, 2)]
    found = together(same)
    assert found.identical is True
    assert "say nothing" in render_repeats(found) or "says nothing" in render_repeats(found)
    assert together([*same, repeat(3, "10", patches={"a": "y", "b": ""})]).identical is False
    assert repeats.identical([{"a": "x"}, {"b": "x"}]) is False


def test_conditions_that_differ_are_told_by_run() -> None:
    runs = [repeat(n, "1", conditions={"versions": {"python": f"3.1{n}"}, "limits": {}}) for n in (1, 2)]
    found = together(runs)
    assert found.conditions_differ == {"versions": {"r.1": {"python": "3.11"}, "r.2": {"python": "3.12"}}}
    assert "more than their seeds: versions" in render_repeats(found)


def test_the_table_says_it_all_in_a_sentence() -> None:
    shown = render_repeats(together((*THREE[:2], repeat(3, "1-10", void={"c": "it flickers"})), ["r.4"]))
    assert "mean            55.6 % (spread 19.2 points over 3 runs; 33.3 to 66.7); pass@3 66.7 %; 2 of 4 tasks" in shown
    assert "not measured    1 in r.3" in shown
    assert "not started     r.4" in shown
    assert "void here       1 of those that flipped" in shown


# Scorings of one run


def scored(instance_id: str, outcome: Outcome, **tests: Status) -> ScoredRow:
    return scored_row(row(instance_id, Verdict(outcome=outcome, tests=tests)))


RESOLVED = scored("a", Outcome.RESOLVED, one=PASSED, two=PASSED)
HALF = scored("a", FAILS, one=PASSED, two=FAILED)
STABLE = scored("b", FAILS, one=FAILED)


def test_a_verdict_that_changes_is_flaky_and_its_tests_are_named() -> None:
    found = repeats.flaky([[RESOLVED, STABLE], [HALF, STABLE], [RESOLVED, STABLE]])
    assert plain(found) == {
        "times": 3,
        "of": 2,
        "flaky": {
            "a": {
                "outcomes": ["resolved", "tests_failed", "resolved"],
                "tests": {"two": ["passed", "failed", "passed"]},
            }
        },
        "stable": 1,
        "flaky_tests": {},
        "not_measured": [],
    }
    told = repeats.told(found)
    assert told.startswith("flaky         1 of 2 instances gave different verdicts in 3 scorings:\n")
    assert "  a: two (passed, failed, passed)" in told


def test_what_was_once_not_measured_is_not_flaky() -> None:
    broken = scored("a", Outcome.NOT_MEASURED)
    found = repeats.flaky([[RESOLVED], [broken], [RESOLVED]])
    assert (found.flaky, found.stable, found.not_measured) == ({}, 1, ["a"])
    once = repeats.flaky([[RESOLVED], [broken], [broken]])
    assert (once.flaky, once.stable, once.not_measured) == ({}, 0, ["a"])
    assert "not measured in every scoring: a" in repeats.told(once)


def test_a_flaky_verdict_stays_one_beside_a_scoring_that_was_not_measured() -> None:
    found = repeats.flaky([[RESOLVED], [scored("a", Outcome.INSTALL_FAILED)], [HALF]])
    assert found.flaky["a"].outcomes == ["resolved", "install_failed", "tests_failed"]
    assert found.flaky["a"].tests == {"two": ["passed", None, "failed"]}


def test_tests_that_differ_without_changing_the_verdict_are_told_apart() -> None:
    other = scored("a", FAILS, one=FAILED, two=PASSED)
    found = repeats.flaky([[HALF], [other]])
    assert (found.flaky, found.stable) == ({}, 1)
    assert found.flaky_tests == {"a": {"one": ["passed", "failed"], "two": ["failed", "passed"]}}
    assert "without changing a verdict: a" in repeats.told(found)


def test_a_scoring_that_never_came_to_its_tests_blames_none_of_them() -> None:
    found = repeats.flaky([[RESOLVED], [scored("a", Outcome.TIMED_OUT)]])
    assert plain(found)["flaky"] == {"a": {"outcomes": ["resolved", "timed_out"], "tests": {}}}
    assert "  a: (resolved, timed out)" in repeats.told(found)


def test_runs_that_came_to_nothing_are_not_identical() -> None:
    assert not identical([{"a": "", "b": ""}, {"a": "", "b": ""}])
    assert identical([{"a": "p", "b": ""}, {"a": "p", "b": ""}])
