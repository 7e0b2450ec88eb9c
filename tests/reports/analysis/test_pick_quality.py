"""How good the choice among attempts was: every number counted by hand, with what is unknown and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from retrial.errors import SandboxError
from retrial.reports.analysis import ladder_value
from retrial.reports.analysis.cases import Judged, OutcomeResolver, TaskAttempts
from retrial.reports.analysis.stats import rate
from retrial.reports.results import Report, results
from retrial.reports.terminal import render
from retrial.score.save import save_attempt, scored_row
from retrial.store.manifest import Manifest
from retrial.store.records import patch_id
from retrial.store.runs import Run
from retrial.types import Outcome, Verdict
from tests.support.plain import plain
from tests.support.rows import attempt, record, row, summary

RIGHT, WRONG = Outcome.RESOLVED, Outcome.TESTS_FAILED
GREEN: dict[str, Any] = {"edit_outcome": True, "lint_outcome": True, "test_outcome": True, "plausible": True}
RED: dict[str, Any] = {"edit_outcome": True, "lint_outcome": True, "test_outcome": False}

# One: plausible at once, and right. Two: red, then plausible and wrong; the red one was right. Three: two red ones, the
# second was right. Four: the provider broke, then plausible and right.
WHOLE = {
    "one": record("one", attempt(1, model_patch="a", **GREEN)),
    "two": record("two", attempt(1, model_patch="b", **RED), attempt(2, model_patch="c", **GREEN), chosen=2),
    "three": record("three", attempt(1, model_patch="d", **RED), attempt(2, model_patch="e", **RED)),
    "four": record(
        "four", attempt(1, model_patch="", error="the provider broke"), attempt(2, model_patch="f", **GREEN), chosen=2
    ),
}
RECORDS = {name: summary(each) for name, each in WHOLE.items()}
CHOSEN = {"one": RIGHT, "two": WRONG, "three": WRONG, "four": RIGHT}
LADDER = Manifest(identity={"models": ["m:whole"]})
OTHERS = {"two": {"b": RIGHT}, "three": {"e": RIGHT}}


def judged(others: Mapping[str, Mapping[str, Outcome]]) -> dict[str, dict[str, Judged]]:
    return {
        task: {
            patch_id(patch): Judged(outcome=outcome, reason="why", number=number)
            for number, (patch, outcome) in enumerate(own.items(), start=1)
        }
        for task, own in others.items()
    }


def tries(others: Mapping[str, Mapping[str, Outcome]]) -> list[TaskAttempts]:
    known = OutcomeResolver(visible_is_hidden=False, titles=("m:whole",), judged=judged(others))
    return [known.tries(RECORDS[name], outcome) for name, outcome in CHOSEN.items()]


def built(found: list[TaskAttempts]) -> Any:
    return plain(ladder_value.picker(found))


def low_high(found: Any) -> dict[str, tuple[float, float]]:
    return {name: (pick["low"], pick["high"]) for name, pick in found["picks"].items()}


def test_when_every_verdict_is_known_all_picks_are_numbers() -> None:
    found: Any = built(tries(OTHERS))
    assert (found["tasks"], found["with_a_choice"], found["attempts"], found["unknown"]) == (4, 2, 6, 0)
    assert found["exact"]
    assert found["precision"] == {**plain(rate(2, 3)), "unknown": 0}
    assert (found["missed"]["missed"], found["missed"]["of"], found["missed"]["percent"]) == (2, 4, 50.0)
    assert low_high(found) == {"ours": (2, 2), "best": (4, 4), "first": (3, 3), "last": (3, 3), "random": (3.0, 3.0)}
    assert found["ours_of_best"] == {"percent_low": 50.0, "percent_high": 50.0}


def test_what_was_not_scored_gives_bounds() -> None:
    found: Any = built(tries({}))
    assert (found["known"], found["unknown"], found["exact"]) == (4, 2, False)
    assert found["precision"] == {**plain(rate(2, 3)), "unknown": 0}
    assert (found["missed"]["missed"], found["missed"]["of"], found["missed"]["unknown"]) == (0, 2, 2)
    assert low_high(found) == {"ours": (2, 2), "best": (2, 4), "first": (2, 3), "last": (2, 3), "random": (2.0, 3.0)}
    assert found["ours_of_best"] == {"percent_low": 50.0, "percent_high": 100.0}


def test_an_attempt_that_could_not_be_measured_stays_unknown() -> None:
    found: Any = built(tries({"two": {"b": Outcome.NOT_MEASURED}, "three": {"e": RIGHT}}))
    assert (found["unknown"], low_high(found)["best"]) == (1, (3, 4))


def test_a_file_from_elsewhere_has_no_picks() -> None:
    assert ladder_value.picker([]) is None
    assert ladder_value.describe_picker(None) == []


def test_one_line_tells_of_it_where_there_was_a_choice() -> None:
    assert ladder_value.describe_picker(ladder_value.picker(tries(OTHERS))) == [
        "picker        plausible meant resolved in 2 of 3 (66.7 %); best possible pick 4, ours 2"
    ]
    (unknown,) = ladder_value.describe_picker(ladder_value.picker(tries({})))
    assert unknown.endswith("best possible pick 2 to 4 (--attempts tells), ours 2")
    assert ladder_value.describe_picker(ladder_value.picker(tries({})[:1])) == []
    (nothing,) = ladder_value.describe_picker(ladder_value.picker([tries(OTHERS)[2]]))
    assert nothing == "picker        nothing was plausible; best possible pick 1, ours 0"


@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=4), min_size=1, max_size=5))
def test_the_truth_lies_within_the_bounds(truths: list[list[tuple[bool, bool]]]) -> None:
    """Of each attempt whether it is right, and whether that is revealed; the first is chosen, and known."""

    def found(*, all_told: bool) -> Any:
        known = []
        for number, own in enumerate(truths):
            goes = [attempt(place, model_patch=f"{place}", **RED) for place in range(1, len(own) + 1)]
            told = {
                f"{place}": RIGHT if right else WRONG
                for place, (right, revealed) in enumerate(own, start=1)
                if revealed or all_told
            }
            outcome = RIGHT if own[0][0] else WRONG
            look = OutcomeResolver(visible_is_hidden=False, titles=("m",), judged=judged({f"t{number}": told}))
            known.append(look.tries(summary(record(f"t{number}", *goes)), outcome))
        return built(known)

    truth, shown = found(all_told=True), found(all_told=False)
    assert truth["exact"]
    for name, pick in truth["picks"].items():
        assert pick["low"] == pick["high"]
        assert shown["picks"][name]["low"] <= pick["low"] <= shown["picks"][name]["high"]
    assert shown["missed"]["missed"] <= truth["missed"]["missed"] <= shown["missed"]["missed"] + shown["unknown"]


def test_what_breaks_while_an_attempt_is_scored_is_nobodys_failure_and_has_a_log(tmp_path: Path) -> None:
    run, of = Run(tmp_path, "R"), row("one", Outcome.RESOLVED)
    for name in ("m", "m" * 150):
        submission = replace(of.submission, model_name_or_path=name)
        run.write_log("one", name, "the chosen one's")
        kept = save_attempt(run, of.task, submission, 2, SandboxError("the engine is gone"))
        assert kept == Judged(outcome=Outcome.NOT_MEASURED, reason="the engine is gone", number=2)
        assert (run.logs / f"one.{name[:120]}.eval.log").read_text() == "the chosen one's"
        assert "the engine is gone" in (run.logs / f"one.{name[:100]}.try-2.eval.log").read_text()
    assert not run.logs.joinpath("one").exists()


# In results.json and on the terminal


def report(**fields: Any) -> Report:
    scored = [
        row(name, Verdict(outcome=outcome, seconds=2.0 + place)) for place, (name, outcome) in enumerate(CHOSEN.items())
    ]
    known = {"records": RECORDS, "manifest": LADDER, **fields}
    return Report(
        run="R",
        benchmark="bench",
        benchmark_size=10,
        visible_is_hidden=False,
        scored=(*map(scored_row, scored), scored_row(row("five", Outcome.PATCH_EMPTY, ""))),
        **known,
    )


def content(found: Report) -> Any:
    return plain(results(found))


def test_every_attempt_of_an_instance_is_listed_with_what_is_known() -> None:
    found = content(report(judged=judged(OTHERS)))
    shown = {each["instance_id"]: each["attempts"] for each in found["instances"]}
    assert shown["two"] == [
        {
            "try": 1,
            "model": "m",
            "edit_format": "whole",
            "plausible": False,
            "cost": 0.5,
            "outcome": "resolved",
            "resolved": True,
            "how": "scored",
        },
        {
            "try": 2,
            "model": "m",
            "edit_format": "whole",
            "plausible": True,
            "cost": 0.5,
            "outcome": "tests_failed",
            "resolved": False,
            "how": "scored",
        },
    ]
    assert [(each["how"], each["resolved"], each["outcome"]) for each in shown["four"]] == [
        ("unknown", None, "not_measured"),
        ("scored", True, "resolved"),
    ]
    assert shown["five"] == []


def test_headline_numbers_do_not_change_when_every_attempt_is_scored() -> None:
    chosen, whole = content(report()), content(report(judged=judged(OTHERS)))
    differing = {name for name in chosen if chosen[name] != whole[name]}
    assert differing == {"economics", "picker", "instances"}
    for before, after in zip(chosen["instances"], whole["instances"], strict=True):
        assert {**before, "attempts": []} == {**after, "attempts": []}


def test_attempts_that_could_not_be_measured_are_listed_and_said_and_are_no_headline() -> None:
    found = report(judged=judged({"two": {"b": Outcome.INSTALL_FAILED}}))
    value = content(found)
    assert value["not_measured_attempts"] == [{"instance_id": "two", "try": 1, "reason": "why"}]
    assert (value["not_measured"], found.not_measured) == ({}, {})
    lines = render(found, results(found)).splitlines()
    assert "attempts      1 that were not chosen could not be measured: the same command tries again" in lines
    assert "  not measured: 1 × why" in lines


def test_the_terminal_has_a_line_for_the_picker_and_one_for_each_of_a_few_what_ifs() -> None:
    records = {name: each for name, each in RECORDS.items() if name != "four"}
    found = report(judged=judged(OTHERS), records=records)
    told = render(found, results(found)).splitlines()
    assert [line for line in told if line.startswith(("picker ", "what if "))] == [
        "picker        plausible meant resolved in 1 of 2 (50.0 %); best possible pick 3, ours 1",
        "what if       m:whole, 1 try: 66.7 % for 1.50 USD instead of 33.3 % for 2.50 USD",
    ]


def test_shards_of_one_run_are_one_ladder_and_other_runs_have_their_own() -> None:
    goes = [attempt(1, model_patch=f"{name}", dname=name, **RED) for name in ("A", "B")]
    records = {name: summary(record(name, each)) for name, each in zip(("one", "two"), goes, strict=True)}
    rows = [scored_row(row(name, Outcome.TESTS_FAILED)) for name in records]
    common: dict[str, Any] = {"run": "R", "benchmark": "b", "benchmark_size": 2, "visible_is_hidden": False}
    both = {"scored": tuple(rows), "records": records, **common}
    shards, runs = (
        content(Report(**both, manifest=replace(known, sources=("A", "B")))) for known in (LADDER, Manifest())
    )
    assert [(each["rung"], each["run"], each["tasks"]) for each in shards["economics"]["rungs"]] == [
        ("m:whole", None, 2)
    ]
    assert [(each["rung"], each["run"], each["tasks"]) for each in runs["economics"]["rungs"]] == [
        ("m:whole of A", "A", 1),
        ("m:whole of B", "B", 1),
    ]


def test_a_task_says_what_its_attempts_took_and_the_run_what_all_took() -> None:
    found = content(report())
    shown = {each["instance_id"]: each for each in found["instances"]}
    names = ("prompt_tokens", "completion_tokens", "model_seconds", "turns_passed")
    assert [shown["two"][name] for name in names] == [20, 10, 2.0, [False]]
    assert [shown["five"][name] for name in names] == [None] * 4
    assert found["time"] == {
        "test_seconds": 14.0,
        "median_test_seconds": 3.5,
        "model_seconds": 7.0,
        "slowest": [
            {"instance_id": name, "seconds": seconds}
            for name, seconds in (("four", 5.0), ("three", 4.0), ("two", 3.0), ("one", 2.0))
        ],
    }
    elsewhere = content(report(records={}, manifest=Manifest()))
    assert elsewhere["time"]["model_seconds"] is None
    assert (elsewhere["economics"], elsewhere["picker"]) == ({}, {})
