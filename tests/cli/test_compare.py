"""`--compare`: what is taken, what is refused, and what is written and shown."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrial.chat import Usage
from retrial.cli import compare
from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports.comparison_table import render
from retrial.store.runs import Run
from tests.support.plain import plain
from tests.support.rows import attempt, record, summary
from tests.support.sides import CONFIG, IDENTITY, PROVENANCE, content, side

NOTHING = ReportOptions()


def write(home: Path, name: str, outcomes: str, config: Mapping[str, Any] = CONFIG, **fields: Any) -> Run:
    """A run of harness.py that was scored."""
    run = Run(home, name)
    found = content(name, outcomes, **fields)
    run.write_config({**config, "run": name, "selected": [row.instance_id for row in found.instances]})
    for row in found.instances:
        run.write_prediction(row.instance_id, record(row.instance_id), "")
    run.write_results(found)
    return run


def read(home: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "predictions" / name / "results.json").read_text())
    return found


# What is written


def test_what_was_scored_is_taken_as_it_is_and_compared(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "A", "+-" * 10)
    write(home, "B", "++" * 10)
    assert compare.run(NOTHING, ["A", "B"]) == ExitCode.DONE
    found = read(home, "compare--A--B")
    assert (found["schema"], found["kind"], found["run"]) == (1, "comparison", "compare--A--B")
    assert [row["rate"]["percent"] for row in found["runs"]] == [50.0, 100.0]
    (pair,) = found["pairs"]
    assert (pair["a"], pair["b"], len(pair["gained"]), pair["lost"]) == ("A", "B", 10, [])
    assert (pair["difference"], pair["warnings"], found["warnings"]) == (50.0, [], [])
    shown = capsys.readouterr()
    assert pair["sentence"] in shown.out
    assert "and more" not in shown.out and "task-0019" in shown.out
    assert shown.err == ""


def test_the_comparison_can_be_made_again_and_named(home: Path) -> None:
    for name in "AB":
        write(home, name, "+-")
    options = replace(NOTHING, run="mine")
    assert compare.run(options, ["A", "B"]) == compare.run(options, ["B", "A"]) == ExitCode.DONE
    assert [row["run"] for row in read(home, "mine")["runs"]] == ["B", "A"]


def test_of_up_to_four_runs_all_pairs_are_compared_of_more_each_with_the_first(home: Path) -> None:
    sides = [side(name, "+-") for name in "ABCDE"]
    four = [(pair.a, pair.b) for pair in compare.compared("x", sides[:4]).pairs]
    assert four == [("A", "B"), ("A", "C"), ("A", "D"), ("B", "C"), ("B", "D"), ("C", "D")]
    five = compare.compared("x", sides).pairs
    assert [(pair.a, pair.b) for pair in five] == [("A", "B"), ("A", "C"), ("A", "D"), ("A", "E")]


def test_more_than_chance_takes_more_where_more_is_compared() -> None:
    sides = [side("A", "-" * 12), side("B", "+" * 6 + "-" * 6), side("C", "-" * 12)]
    assert [pair.more_than_chance for pair in compare.compared("x", sides[:2]).pairs] == [True]
    three = compare.compared("x", sides).pairs
    assert [pair.more_than_chance for pair in three] == [False, False, False]
    assert three[0].p == 0.03125 and three[0].p_adjusted == pytest.approx(0.09375)


def test_long_names_are_cut_and_told_apart_by_a_digest(home: Path) -> None:
    first, second, third = "a" * 120, "b" * 120, "b" * 119 + "c"
    for name in (first, second, third):
        write(home, name, "+")
    compare.run(NOTHING, [first, second])
    compare.run(NOTHING, [first, third])
    names = [path.name for path in (home / "predictions").glob("compare--*")]
    assert len(names) == 2 and all(len(name) == 200 for name in names)


# What is shown


def test_a_row_has_what_is_known_of_a_run() -> None:
    records = {
        "task-0000": summary(
            record("task-0000", attempt(tests_outcomes=[False, True], plausible=True, model_seconds=2.0))
        )
    }
    spent = Usage(calls=3, cost=0.5)
    known = side("A", "+-", records=records, spent=spent)
    (row, other) = plain(compare.compared("x", [known, side("B", "++")]))["runs"]
    assert (row["model"], row["edit_format"], row["agent"]) == ("m", "whole", "edit")
    assert (row["pass_rate_1"], row["pass_rate_2"], row["percent_cases_well_formed"]) == (0.0, 100.0, 100.0)
    assert (row["cost"], row["cost_per_resolved"], row["seconds_per_case"]) == (0.5, 0.5, 2.0)
    assert (other["model"], other["cost"], other["pass_rate_1"]) == ("me", None, None)


def test_the_table_is_aligned_and_says_what_is_unknown() -> None:
    shown = render(compare.compared("x", [side("first", "+-?"), side("B", "++ ")])).splitlines()
    assert shown[0].split()[:4] == ["run", "model", "format", "resolved"]
    assert " ".join(shown[2].split()) == "first me - 1/2 50.0 % (9 to 91) - - - - - - 1"
    assert shown[3].startswith("B      me     -       2/2")


def test_of_many_ids_the_first_ten_are_shown() -> None:
    shown = render(compare.compared("x", [side("A", "-" * 12 + "+"), side("B", "+" * 12 + " ")]))
    assert "task-0009 and 2 more" in shown and "task-0010" not in shown
    assert "measured in one only: 1 in A, 0 in B" in shown
    assert "lost " not in shown.replace("lost 0", "")
    assert "difference  +100.0 points (95 % interval +" in shown


def test_what_differs_is_shown() -> None:
    other = side("B", "+", {**CONFIG, "identity": {**IDENTITY, "seed": 3, "turns": 1}})
    found = compare.compared("x", [side("A", "+"), other])
    shown = render(found)
    assert "differs in  seed: 0 in A, 3 in B" in shown
    assert "warning     turns differs: 2 in A, 1 in B" in shown
    assert found.warnings == ("turns differs: 2 in A, 1 in B",)


# What is taken


@pytest.mark.parametrize("kind", ["grid", "repeats"])
def test_a_group_stands_for_its_runs(home: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "ABC":
        write(home, name, "+-")
    listed = [{"run": "A"}, {"run": "B"}, {"run": "never"}]
    Run(home, "G").write_config({"program": "harness.py", "kind": kind, "runs": listed, "identity": IDENTITY})
    assert compare.run(replace(NOTHING, run="x"), ["G", "C"]) == ExitCode.DONE
    assert [row["run"] for row in read(home, "x")["runs"]] == ["A", "B", "C"]
    assert "'never' of 'G' was never started" in capsys.readouterr().err
    with pytest.raises(UsageError, match="'A' is named twice"):
        compare.run(NOTHING, ["G", "A"])


def test_results_of_other_predictions_than_there_are_now_are_not_taken(home: Path) -> None:
    """The benchmark is not there, so that to score it again is refused: which shows that it would be."""
    write(home, "A", "+-")
    run = write(home, "B", "+-")
    assert compare.run(NOTHING, ["A", "B"]) == ExitCode.DONE
    with pytest.raises(UsageError, match="Unknown benchmark 'bench'"):
        compare.run(replace(NOTHING, fresh=True), ["A", "B"])

    newer = run.results_path.stat().st_mtime_ns + 10**9
    os.utime(run.prediction_path("task-0000"), ns=(newer, newer))
    with pytest.raises(UsageError, match="Unknown benchmark"):
        compare.run(NOTHING, ["A", "B"])
    write(home, "B", "+-")
    assert compare.run(NOTHING, ["A", "B"]) == ExitCode.DONE

    run.prediction_path("task-0001").unlink()
    with pytest.raises(UsageError, match="Unknown benchmark"):
        compare.run(NOTHING, ["A", "B"])
    run.results_path.unlink()
    with pytest.raises(UsageError, match="Unknown benchmark"):
        compare.run(NOTHING, ["A", "B"])


# What is refused


@pytest.mark.parametrize(
    "given",
    [
        *({name: True} for name in ("gold", "null", "calibrate", "doctor", "attempts")),
        *({name: "x"} for name in ("baseline", "submission", "junit", "markdown", "csv")),
        {"fail_under": 0.0},
        {"repeat": 2},
        {"task": ("x",)},
    ],
)
def test_what_does_not_go_with_a_comparison_is_refused(given: dict[str, Any]) -> None:
    (name,) = given
    with pytest.raises(UsageError, match=f"--compare does not go with --{name.replace('_', '-')}"):
        compare.run(replace(NOTHING, **given), ["A", "B"])


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], "needs two"),
        (["A"], "needs two"),
        (["A", "A"], "'A' is named twice"),
        (["A", "predictions/A/results.json"], "'A' is named twice"),
        (["A", "missing"], "no run and no file 'missing'"),
        (["A", "other"], "'other' is about other, and 'A' about bench"),
        (["A", "whole"], "'whole' is there in shards only"),
        (["A", "calibration"], "is a calibration"),
        (["A", "file.jsonl"], "Say it with -b"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str], words: str
) -> None:
    write(home, "A", "+")
    other = {**CONFIG, "identity": {**IDENTITY, "benchmark": "other", "benchmark_digest": "d2"}}
    write(home, "other", "+", other, provenance={**PROVENANCE, "benchmark": {"source": "other", "digest": "d2"}})
    write(home, "whole--1-of-2", "+", {**CONFIG, "shard": {"number": 1, "of": 2}})
    Run(home, "calibration").write_config({**CONFIG, "kind": "calibration"})
    (home / "file.jsonl").write_text("{}")
    monkeypatch.chdir(home)
    with pytest.raises(UsageError, match=words):
        compare.run(NOTHING, texts)
    assert not list((home / "predictions").glob("compare--*"))


def test_a_comparison_takes_no_runs_place(home: Path) -> None:
    for name in "ABC":
        write(home, name, "+")
    with pytest.raises(UsageError, match="There is a run 'C' already"):
        compare.run(replace(NOTHING, run="C"), ["A", "B"])
    assert "kind" not in read(home, "C")


def test_runs_of_one_group_are_not_compared_with_each_other(home: Path) -> None:
    for name, outcomes in (("r.1", "+-+-+-"), ("r.2", "+--++-"), ("other", "------")):
        write(home, name, outcomes)
    runs = [{"run": "r.1", "seed": 0}, {"run": "r.2", "seed": 1}]
    Run(home, "r").write_config({"program": "harness.py", "kind": "repeats", "run": "r", "runs": runs})
    compare.run(replace(NOTHING, run="c"), ["r", "other"])
    assert [(each["a"], each["b"]) for each in read(home, "c")["pairs"]] == [("r.1", "other"), ("r.2", "other")]
    compare.run(replace(NOTHING, run="d"), ["r"])
    assert [(each["a"], each["b"]) for each in read(home, "d")["pairs"]] == [("r.1", "r.2")]


def test_the_same_comparison_ends_the_same_way_again(home: Path) -> None:
    write(home, "A", "+-?")
    write(home, "B", "++?")
    assert compare.run(NOTHING, ["A", "B"]) == compare.run(NOTHING, ["A", "B"]) == ExitCode.NOT_MEASURED


def test_a_group_that_does_not_say_its_runs_is_refused(home: Path) -> None:
    Run(home, "r").write_config({"program": "harness.py", "kind": "repeats", "run": "r", "runs": [{}]})
    with pytest.raises(UsageError, match="does not say which runs"):
        compare.run(NOTHING, ["r", "other"])


def test_names_write_no_lines_of_their_own() -> None:
    hostile = side("a\n::error::x\x1b[31m", "+-+-")
    told = render(compare.compared("c", [hostile, side("b", "++++")]))
    assert "::error::x" in told
    assert "\x1b" not in told
    assert not any(line.startswith("::error") for line in told.splitlines())
