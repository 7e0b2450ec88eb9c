"""What each rung added, and what other ladders would have done: every number counted by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.reports.analysis import counterfactuals, ladder_value
from retrial.reports.analysis.cases import How, Judged, LadderPosition, OutcomeResolver, TaskAttempts
from retrial.store.records import patch_id
from retrial.types import Outcome
from tests.support.plain import plain
from tests.support.rows import attempt, record, summary

RIGHT, WRONG = Outcome.RESOLVED, Outcome.TESTS_FAILED
GREEN: dict[str, Any] = {"edit_outcome": True, "lint_outcome": True, "test_outcome": True, "plausible": True}
RED: dict[str, Any] = {"edit_outcome": True, "lint_outcome": True, "test_outcome": False}
UGLY: dict[str, Any] = {"edit_outcome": False, "lint_outcome": False, "test_outcome": False}
TWO = ("a:whole", "b:whole")


def go(number: int, patch: str, how: Mapping[str, Any], cost: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """The number-th attempt of a ladder of two models."""
    model, visible = "ab"[(number - 1) % 2], {"outcome": "resolved" if how is GREEN else "tests_failed"}
    known = {"model": model, "model_patch": patch, "round": 1 + (number - 1) // 2, "visible": visible}
    return attempt(number, cost, **{**known, **how, **more})


def tries(
    *found: tuple[dict[str, Any], Outcome],
    judged: Mapping[str, Mapping[str, Outcome]] | None = None,
    titles: Sequence[str] = TWO,
    sources: Sequence[str] = (),
    visible_is_hidden: bool = False,
) -> list[TaskAttempts]:
    """From whole records and the outcomes of their chosen patches; `judged` says what other patches are."""
    by_patch = {
        task: {patch_id(text): Judged(outcome=outcome, number=99) for text, outcome in own.items()}
        for task, own in (judged or {}).items()
    }
    known = OutcomeResolver(visible_is_hidden=visible_is_hidden, titles=titles, sources=sources, judged=by_patch)
    return [known.tries(summary(each), outcome) for each, outcome in found]


# One: solved by a at once. Two: a is wrong, b is right. Three: nothing is plausible, a's second is the least bad and is
# right. Four: b is plausible and wrong, and a, which was red, was right.
ONE = record("one", go(1, "one a1", GREEN))
TWO_ = record("two", go(1, "two a1", RED), go(2, "two b1", GREEN, 4.0), chosen=2)
THREE = record(
    "three",
    *(go(1, "three a1", UGLY), go(2, "three b1", UGLY, 4.0), go(3, "three a2", RED), go(4, "three b2", UGLY, 4.0)),
    chosen=3,
)
FOUR = record("four", go(1, "four a1", RED), go(2, "four b1", GREEN, 4.0), chosen=2)
RUN = ((ONE, RIGHT), (TWO_, RIGHT), (THREE, RIGHT), (FOUR, WRONG))
JUDGED = {
    "two": {"two a1": WRONG},
    "three": {"three a1": WRONG, "three b1": WRONG, "three b2": RIGHT},
    "four": {"four a1": RIGHT},
}


def row(rows: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(each[name] for name in names) for each in rows]


def test_every_rung_says_what_it_added_and_what_that_cost() -> None:
    found: Any = plain(ladder_value.economics(tries(*RUN)))
    rows = found["rungs"]
    assert row(rows, "rung", "round", "tasks", "attempts", "plausible", "chosen", "resolved") == [
        ("a:whole", 1, 4, 4, 1, 1, 1),
        ("b:whole", 1, 3, 3, 2, 2, 1),
        ("a:whole", 2, 1, 1, 0, 1, 1),
        ("b:whole", 2, 1, 1, 0, 0, 0),
    ]
    assert row(rows, "cost", "cost_per_resolved") == [(4.0, 4.0), (12.0, 12.0), (1.0, 1.0), (4.0, None)]
    assert row(
        rows, "cumulative_resolved", "cumulative_percent", "cumulative_cost", "cumulative_cost_per_resolved"
    ) == [
        (1, 25.0, 4.0, 4.0),
        (2, 50.0, 16.0, 8.0),
        (3, 75.0, 17.0, 5.666667),
        (3, 75.0, 21.0, 7.0),
    ]


def test_stopping_at_a_rung_has_bounds_until_every_attempt_is_scored() -> None:
    rows: Any = plain(ladder_value.economics(tries(*RUN)))["rungs"]
    assert [(each["stopping_here"]["resolved_low"], each["stopping_here"]["resolved_high"]) for each in rows] == [
        (1, 4),
        (2, 3),
        (3, 3),
        (3, 3),
    ]
    assert row(rows, "marginal_cost") == [(None,), (None,), (None,), (None,)]
    exact: Any = plain(ladder_value.economics(tries(*RUN, judged=JUDGED)))["rungs"]
    assert [each["stopping_here"]["resolved_low"] for each in exact] == [2, 2, 3, 3]
    assert all(each["stopping_here"]["exact"] for each in exact)
    # The second rung solves one and spoils another; the third solves one for a dollar.
    assert row(exact, "marginal_cost") == [(2.0,), (None,), (1.0,), (None,)]


def test_what_another_ladder_would_have_done_is_said_in_a_sentence() -> None:
    value = ladder_value.economics(tries(*RUN, judged=JUDGED))
    found = plain(value)
    assert found["actual"]["resolved_low"] == 3
    assert [each["sentence"] for each in found["what_ifs"]] == [
        "the first 3 rungs (a:whole, b:whole, a:whole): 75.0 % for 17.00 USD instead of 75.0 % for 21.00 USD",
        "a:whole alone, 1 try: 50.0 % for 4.00 USD instead of 75.0 % for 21.00 USD",
        "a:whole first, then b:whole, 1 try: 50.0 % for 16.00 USD instead of 75.0 % for 21.00 USD",
    ]
    assert ladder_value.describe_economics(value) == [f"what if       {each['sentence']}" for each in found["what_ifs"]]


def test_the_chosen_patch_of_a_shorter_ladder_is_chosen_by_the_products_own_rule() -> None:
    """Of ugly ones the first; a red one before an ugly one, wherever it stands."""
    found = counterfactuals.recorded(tries((THREE, RIGHT), judged=JUDGED))
    a1, b1, a2, b2 = found[0]
    assert [
        counterfactuals.bounds(found, steps).resolved_low for steps in ((b2, b1), (b1, b2), (b1, b2, a2), (b2, a1))
    ] == [
        1,
        0,
        1,
        1,
    ]


def test_an_attempt_that_was_never_made_is_unknown_and_costs_at_least_what_is_known() -> None:
    found = counterfactuals.recorded(tries(*RUN, judged=JUDGED))
    a, b = LadderPosition(source=0, round=1, place=0), LadderPosition(source=0, round=1, place=1)
    first = counterfactuals.bounds(found, (b, a))
    # Of 'one' nobody knows what b would have done; 'four' stops at b, which is wrong; 'three' chooses b.
    assert (first.resolved_low, first.resolved_high, first.unknown) == (1, 2, 1)
    # b for two, b and a for three, b for four.
    assert (first.cost_low, first.cost_high, first.attempts) == (4.0 + 5.0 + 4.0, None, 4)


def test_what_is_mostly_unknown_is_not_said() -> None:
    value = ladder_value.economics(tries(*RUN, judged=JUDGED))
    found = plain(value)
    assert not any(each["label"].startswith("b:whole") for each in found["what_ifs"])
    assert all(each["exact"] for each in found["what_ifs"])


def test_a_few_unknown_tasks_give_bounds() -> None:
    many = [(record(f"t{number}", go(1, "x", GREEN)), RIGHT) for number in range(18)]
    found: Any = plain(ladder_value.economics(tries(*many, RUN[1], RUN[3])))
    (only,) = found["what_ifs"]
    assert only["sentence"] == (
        "a:whole alone, 1 try: 90.0 to 100.0 % for 20.00 USD (2 of 20 tasks unknown) instead of 95.0 % for 28.00 USD"
    )
    assert (only["cost_low"], only["cost_high"], only["unknown"]) == (20.0, 20.0, 2)


def test_an_unknown_price_stays_unknown_and_attempts_are_told_instead() -> None:
    free = record("two", go(1, "two a1", RED, None), go(2, "two b1", GREEN, 4.0), chosen=2)
    found: Any = plain(ladder_value.economics(tries((ONE, RIGHT), (free, RIGHT), judged=JUDGED)))
    first, second = found["rungs"]
    assert (first["cost"], first["cumulative_cost"], first["cost_per_resolved"], first["marginal_cost"]) == (None,) * 4
    assert (second["cost"], second["cumulative_cost"]) == (4.0, None)
    assert found["what_ifs"][0]["sentence"] == (
        "a:whole alone, 1 try: 50.0 % in 2 attempts instead of 100.0 % in 3 attempts"
    )
    assert (found["what_ifs"][0]["cost_low"], found["what_ifs"][0]["cost_high"]) == (None, None)


def test_an_attempt_that_could_not_be_measured_leaves_a_shorter_ladder_open() -> None:
    broken = go(1, "", UGLY, 0.5, error="the provider broke", visible={})
    found = tries((record("one", broken, go(2, "b", GREEN), chosen=2), RIGHT))
    (stopped, whole) = (counterfactuals.bounds(counterfactuals.recorded(found), steps) for steps in _prefixes(found))
    assert (stopped.resolved_low, stopped.resolved_high, stopped.cost_low, stopped.cost_high) == (0, 1, 0.5, None)
    assert (whole.resolved_low, whole.resolved_high, whole.cost_high) == (1, 1, 1.5)
    assert (found[0].attempts[0].how, found[0].attempts[0].outcome) == (How.UNKNOWN, Outcome.NOT_MEASURED)


def _prefixes(found: Sequence[TaskAttempts]) -> list[tuple[LadderPosition, ...]]:
    rungs = tuple(ladder_value.ladder(found))
    return [rungs[:length] for length in range(1, len(rungs) + 1)]


def test_a_ladder_that_ended_early_for_want_of_money_ends_there_also_when_it_is_cut() -> None:
    poor = record("poor", go(1, "poor a1", RED))
    rows: Any = plain(ladder_value.economics(tries((poor, WRONG), (THREE, RIGHT), judged=JUDGED)))["rungs"]
    assert [each["stopping_here"]["exact"] for each in rows] == [True] * 4
    assert [each["stopping_here"]["resolved_low"] for each in rows] == [0, 0, 1, 1]


# How verdicts are known


def hows(*found: dict[str, Any], hidden: bool = False, chosen: int = 1, **judged: Outcome) -> list[tuple[str, Any]]:
    of = tries((record("one", *found, chosen=chosen), WRONG), judged={"one": judged}, visible_is_hidden=hidden)
    return [(each.how, each.resolved) for each in of[0].attempts]


def test_the_same_patch_has_the_same_verdict_and_an_empty_one_never_solves_anything() -> None:
    found = (go(1, "x", RED), go(2, "x", UGLY), go(3, "", UGLY), go(4, "other", UGLY))
    assert hows(*found) == [("scored", False), ("same patch", False), ("empty", False), ("unknown", None)]


def test_tests_that_are_the_acceptance_tests_refute_an_attempt_but_time_may_run_out_by_chance() -> None:
    found = (go(1, "x", RED), go(2, "y", RED), go(3, "z", RED, visible={"outcome": "timed_out"}), go(4, "w", GREEN))
    assert hows(*found, hidden=True)[1:] == [("visible is hidden", False), ("unknown", None), ("unknown", None)]
    assert hows(*found)[1:] == [("unknown", None)] * 3


def test_what_was_scored_counts_and_what_could_not_be_measured_stays_unknown() -> None:
    found = (go(1, "x", RED), go(2, "y", RED), go(3, "z", RED), go(4, "z", RED))
    assert hows(*found, y=RIGHT, z=Outcome.INSTALL_FAILED) == [
        ("scored", False),
        ("same patch", True),
        ("unknown", None),
        ("unknown", None),
    ]


# Files from elsewhere, and runs made of several


def test_a_file_from_elsewhere_has_no_economics() -> None:
    assert ladder_value.economics([]) is None
    assert ladder_value.describe_economics(None) == []


def of(source: str, model: str, number: int, patch: str, how: Mapping[str, Any], cost: float) -> dict[str, Any]:
    return go(number, patch, how, cost, model=model, dname=source, round=1)


def test_of_several_runs_every_order_is_known_and_models_are_told_apart() -> None:
    first = record("one", of("A", "m", 1, "x", GREEN, 1.0), of("B", "n", 2, "y", GREEN, 8.0))
    second = record("two", of("A", "m", 1, "x", RED, 1.0), of("B", "n", 2, "y", GREEN, 8.0), chosen=2)
    judged = {"one": {"y": RIGHT}, "two": {"x": WRONG}}
    attempts = tries((first, RIGHT), (second, RIGHT), judged=judged, titles=(), sources=("A", "B"))
    found: Any = plain(ladder_value.economics(attempts, ("A", "B")))
    assert row(found["rungs"], "rung", "run", "attempts", "cost") == [
        ("m:whole", "A", 2, 2.0),
        ("n:whole", "B", 2, 16.0),
    ]
    assert [each["sentence"] for each in found["what_ifs"]] == [
        "m:whole first, then n:whole, 1 try: 100.0 % for 10.00 USD instead of 100.0 % for 18.00 USD",
        "n:whole alone, 1 try: 100.0 % for 16.00 USD instead of 100.0 % for 18.00 USD",
        "m:whole alone, 1 try: 50.0 % for 2.00 USD instead of 100.0 % for 18.00 USD",
    ]


def test_a_task_that_one_of_several_runs_has_not_done_is_unknown_there() -> None:
    only = record("one", of("B", "n", 1, "y", GREEN, 8.0))
    found = tries((only, RIGHT), titles=(), sources=("A", "B"))
    assert found[0].attempts[0].at == LadderPosition(source=1, round=1, place=0)
    bounds = counterfactuals.bounds(
        counterfactuals.recorded(found), (LadderPosition(source=0, round=1, place=0),), cut=True
    )
    assert (bounds.resolved_low, bounds.resolved_high) == (0, 1)


@pytest.mark.parametrize(
    ("titles", "sources", "names"),
    [
        (("m:whole", "m:whole"), (), ["m:whole (1)", "m:whole (2)"]),
        ((), ("A", "B"), ["m:whole of A", "m:whole of B"]),
    ],
)
def test_the_same_model_twice_has_two_names(
    titles: Sequence[str], sources: Sequence[str], names: Sequence[str]
) -> None:
    both = record("one", of("A", "m", 1, "x", RED, 1.0), of("B" if sources else "A", "m", 2, "y", RED, 1.0))
    found = tries((both, RIGHT), titles=titles, sources=sources)
    assert list(ladder_value.ladder(found, sources).values()) == names


def test_two_goes_of_one_ladder_at_a_task_are_later_rounds() -> None:
    """Shards that overlap."""
    both = record("one", *(of(source, "m", number, "x", RED, 1.0) for number, source in enumerate("AB", start=1)))
    found = tries((both, RIGHT), titles=("m:whole",), sources=("A", "B"))
    assert [each.at.round for each in found[0].attempts] == [1, 2]


# The truth lies within the bounds

KINDS = (GREEN, RED, UGLY)
TRUTH = st.tuples(st.sampled_from(KINDS), st.booleans(), st.integers(0, 5), st.booleans())
"""What an attempt is: how it looks, whether it is right, its cost, and whether its verdict is revealed."""


def climbed(truths: Mapping[LadderPosition, Any], steps: Sequence[LadderPosition]) -> tuple[bool, float]:
    """Written out anew, with everything known: whether it is resolved, and what it cost."""
    made = []
    for step in steps:
        made.append(truths[step])
        if made[-1][0] is GREEN:
            break
    best = next(each for kind in KINDS for each in made if each[0] is kind)
    return best[1], float(sum(each[2] for each in made))


@given(data=st.data())
def test_the_truth_lies_within_the_bounds(data: st.DataObject) -> None:
    models, rounds = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 2))
    steps = [
        LadderPosition(source=0, round=turn, place=place) for turn in range(1, rounds + 1) for place in range(models)
    ]
    tables = data.draw(st.lists(st.lists(TRUTH, min_size=len(steps), max_size=len(steps)), min_size=1, max_size=4))
    truths = [dict(zip(steps, table, strict=True)) for table in tables]
    found = [_recorded(f"t{number}", truth, steps) for number, truth in enumerate(truths)]
    judged = {name: revealed for (each, _), revealed in found for name in [each["instance_id"]]}
    titles = [f"m{place}" for place in range(models)]
    recorded = counterfactuals.recorded(tries(*(each for each, _ in found), judged=judged, titles=titles))
    for other in (*(steps[:length] for length in range(1, len(steps) + 1)), data.draw(st.permutations(steps))):
        bounds = counterfactuals.bounds(recorded, tuple(other), cut=other == steps[: len(other)])
        real = [climbed(truth, other) for truth in truths]
        solved, cost = sum(right for right, _ in real), sum(paid for _, paid in real)
        assert bounds.resolved_low <= solved <= bounds.resolved_high
        assert bounds.cost_low is not None
        assert bounds.cost_low <= cost
        assert bounds.cost_high in (None, cost)


def _recorded(
    name: str, truth: Mapping[LadderPosition, Any], steps: Sequence[LadderPosition]
) -> tuple[tuple[dict[str, Any], Outcome], dict[str, Outcome]]:
    """The record of a ladder that was climbed, what its chosen patch is, and what is revealed of the others."""
    made = list[tuple[int, Any]]()
    for number, step in enumerate(steps, start=1):
        made.append((number, truth[step]))
        if truth[step][0] is GREEN:
            break
    chosen = next(each for kind in KINDS for each in made if each[1][0] is kind)
    goes = [
        go(
            number,
            f"{name} {number}",
            how,
            float(cost),
            model=f"m{steps[number - 1].place}",
            round=steps[number - 1].round,
        )
        for number, (how, _, cost, _) in made
    ]
    revealed = {f"{name} {number}": RIGHT if right else WRONG for number, (_, right, _, told) in made if told}
    return (record(name, *goes, chosen=chosen[0]), RIGHT if chosen[1][1] else WRONG), revealed
