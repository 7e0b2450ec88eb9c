"""The recordings hold what they are for, name nothing of a machine, and are masked no more than they must be."""

from __future__ import annotations

import getpass
import json
import platform
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import recording
from tests.e2e.masks import assert_same, masked, masked_text
from tests.e2e.recording import RECORDED, STEPS

LADDER = "predictions/ladder"
RESULTS = f"{LADDER}/results.json"


@pytest.mark.parametrize("program", ["harness", "report"])
def test_help_is_as_recorded(program: str, tmp_path: Path) -> None:
    name = f"{program}-help"
    shown = recording.perform(STEPS[name], tmp_path, tmp_path / "cache")
    assert_same(in_any_python(recording.terminal(name)), in_any_python(shown), "help")


def in_any_python(text: str) -> str:
    """Return one word a line: from Python 3.13 on an option's value is named once, and lines break elsewhere."""
    return "\n".join(re.sub(r"(-\w) (\S+), (--[\w-]+ \2)", r"\1, \3", text).split())


def test_the_killed_attempt_has_an_answer_and_no_prediction() -> None:
    killed = recording.recorded(["killed"])
    journal = [json.loads(line) for line in killed[f"{LADDER}/journal/aider_python_add_one.jsonl"].splitlines()]
    assert [line["event"] for line in journal if line["attempt"] == 2] == ["attempt_started", "request", "reply"]
    assert f"{LADDER}/aider_python_add_four.json" in killed
    assert f"{LADDER}/aider_python_add_one.json" not in killed
    assert "---- exit code -9\n" in recording.terminal("killed")


def test_the_resumed_run_has_two_models_two_tries_and_every_kind_of_end() -> None:
    found = recording.recorded(["killed", "resumed"])
    records = [json.loads(found[f"{LADDER}/aider_python_add_{each}.json"]) for each in ("four", "one", "three", "two")]
    assert [(each["plausible"], each["try"], each["tries"]) for each in records] == [
        (True, 1, 1),
        (True, 2, 2),
        (False, 1, 4),
        (True, 2, 2),
    ]
    assert {each["model"] for each in records[2]["all_results"]} == {
        "replay/replies/first.jsonl",
        "replay/replies/second.jsonl",
    }
    assert records[3]["all_results"][0]["num_malformed_responses"] == 2


def test_the_foreign_file_is_right_wrong_empty_and_stale() -> None:
    (content,) = results("foreign")
    assert {row["instance_id"]: row["outcome"] for row in content["instances"]} == {
        "aider_python_add_four": "resolved",
        "aider_python_add_one": "tests_failed",
        "aider_python_add_three": "patch_empty",
        "aider_python_add_two": "patch_did_not_apply",
    }


def test_the_recorded_exit_codes_are_those_of_success_refusals_a_missed_gate_and_what_was_not_measured() -> None:
    found = {name: recording.terminal(name).rpartition("---- exit code ")[2].strip() for name in STEPS}
    assert found.pop("killed") == "-9"
    assert {name: code for name, code in found.items() if code != "0"} == {
        "refused": "2",
        "broken": "2",
        "foreign": "3",
        "unanswered": "1",
    }


def results(step: str) -> list[dict[str, Any]]:
    found = recording.recorded([step])
    return [json.loads(text) for name, text in found.items() if name.endswith("/results.json")]


def test_recordings_name_nothing_of_a_machine() -> None:
    words = [str(Path.home()), platform.node(), getpass.getuser(), str(recording.PROJECT)]
    patterns = [re.compile(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])") for word in words if len(word) > 1]
    allowed = re.compile(rf"{recording.PLACE}|/tmp/(?:job|reports)/|/opt/retrial/|/dev/null")
    for path in (each for each in RECORDED.rglob("*") if each.is_file()):
        text = path.read_text(encoding="utf-8")
        assert [each.pattern for each in patterns if each.search(text)] == [], path
        others = re.findall(r"(?<![\w.*/<\])-])/(?:tmp|home|root|usr|opt|var|dev|place|work)/[\w./-]*", text)
        assert [place for place in others if not allowed.match(place)] == [], path


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ('"resolved_plausible":', '"plausible_resolved":'),
        ('"outcome": "tests_failed"', '"outcome": "tests_errored"'),
        ('"exit_code": 1', '"exit_code": 2'),
        ("tests did not pass", "tests failed"),
        ('"cost": 0.25', '"cost": 0.24'),
        ('"test_seconds":', '"tests_seconds":'),
        ("test_small_numbers FAILED", "test_small_numbers PASSED"),
        ('"model_name_or_path"', '"model_name"'),
        ('"digest": "', '"digest": "0'),
    ],
)
def test_a_changed_name_outcome_number_or_word_is_seen(then: str, now: str) -> None:
    text = recording.recorded(["scored"])[RESULTS]
    assert then in text
    assert masked(RESULTS, text.replace(then, now, 1)) != masked(RESULTS, text)


@pytest.mark.parametrize(
    ("then", "now"),
    [("\nresolved  ", "\nsolved    "), ("exit code 0", "exit code 1"), ("tests_failed [", "resolved [")],
)
def test_a_changed_word_or_exit_code_in_the_output_is_seen(then: str, now: str) -> None:
    text = recording.terminal("scored")
    assert then in text
    assert masked_text(text.replace(then, now, 1)) != masked_text(text)


OTHER_MACHINE = (
    (r"3\.11\.\d+", "3.13.10"),
    (r"pytest([- ])[\d.]+", r"pytest\g<1>10.0"),
    (r"0\.1\.0", "0.20.0"),
    (r'("(?:cpu_)?seconds": )[\d.]+', r"\g<1>12.5"),
    (r"=+ (.* in )[\d.]+s =+", r"=== \g<1>12.34s ==="),
)


def test_other_versions_and_times_are_not_seen() -> None:
    text = other = recording.recorded(["scored"])[RESULTS]
    for then, now in OTHER_MACHINE:
        assert re.search(then, text), then
        other = re.sub(then, now, other)
    assert_same(masked(RESULTS, text), masked(RESULTS, other), RESULTS)
