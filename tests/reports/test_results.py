"""The seed's statistics, and what results.json says beside our verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retrial.chat import Usage
from retrial.reports.results import Report, results
from retrial.reports.terminal import render
from retrial.score.save import scored_row
from retrial.score.scorer import Scored
from retrial.store.json_io import to_json
from retrial.store.manifest import Manifest
from retrial.store.records import patch_id
from retrial.types import Outcome, Verdict
from tests.support.rows import PASSED, attempt, edit, graded, output, record, row, summary

UNKNOWN: dict[str, Any] = {"test_outcome": None}
RED: dict[str, Any] = {"test_outcome": False}


def report(*scored: Scored, records: tuple[dict[str, Any], ...] = (), size: int = 10, **fields: Any) -> Report:
    return Report(
        run="R",
        benchmark="bench",
        benchmark_size=size,
        visible_is_hidden=False,
        scored=tuple(map(scored_row, scored)),
        records={each["instance_id"]: summary(each) for each in records},
        **fields,
    )


def content(found: Report) -> dict[str, Any]:
    """As it is on disk."""
    value: dict[str, Any] = json.loads(to_json(results(found)))
    return value


ROWS = (
    row("a", Outcome.RESOLVED),
    row("b", Outcome.TESTS_FAILED),
    row("c", Outcome.RESOLVED, edit("b.py")),
    row("d", Outcome.TESTS_FAILED, edit("other.py")),
    row("e", Outcome.PATCH_DID_NOT_APPLY, "no patch at all"),
    row("f", Outcome.NOT_MEASURED),
)
RECORDS = (
    record("a", attempt(1, 0.5, unverified=True), attempt(2, 0.25, plausible=True), chosen=2),
    record("b", attempt(1, 0.5, plausible=True)),
    record("c", attempt(1, 0.25, unverified=True), **UNKNOWN),
    record("d", attempt(1, 0.25, unverified=True), **UNKNOWN),
    record("e", attempt(1, 0.75), **RED),
    record("f", attempt(1, 0.5, plausible=True)),
)


def test_every_number_is_counted_over_what_was_measured() -> None:
    found = content(report(*ROWS, records=RECORDS, spent=Usage(calls=7, cost=3.5)))["statistics"]
    assert found == {
        "percent": 40.0,
        "plus_one_percent": 50.0,
        "plausible": 2,
        "plausible_percent": 40.0,
        "resolved_plausible": 1,
        "resolved_plausible_percent": 50.0,
        "unverified": 2,
        "resolved_unverified": 1,
        "gold_files_found": 3,
        "gold_files_found_percent": 60.0,
        "resolved_gold_files_found": 2,
        "spent": 3.5,
        "cost_per_instance": 0.5,
        "expected_cost": 5.0,
    }


def test_they_are_those_of_the_seeds_own_run() -> None:
    """79 of 300 resolved; 70 of 214 plausible ones; 74 of 211 that found a gold file."""
    outcomes = [(key < 79, key < 70 or 79 <= key < 223, key < 74 or 79 <= key < 216) for key in range(300)]
    rows = [
        row(f"i{key:03}", Outcome.RESOLVED if good else Outcome.TESTS_FAILED, edit("a.py" if gold else "other.py"))
        for key, (good, _, gold) in enumerate(outcomes)
    ]
    records = [record(f"i{key:03}", **({} if plausible else RED)) for key, (_, plausible, _) in enumerate(outcomes)]
    found = content(report(*rows, records=tuple(records), size=300))["statistics"]
    assert (round(found["percent"], 1), round(found["plus_one_percent"], 1)) == (26.3, 26.6)
    assert (found["plausible"], found["resolved_plausible"]) == (214, 70)
    assert (round(found["plausible_percent"], 1), round(found["resolved_plausible_percent"], 1)) == (71.3, 32.7)
    assert (found["gold_files_found"], found["resolved_gold_files_found"]) == (211, 74)
    assert round(found["gold_files_found_percent"], 1) == 70.3


def test_a_price_that_is_unknown_once_is_unknown_on_average() -> None:
    records = (record("a", attempt(1, None)), record("b", attempt(1, 0.5)))
    found = content(report(*ROWS[:2], records=records, spent=Usage(cost=None)))["statistics"]
    assert (found["spent"], found["cost_per_instance"], found["expected_cost"]) == (None, None, None)


def test_a_file_from_elsewhere_says_nothing_of_plausibility_or_cost() -> None:
    found = report(*ROWS)
    numbers = content(found)["statistics"]
    assert (numbers["percent"], numbers["gold_files_found"]) == (40.0, 3)
    assert {numbers[name] for name in ("plausible", "resolved_plausible_percent", "unverified", "spent")} == {None}
    assert "plausible" not in render(found, results(found))


def test_nothing_measured_has_no_share() -> None:
    found = report(ROWS[-1], records=RECORDS[-1:])
    numbers = content(found)["statistics"]
    assert (numbers["percent"], numbers["plus_one_percent"]) == (None, 100.0)
    assert (numbers["plausible"], numbers["resolved_plausible_percent"]) == (0, None)
    assert "plausible     0, of which resolved 0" in render(found, results(found))


def test_they_are_printed_for_a_run_of_our_own() -> None:
    found = report(*ROWS, records=RECORDS, spent=Usage(calls=7, cost=3.5))
    lines = render(found, results(found)).splitlines()
    assert "plus one      50.0 %, were one more measured and resolved" in lines
    assert "plausible     2 (40.0 %), of which resolved 1 (50.0 %)" in lines
    assert "unverified    2, of which resolved 1" in lines
    assert "gold files    found in 3 (60.0 %), of which resolved 2" in lines
    assert "cost          3.5000 USD; 0.5000 USD a task, expected for all 10: 5.0000 USD" in lines


def test_unverified_attempts_are_counted_apart_for_each_model() -> None:
    found = report(*ROWS, records=RECORDS)
    by_model = content(found)["by_model"]["m"]
    assert (by_model["attempts"], by_model["plausible"], by_model["unverified"]) == (7, 3, 3)
    assert "3 + 3 unverified" in render(found, results(found))


# aider's own summary

AIDER = """
    dirname test_cases model edit_format editor_model editor_edit_format commit_hash reasoning_effort thinking_tokens
    pass_rate_1 pass_num_1 percent_cases_well_formed error_outputs num_malformed_responses num_with_malformed_responses
    user_asks lazy_comments syntax_errors indentation_errors exhausted_context_windows test_timeouts prompt_tokens
    completion_tokens total_tests command date versions seconds_per_case total_cost
"""


def test_aiders_summary_has_every_field_under_its_own_name() -> None:
    found = content(report(*ROWS, records=RECORDS, manifest=Manifest(identity={"reasoning_effort": "high"})))["aider"]
    assert set(found) == set(AIDER.split())
    assert (found["test_cases"], found["reasoning_effort"], found["thinking_tokens"]) == (5, "high", None)


def test_aiders_sums_are_of_first_attempts_as_the_records_have_them() -> None:
    first = attempt(1, num_error_outputs=3, num_user_asks=2, num_exhausted_context_windows=1, lazy_comments=4)
    again = attempt(2, num_error_outputs=9, num_user_asks=9, tests_outcomes=[True], plausible=True)
    found = content(report(ROWS[0], records=(record("a", first, again, chosen=2),)))["aider"]
    assert (found["error_outputs"], found["user_asks"], found["lazy_comments"]) == (3, 2, 4)
    assert (found["exhausted_context_windows"], found["pass_rate_1"], found["total_cost"]) == (1, 0.0, 0.5)


# What each rung brought


def test_the_ladder_is_in_the_results_and_printed() -> None:
    found = report(*ROWS, records=RECORDS, manifest=Manifest(identity={"models": ["m:whole", "n:diff"]}))
    rows = content(found)["ladder"]
    assert [(row["rung"], row["attempts"], row["resolved"]) for row in rows] == [("m:whole", 6, 1), ("n:diff", 1, 1)]
    assert [line.split()[0] for line in render(found, results(found)).splitlines() if ":" in line.split(" ")[0]] == [
        "m:whole",
        "n:diff",
    ]


def test_a_file_from_elsewhere_has_no_ladder_and_no_formats() -> None:
    found = content(report(*ROWS))
    assert (found["ladder"], found["by_format"], found["aider"]) == ([], {}, {})
    assert found["by_model"]["me"]["rate"]["of"] == 5


# What the benchmark's own grading says

ODD = graded("odd", output(*PASSED), exit_code=3)
GOOD = graded("good", output(*PASSED, applied="git apply --3way"), exit_code=0)


def test_a_verdict_that_differs_from_the_official_one_is_listed_and_printed() -> None:
    found = report(GOOD, ODD, row("plain", Outcome.RESOLVED))
    value = content(found)
    assert value["official_differs"] == ["odd"]
    shown = {each["instance_id"]: (each["resolved"], each["resolved_official"]) for each in value["instances"]}
    assert shown == {"good": (True, True), "odd": (False, True), "plain": (True, None)}
    assert "differs       from the official verdict: odd" in render(found, results(found))
    assert "official" not in render(report(GOOD), results(report(GOOD)))


def test_how_the_patch_was_applied_is_said() -> None:
    assert [each["applied_with"] for each in content(report(GOOD, ROWS[0]))["instances"]] == ["git apply --3way", ""]


def test_of_an_official_log_the_end_is_shown_and_of_others_the_beginning() -> None:
    long = graded("long", output("installing\n" * 500, *PASSED), exit_code=0)
    plain = row("plain", Verdict(outcome=Outcome.TESTS_FAILED, stdout="begin " + "x" * 2000))
    short = graded("short", output(*PASSED), exit_code=0)
    refused = graded("refused", "== not applied: no\n", exit_code=0)
    shown = [each["stdout"] for each in content(report(long, plain, short, refused))["instances"]]
    assert [len(text) for text in shown[:2]] == [1000, 1000]
    assert "PASSED t.py::new" in shown[0]
    assert shown[1].startswith("begin ")
    assert shown[2].startswith("+ : '>>>>> Start")
    assert shown[3] == "== not applied: no\n"


@pytest.mark.parametrize("kind", [None, "original"])
def test_how_visible_tests_were_chosen_stands_on_top(kind: str | None) -> None:
    found = report(*ROWS, manifest=Manifest(identity={"visible_tests": kind}))
    assert content(found)["visible_tests"] == kind


def test_a_summary_has_what_is_counted_and_none_of_the_bulk() -> None:
    whole = record("one", attempt(1, faults={"no_name": 2}, notes=["x" * 1000]), attempt(2, plausible=True), chosen=2)
    found = summary(whole)
    first, second = found.all_results
    assert (found.number, found.rank, found.settled, first.patch_id) == (2, 0, True, patch_id(edit()))
    assert (first.faults, first.cost, second.plausible) == ({"no_name": 2}, 0.5, True)
    assert "x" * 1000 not in repr(found) and edit() not in repr(found)
