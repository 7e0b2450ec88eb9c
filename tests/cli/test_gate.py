"""Gates for a CI: what is missed ends with 3, and what cannot be judged is missed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retrial.cli import arguments, gate
from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports.records import Results
from retrial.store.json_io import to_json
from retrial.store.runs import Run
from tests.support.sides import CONFIG, PROVENANCE, content

NOTHING = ReportOptions()


def write(home: Path, name: str, outcomes: str, stored: Mapping[str, Any] = CONFIG, **fields: Any) -> Results:
    """A run that was scored."""
    run = Run(home, name)
    run.write_config({**stored, "run": name})
    run.write_results(found := content(name, outcomes, **fields))
    return found


# --fail-under


@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        (0.0, ExitCode.DONE, "--fail-under 0: kept. 33.33 % are resolved."),
        (33.33, ExitCode.DONE, "--fail-under 33.33: kept. 33.33 % are resolved."),
        (33.4, ExitCode.MISSED, "--fail-under 33.4: missed. 33.33 % are resolved."),
        (100.0, ExitCode.MISSED, "--fail-under 100: missed. 33.33 % are resolved."),
    ],
)
def test_a_lower_rate_is_missed(wanted: float, code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate.check(replace(NOTHING, fail_under=wanted), content("A", "+-e?")) == code
    assert capsys.readouterr().out == f"{said}\n"


def test_nothing_measured_is_missed_even_where_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate.check(replace(NOTHING, fail_under=0.0), content("A", "??")) == ExitCode.MISSED
    assert "missed. Nothing was measured." in capsys.readouterr().out


def test_without_a_gate_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert gate.check(NOTHING, content("A", "--")) == ExitCode.DONE
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("wanted", [100.5, float("nan"), float("inf")])
def test_what_is_no_percentage_is_refused_before_scoring(wanted: float) -> None:
    with pytest.raises(UsageError, match="0 to 100"):
        gate.refuse(replace(NOTHING, fail_under=wanted))


# --baseline


@pytest.mark.parametrize(
    ("before", "now", "code", "words"),
    [
        ("+" * 20, "-" * 6 + "+" * 14, ExitCode.MISSED, "missed. now solves 30.0 points less than before"),
        ("+" * 20, "-" * 5 + "+" * 15, ExitCode.DONE, "kept. Cannot tell now from before on 20 common tasks"),
        ("-" * 20, "+" * 20, ExitCode.DONE, "kept. now solves 100.0 points more than before"),
        ("+-", "+-", ExitCode.DONE, "kept. now and before solve the same"),
        ("+ ", " +", ExitCode.MISSED, "missed. now and before have measured no task in common"),
        ("+", "?", ExitCode.MISSED, "missed. now and before have measured no task in common"),
    ],
)
def test_only_what_is_worse_by_more_than_chance_is_missed(
    home: Path, capsys: pytest.CaptureFixture[str], before: str, now: str, code: int, words: str
) -> None:
    write(home, "before", before)
    assert gate.check(replace(NOTHING, baseline="before"), write(home, "now", now)) == code
    assert f"--baseline before: {words}" in capsys.readouterr().out


def test_other_conditions_are_told_beside_the_verdict(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "before", "+", provenance={**PROVENANCE, "retrial": "0"})
    found = write(home, "now", "+", {**CONFIG, "limits": {"timeout_seconds": 1.0, "test_timeout_seconds": None}})
    assert gate.check(replace(NOTHING, baseline="before"), found) == ExitCode.DONE
    said = capsys.readouterr().err
    assert "note: version of Retrial differs: 0 in before, 1 in now" in said
    assert "note: limit timeout_seconds of phase 1 differs: 300.0 in before, 1.0 in now" in said


def test_a_baseline_is_a_run_a_path_in_it_or_a_file_from_elsewhere(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(home, "before", "+" * 10)
    elsewhere = tmp_path / "artifact"
    elsewhere.mkdir()
    (elsewhere / "results.json").write_bytes(to_json(before))
    inside = home / "predictions" / "before"
    found = write(home, "now", "-" * 10)
    for text in ("before", inside, inside / "results.json", elsewhere, elsewhere / "results.json"):
        options = replace(NOTHING, baseline=str(text))
        gate.refuse(options, ["now"])
        assert gate.check(options, found) == ExitCode.MISSED
        assert "now solves 100.0 points less than before" in capsys.readouterr().out


def test_an_earlier_result_of_the_same_run_is_told_from_the_one_of_now(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.json").write_bytes(to_json(content("now", "+" * 8)))
    found = write(home, "now", "-" * 8)
    options = replace(NOTHING, baseline=str(tmp_path / "old.json"))
    gate.refuse(options, ["now"])
    assert gate.check(options, found) == ExitCode.MISSED
    shown = capsys.readouterr()
    assert "now (now) solves 100.0 points less than now" in shown.out
    assert "how now was made is not known here" in shown.err


def test_both_gates_are_told_of_and_one_is_enough(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "before", "+-")
    found = write(home, "now", "+-")
    assert gate.check(replace(NOTHING, baseline="before", fail_under=60.0), found) == ExitCode.MISSED
    assert [line.split(". ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "--fail-under 60: missed",
        "--baseline before: kept",
    ]


def test_what_cannot_be_a_baseline_is_refused_before_scoring(home: Path, tmp_path: Path) -> None:
    write(home, "now", "+")
    Run(home, "unscored").write_config(CONFIG)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "grid.json").write_text('{"kind": "grid"}')
    (tmp_path / "empty").mkdir()
    other = {"benchmark": {"source": "other", "digest": "d2"}}
    write(home, "other", "+", provenance={**PROVENANCE, **other})
    for text, words in (
        ("missing", "no run and no file 'missing'"),
        ("unscored", "score it first with 'report.py unscored'"),
        (str(tmp_path / "broken.json"), "is not valid JSON"),
        (str(tmp_path / "grid.json"), "is of a grid"),
        (str(tmp_path / "empty"), "has no results.json"),
        ("now", "cannot be its own baseline"),
        ("other", "'now' is about bench, and 'other' about other"),
    ):
        with pytest.raises(UsageError, match=words):
            gate.refuse(replace(NOTHING, baseline=text), ["now"])


def test_what_turns_out_to_be_no_baseline_is_missed_in_a_sentence(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = write(home, "now", "+")
    write(home, "other", "+", provenance={**PROVENANCE, "benchmark": {"source": "other", "digest": "d2"}})
    for text, words in (
        ("now", "cannot be its own baseline"),
        ("other", "same benchmark"),
        ("gone", "There is no run"),
    ):
        assert gate.check(replace(NOTHING, baseline=text), found) == ExitCode.MISSED
        shown = capsys.readouterr().out
        assert shown.startswith(f"--baseline {text}: missed. ") and words in shown


@pytest.mark.parametrize(
    "change",
    [
        {"instances": [{"instance_id": "task-0000", "outcome": []}]},
        {"instances": [{"instance_id": "task-0000", "outcome": "odd"}]},
        {"provenance": {"benchmark": "bench"}},
        {"provenance": {**PROVENANCE, "limits": [3]}},
        {"provenance": {**PROVENANCE, "environments": []}},
        {"provenance": {**PROVENANCE, "environments": {"python": "3"}}},
        {"rate": {}},
        {"aider": 3},
    ],
)
def test_a_baseline_that_somebody_edited_is_refused_before_anything_is_scored(
    home: Path, change: dict[str, Any]
) -> None:
    write(home, "before", "+")
    path = Run(home, "before").results_path
    path.write_bytes(to_json({**json.loads(path.read_bytes()), **change}))
    with pytest.raises(UsageError, match="lacks what every one has"):
        gate.refuse(replace(NOTHING, baseline="before"))


@pytest.mark.parametrize("stored", [{"identity": None}, {"identity": {"agent": "x"}, "limits": [3]}, []])
def test_a_run_json_that_says_nothing_leaves_its_settings_unknown(home: Path, tmp_path: Path, stored: Any) -> None:
    write(home, "before", "+")
    (tmp_path / "results.json").write_bytes(Run(home, "before").results_path.read_bytes())
    (tmp_path / "run.json").write_bytes(to_json(stored))
    now = write(home, "now", "+")
    assert gate.check(replace(NOTHING, baseline=str(tmp_path / "results.json")), now) == ExitCode.DONE


def test_a_third_is_not_less_than_33_and_a_third(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = write(home, "now", "++----")
    assert gate.check(replace(NOTHING, fail_under=33.333), content) == ExitCode.DONE
    assert gate.check(replace(NOTHING, fail_under=33.334), content) == ExitCode.MISSED


def test_a_baselines_name_cannot_write_lines_of_its_own(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(home, "before", "+-+")
    path = Run(home, "before").results_path
    path.write_bytes(to_json({**json.loads(path.read_bytes()), "run": "a\n::error::x \x1b[31m"}))
    gate.check(replace(NOTHING, baseline="before"), write(home, "now", "+-+"))
    said = capsys.readouterr()
    assert "::error::x" in said.out
    assert not any(line.startswith("::error") for line in (said.out + said.err).splitlines())
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize("option", ["baseline", "junit", "markdown", "csv", "submission"])
def test_an_option_that_is_empty_is_no_option_that_was_left_out(option: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--{option} is empty"):
        arguments.parse(ReportOptions, [f"--{option}", ""], "", positional="RUN")
    (tmp_path / "c.yaml").write_text(f"{option}:\n")
    with pytest.raises(UsageError, match=f"--{option} is empty"):
        arguments.parse(ReportOptions, ["-c", str(tmp_path / "c.yaml")], "", positional="RUN")
