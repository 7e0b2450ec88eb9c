"""Runs whose tasks other runs selected: what may be said of the two, and what may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrial.cli import compare, gate
from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports import page
from retrial.reports.analysis.run_conditions import Side
from retrial.reports.comparison_table import render
from retrial.store.runs import Run
from tests.cli.test_gate import write
from tests.support.plain import plain
from tests.support.sides import CONFIG, side

CHEAP, LEFT = "++++------", "    ++++++"
"""What the first run made of ten tasks; what the next made of those that it had left."""


def after(*prior: str, **more: Any) -> Mapping[str, Any]:
    return {**CONFIG, "prior": list(prior), **more}


def only_pair(*sides: Side) -> dict[str, Any]:
    [found] = compare.compared("it", sides).pairs
    return dict(plain(found))


def test_a_run_is_compared_together_with_the_one_that_selected_its_tasks() -> None:
    found = only_pair(side("cheap", CHEAP), side("dear", LEFT, after("cheap")))
    assert (found["a"], found["b"], found["common"]) == ("cheap", "cheap+dear", 10)
    assert (found["rate_a"]["percent"], found["rate_b"]["percent"], found["difference"]) == (40.0, 100.0, 60.0)
    assert (found["p"], found["p_adjusted"], found["more_than_chance"]) == (None, None, False)
    assert found["sentence"].startswith(
        "cheap+dear solves 60.0 points more than cheap on the 10 tasks that both measured. "
        "No significance test applies: dear ran only the tasks that cheap left"
    )


def test_the_order_in_which_the_two_are_named_does_not_matter() -> None:
    found = only_pair(side("dear", LEFT, after("cheap")), side("cheap", CHEAP))
    assert (found["a"], found["common"], found["more_than_chance"]) == ("cheap+dear", 10, False)
    assert "cheap solves 60.0 points less than cheap+dear" in found["sentence"]


def test_a_third_run_is_tested_against_both_together() -> None:
    sides = side("cheap", CHEAP), side("dear", LEFT, after("cheap")), side("other", "+" * 3 + "-" * 7)
    pairs = plain(compare.compared("it", sides))["pairs"]
    found = next(each for each in pairs if (each["a"], each["b"]) == ("cheap+dear", "other"))
    assert (found["common"], len(found["lost"]), found["more_than_chance"]) == (10, 7, True)


def test_two_runs_with_the_same_selection_are_tested() -> None:
    sides = side("cheap", CHEAP), side("dear", LEFT, after("cheap")), side("dull", "    ------", after("cheap"))
    pairs = plain(compare.compared("it", sides))["pairs"]
    assert [each["untested"] is None for each in pairs] == [False, False, True]
    assert (pairs[2]["common"], len(pairs[2]["lost"]), pairs[2]["p"]) == (10, 6, 0.03125)


def test_a_chain_of_runs_is_followed_to_its_beginning() -> None:
    sides = (
        side("free", "+---------"),
        side("cheap", " +++------", after("free")),
        side("dear", LEFT, after("cheap")),
    )
    pairs = plain(compare.compared("it", sides))["pairs"]
    assert [(each["a"], each["b"], each["common"]) for each in pairs] == [
        ("free", "free+cheap", 10),
        ("free", "cheap+dear", 10),
        ("free+cheap", "cheap+dear", 10),
    ]
    assert not any(each["more_than_chance"] for each in pairs)


def test_what_a_prior_run_was_made_of_selected_the_tasks_too() -> None:
    whole = side("A+B", CHEAP, {**CONFIG, "sources": ["A", "B"]})
    sides = side("A", "++--------"), side("dear", LEFT, after("A+B"))
    found = compare.compared("it", sides, find={"A+B": whole}.__getitem__)
    assert not found.pairs[0].more_than_chance


def test_a_run_is_not_tested_against_its_own_sources() -> None:
    found = only_pair(side("A", CHEAP), side("A+B", "+" * 10, {**CONFIG, "sources": ["A", "B"]}))
    assert not found["more_than_chance"]
    assert "the results of A are part of A+B" in found["sentence"]


def test_common_tasks_that_one_run_all_failed_look_chosen_for_that() -> None:
    found = only_pair(side("cheap", CHEAP), side("dear", LEFT))
    assert (found["common"], found["p"], found["more_than_chance"]) == (6, None, False)
    assert "cheap resolved none of the 6 common tasks, but did resolve others" in found["sentence"]


def test_a_run_that_failed_everything_is_tested_as_ever() -> None:
    assert only_pair(side("A", "-" * 10), side("B", LEFT))["more_than_chance"]


def test_the_table_and_the_page_say_what_selected_the_tasks(home: Path) -> None:
    content = compare.compared("it", (side("cheap", CHEAP), side("dear", LEFT, after("cheap"))))
    told = "dear ran only the tasks for which cheap found no plausible edit (--prior); its rate covers only those."
    assert told in render(content)
    page.write_comparison(Run(home, "it"), content)
    text = Run(home, "it").beside("compare.html")
    assert "No significance test applies" in text
    assert "McNemar" not in text


def test_a_prior_run_that_is_missing_is_refused(home: Path) -> None:
    write(home, "dear", LEFT, after("cheap"))
    write(home, "other", "+" * 10)
    with pytest.raises(UsageError, match=r"'dear' ran only the tasks for which cheap .* there is no run 'cheap' here"):
        compare.run(ReportOptions(), ["dear", "other"])


@pytest.mark.parametrize(("baseline", "scored"), [("cheap", "dear"), ("dear", "cheap")])
def test_neither_can_be_the_others_baseline(
    home: Path, capsys: pytest.CaptureFixture[str], baseline: str, scored: str
) -> None:
    found = {"cheap": write(home, "cheap", CHEAP), "dear": write(home, "dear", LEFT, after("cheap"))}
    options = replace(ReportOptions(), baseline=baseline)
    with pytest.raises(UsageError, match="neither can be the baseline of the other"):
        gate.refuse(options, [scored])
    assert gate.check(options, found[scored]) == ExitCode.MISSED
    assert "No significance test applies" in capsys.readouterr().out


def test_against_another_baseline_a_run_is_judged_with_what_selected_its_tasks(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, "cheap", CHEAP)
    write(home, "before", "+" * 10)
    found = write(home, "dear", LEFT, after("cheap"))
    assert gate.check(replace(ReportOptions(), baseline="before"), found) == ExitCode.DONE
    assert "cheap+dear and before solve the same on the 10 tasks" in capsys.readouterr().out


def test_of_two_runs_the_one_whose_prior_run_is_missing_is_named(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(home, "older", LEFT, after("gone"))
    found = write(home, "mine", "+" * 10)
    assert gate.check(replace(ReportOptions(), baseline="older"), found) == ExitCode.MISSED
    assert "Run 'older' ran only the tasks for which gone" in capsys.readouterr().out


def test_a_baseline_that_looks_selected_is_missed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "cheap", CHEAP)
    assert gate.check(replace(ReportOptions(), baseline="cheap"), write(home, "dear", LEFT)) == ExitCode.MISSED
    assert "these tasks look chosen for its failures" in capsys.readouterr().out
