"""Edit formats, rungs and runs side by side: every number counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from retrial.chat import Usage
from retrial.reports.analysis import rungs
from retrial.reports.analysis.cases import Case, from_records
from retrial.reports.analysis.rungs import GroupMember, side_by_side
from retrial.reports.comparison_table import render_grid as rendered
from retrial.reports.terminal import ladder as rendered_ladder
from retrial.store.manifest import ListedRun
from retrial.store.records import PredictionSummary
from tests.support import rows
from tests.support.plain import plain
from tests.support.rows import attempt


def record(instance_id: str, *attempts: dict[str, Any], chosen: int = 1) -> PredictionSummary:
    return rows.summary(rows.record(instance_id, *attempts, chosen=chosen))


def whole(number: int = 1, **fields: Any) -> dict[str, Any]:
    return attempt(number, **{"model": "a", "edit_format": "whole", **fields})


def diff(number: int = 2, **fields: Any) -> dict[str, Any]:
    return attempt(number, **{"model": "b", "edit_format": "diff", **fields})


RECORDS = (
    record("one", whole(tests_outcomes=[False, True], plausible=True)),
    record(
        "two",
        whole(num_malformed_responses=2, faults={"no_edit": 1, "empty": 1}, lazy_comments=3),
        diff(tests_outcomes=[True], plausible=True, cost=1.5, cached_tokens=4),
        chosen=2,
    ),
    record("three", whole(error="the provider broke"), diff(tests_outcomes=[True], plausible=True), chosen=2),
)
RESOLVED = {"one", "two"}


# What each rung brought


def test_every_rung_has_a_row_in_order_with_what_it_brought() -> None:
    first, second = plain(rungs.ladder(RECORDS, RESOLVED, ["a:whole", "b:diff"]))
    assert first == {
        "rung": "a:whole",
        "tasks": 3,
        "plausible": 1,
        "unverified": 0,
        "chosen": 1,
        "resolved": 1,
        "not_measured": 1,
        "num_malformed_responses": 2,
        "attempts": 3,
        "calls": 3,
        "prompt_tokens": 30,
        "completion_tokens": 15,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "cost": 1.5,
        "model_seconds": 3.0,
        "cost_per_plausible": 1.5,
    }
    counted = [second[name] for name in ("tasks", "attempts", "plausible", "chosen", "resolved")]
    assert counted == [2, 2, 2, 2, 1]
    assert (second["cost"], second["cost_per_plausible"], second["cached_tokens"]) == (2.0, 1.0, 4)


def test_a_rung_that_was_never_reached_is_there_too() -> None:
    titles = ["a:whole", "b:diff", "c:udiff"]
    last = plain(rungs.ladder(RECORDS, RESOLVED, titles))[-1]
    assert (last["rung"], last["tasks"], last["attempts"], last["cost"]) == ("c:udiff", 0, 0, 0)
    assert last["cost_per_plausible"] is None


def test_the_same_model_twice_is_two_rungs_and_later_rounds_go_over_both_again() -> None:
    found = record("one", *(whole(number, cost=float(number)) for number in (1, 2, 3)), chosen=3)
    rows = plain(rungs.ladder([found], {"one"}, ["a:whole", "a:whole"]))
    assert [(row["attempts"], row["cost"], row["resolved"]) for row in rows] == [(2, 4.0, 1), (1, 2.0, 0)]


def test_of_several_runs_the_rungs_are_what_the_attempts_say() -> None:
    rows = plain(rungs.ladder(RECORDS, RESOLVED))
    assert [(row["rung"], row["attempts"]) for row in rows] == [("a:whole", 3), ("b:diff", 2)]


def test_one_unknown_cost_makes_the_sum_unknown() -> None:
    (row,) = rungs.ladder([record("one", whole(cost=None, plausible=True))], {"one"}, ["a:whole"])
    assert (row.brought.took.cost, row.cost_per_plausible) == (None, None)
    assert "unknown" in rendered_ladder([row], scored=True)


def test_before_anything_is_scored_nothing_is_said_of_what_is_resolved() -> None:
    rows = rungs.ladder(RECORDS, (), ["a:whole", "b:diff"])
    lines = rendered_ladder(rows, scored=False).splitlines()
    assert " ".join(lines[0].split()) == "rung attempts plausible malformed tokens in / out cost each plausible"
    assert lines[2].split()[:4] == ["a:whole", "3", "1", "2"]
    assert "resolved" in rendered_ladder(rows, scored=True)


# Formats


def test_a_format_is_counted_on_the_tasks_it_was_tried_on() -> None:
    found = plain(rungs.by_format(from_records(RECORDS, RESOLVED)))
    assert {name: (row["resolved"], row["of"]) for name, row in found.items()} == {"diff": (1, 2), "whole": (1, 2)}
    assert found["whole"]["percent_cases_well_formed"] == 50.0
    assert (found["whole"]["num_malformed_responses"], found["whole"]["lazy_comments"]) == (2, 3)
    assert found["whole"]["faults"] == {"no_edit": 1, "empty": 1}
    assert (found["whole"]["cost"], found["whole"]["cost_per_resolved"]) == (1.5, 1.5)
    assert found["diff"]["cached_tokens"] == 4


def test_turns_are_those_of_a_formats_first_attempt_and_count_only_what_is_not_refuted() -> None:
    found = plain(rungs.by_format(from_records(RECORDS, RESOLVED)))
    assert (found["whole"]["pass_rate_1"], found["whole"]["pass_rate_2"]) == (0.0, 50.0)
    # 'three' was plausible and is not resolved; the second turn is there although no first one left it to do.
    assert (found["diff"]["pass_rate_1"], found["diff"]["pass_rate_2"]) == (50.0, 50.0)


def test_a_retry_is_paid_for_but_says_nothing_of_the_first_attempt() -> None:
    again = whole(2, num_malformed_responses=5, faults={"empty": 5}, tests_outcomes=[True], plausible=True)
    row = plain(rungs.by_format(from_records([record("one", whole(), again, chosen=2)], {"one"}))["whole"])
    assert (row["percent"], row["pass_rate_1"]) == (100.0, 0.0)
    assert (row["num_malformed_responses"], row["faults"], row["percent_cases_well_formed"]) == (0, {}, 100.0)
    assert (row["attempts"], row["cost"]) == (2, 1.0)


def test_an_attempt_that_could_not_be_measured_is_paid_for_and_is_nobodys_failure() -> None:
    broken = whole(error="the provider broke", tests_outcomes=[])
    found = record("one", broken, whole(2, tests_outcomes=[True]), chosen=2)
    row = plain(rungs.by_format(from_records([found], {"one"})))["whole"]
    assert (row["resolved"], row["of"], row["pass_rate_1"]) == (1, 1, 100.0)
    assert (row["attempts"], row["cost"]) == (2, 1.0)


# Runs of a grid


def compared(edit_format: str, measured: list[Case], model: str = "a", **fields: Any) -> GroupMember:
    listed = ListedRun(run=f"g--{model}--{edit_format}", model=model, edit_format=edit_format)
    return GroupMember(listed=listed, measured=tuple(measured), spent=Usage(calls=1, cost=0.5), **fields)


def solved(edit_format: str, *names: str, right: str = "", model: str = "a") -> list[Case]:
    records = [
        record(name, attempt(edit_format=edit_format, model=model, tests_outcomes=[name in right])) for name in names
    ]
    return from_records(records, set(right))


GRID = (
    compared("whole", solved("whole", "x", "y", "z", right="xy")),
    compared("diff", solved("diff", "x", "y", right="y"), not_measured={"z": "budget"}),
    compared("whole", solved("whole", "x", "y", "z", right="xyz", model="b"), model="b"),
)


def test_runs_are_compared_also_on_what_all_of_them_have_measured() -> None:
    found = plain(side_by_side(GRID))
    assert found["common"] == {"measured_by_all": 2, "of": 3, "instance_ids": ["x", "y"]}
    rates = [
        (row["resolved"], row["of"], row["rate_common"]["resolved"], row["rate_common"]["of"]) for row in found["runs"]
    ]
    assert rates == [(2, 3, 2, 2), (1, 2, 1, 2), (3, 3, 2, 2)]
    assert [row["not_measured"] for row in found["runs"]] == [0, 1, 0]


def test_formats_and_models_are_summed_over_the_grid() -> None:
    found = plain(side_by_side(GRID))
    sums = {name: (row["resolved"], row["of"], row["cost"]) for name, row in found["by_format"].items()}
    assert sums == {"diff": (1, 2, 1.0), "whole": (5, 6, 3.0)}
    assert {name: (row["resolved"], row["of"]) for name, row in found["by_model"].items()} == {"a": (3, 5), "b": (3, 3)}
    assert (found["spent"]["calls"], found["spent"]["cost"]) == (3, 1.5)


@pytest.mark.parametrize("runs", [(), (compared("whole", []),)])
def test_a_grid_of_which_nothing_is_measured_has_no_shares(runs: tuple[GroupMember, ...]) -> None:
    found = side_by_side(runs)
    assert found.common.measured_by_all == 0
    assert [row.row.columns.rate.of for row in found.runs] == [0] * len(runs)
    assert "measured by all 0 of 0 tasks" in rendered(found)


def test_the_table_has_a_line_for_every_run_and_every_sum_and_says_what_is_missing() -> None:
    lines = rendered(side_by_side(GRID, ["g--b--diff"])).splitlines()
    assert [line.split()[:3] for line in lines[2:9]] == [
        ["a", "whole", "2/3"],
        ["a", "diff", "1/2"],
        ["b", "whole", "3/3"],
        ["all", "diff", "1/2"],
        ["all", "whole", "5/6"],
        ["a", "all", "3/5"],
        ["b", "all", "3/3"],
    ]
    assert [" ".join(line.split()[:4]) for line in lines[10:]] == [
        "measured by all 2",
        "not measured 1 in",
        "not started g--b--diff",
    ]
