"""The ladder: every try over every model until plausible, else the least bad; all of it on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrial.protocols import Sandbox
from tests.conftest import Run
from tests.support.exercises import RIGHT, WRONG, reply, write_exercise, write_replies

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

MALFORMED = "I would simply add the two numbers."
HALF = "def add(a, b):\n    return a + b if a else missing\n"
CRASH = {"error": "the provider is on fire"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_exercise(tmp_path / "bench")


def ladder(run: Run, folder: Path, *replies: object, tries: int = 3, **options: object) -> Any:
    """Two models a and b, in rounds; replies are dealt alternately. Returns the finished process."""
    models = [write_replies(folder.parent / f"{name}.jsonl", *replies[place::2]) for place, name in enumerate("ab")]
    flags = {"turns": 1, "reflections": 0, "sandbox": "bwrap", "tries": tries, **options}
    arguments = [text for key, value in flags.items() for text in (f"--{key.replace('_', '-')}", value)]
    names = [text for model in models for text in ("-m", f"replay/{model}")]
    return run("harness.py", "-b", folder, "--run", "ladder", *names, *arguments)


def prediction(home: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((home / "predictions/ladder/aider_python_sum_up.json").read_text())
    return content


@pytest.mark.smoke
def test_the_first_plausible_attempt_ends_it(run: Run, home: Path, folder: Path) -> None:
    done = ladder(run, folder, MALFORMED, reply(WRONG), reply(RIGHT), reply(WRONG))
    assert done.returncode == 0, done.stderr
    record = prediction(home)
    assert (record["try"], record["tries"], record["plausible"]) == (3, 3, True)
    assert record["model"].endswith("a.jsonl")
    assert "+    return a + b" in record["model_patch"]
    first, second, third = record["all_results"]
    assert (first["edit_outcome"], first["num_malformed_responses"], first["model_patch"]) == (False, 1, "")
    assert (second["edit_outcome"], second["lint_outcome"], second["test_outcome"]) == (True, True, False)
    assert (third["edit_outcome"], third["lint_outcome"], third["test_outcome"]) == (True, True, True)
    assert [attempt["round"] for attempt in record["all_results"]] == [1, 1, 2]
    assert [attempt["temperature"] for attempt in record["all_results"]] == [0.0, 0.0, 0.7]
    assert [attempt["seed"] for attempt in record["all_results"]] == [0, 0, 1]


@pytest.mark.smoke
def test_the_report_scores_the_chosen_patch(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, MALFORMED, reply(WRONG), reply(RIGHT), reply(WRONG))
    done = run("report.py", "ladder", "--sandbox", "bwrap")
    assert done.returncode == 0, done.stderr
    content = json.loads((home / "predictions/ladder/results.json").read_text())
    assert content["resolved"] == ["aider_python_sum_up"]
    assert content["rate"]["attempts"] == "2+"
    assert content["aider"]["pass_rate_1"] == 0.0
    (row,) = (home / "predictions/ladder/all_preds.jsonl").read_text().splitlines()
    assert set(json.loads(row)) == {"instance_id", "model_name_or_path", "model_patch"}
    assert "resolved" in done.stdout
    assert (home / "logs/ladder").is_dir()


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("replies", "chosen"),
    [
        ((MALFORMED, reply(HALF), reply(WRONG)), 3),
        ((reply(WRONG), reply(HALF), MALFORMED), 1),
        ((MALFORMED, reply(HALF), MALFORMED), 2),
        ((MALFORMED, MALFORMED, MALFORMED), 1),
        ((reply(HALF), reply(WRONG), reply(WRONG.replace("-", "*"))), 2),
    ],
)
def test_without_a_plausible_one_the_least_bad_is_chosen(
    run: Run, home: Path, folder: Path, replies: tuple[str, ...], chosen: int
) -> None:
    done = ladder(run, folder, *replies, MALFORMED, tries=2)
    assert done.returncode == 0, done.stderr
    record = prediction(home)
    assert (record["try"], record["tries"], record["plausible"]) == (chosen, 4, False)


def test_six_attempts_with_two_models_are_three_rounds(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, *[reply(WRONG.replace("-", f"- {number} -")) for number in range(6)])
    models = [Path(attempt["model"]).stem for attempt in prediction(home)["all_results"]]
    assert models == ["a", "b", "a", "b", "a", "b"]


@pytest.mark.smoke
def test_a_provider_that_fails_is_not_a_wrong_answer(run: Run, home: Path, folder: Path) -> None:
    done = ladder(run, folder, CRASH, reply(WRONG), tries=1)
    assert done.returncode == 1
    assert "the provider is on fire" in done.stdout
    assert not (home / "predictions/ladder/aider_python_sum_up.json").exists()
    report = run("report.py", "ladder", "--sandbox", "bwrap")
    assert report.returncode == 1
    content = json.loads((home / "predictions/ladder/results.json").read_text())
    assert "on fire" in content["not_measured"]["aider_python_sum_up"]
    assert content["rate"]["of"] == 0


@pytest.mark.smoke
def test_the_same_command_does_again_what_was_not_measured(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, CRASH, reply(WRONG), tries=1)
    done = ladder(run, folder, reply(RIGHT), reply(WRONG), tries=1)
    assert done.returncode == 0, done.stderr
    assert prediction(home)["plausible"]


def test_a_crashed_attempt_is_recorded_beside_a_plausible_one(run: Run, home: Path, folder: Path) -> None:
    done = ladder(run, folder, CRASH, reply(RIGHT), tries=1)
    assert done.returncode == 0, done.stderr
    first, second = prediction(home)["all_results"]
    assert "on fire" in first["error"]
    assert second["plausible"]


def test_every_question_and_answer_is_in_the_journal(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, {"text": reply(RIGHT), "prompt_tokens": 70, "completion_tokens": 9, "cost": 0.25}, MALFORMED)
    journal = (home / "predictions/ladder/journal/aider_python_sum_up.jsonl").read_text()
    lines = [json.loads(line) for line in journal.splitlines()]
    events = ["attempt_started", "request", "reply", "check", "check", "attempt_ended"]
    assert [line["event"] for line in lines] == events
    assert lines[2]["reply"]["usage"]["cost"] == 0.25
    assert "sum_up.py" in lines[1]["request"]["messages"][1]["content"]
    assert prediction(home)["cost"] == 0.25


def test_a_finished_task_is_not_asked_again(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, reply(RIGHT), MALFORMED)
    before = (home / "predictions/ladder/aider_python_sum_up.json").read_bytes()
    done = ladder(run, folder, MALFORMED, MALFORMED)
    assert done.returncode == 0
    assert (home / "predictions/ladder/aider_python_sum_up.json").read_bytes() == before


def test_a_run_may_not_change_what_it_is(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, reply(RIGHT), MALFORMED)
    done = ladder(run, folder, reply(RIGHT), MALFORMED, turns=2)
    assert done.returncode == 2
    assert "turns: 1 then, 2 now" in done.stderr


def test_test_output_comes_back_in_the_same_chat(run: Run, home: Path, folder: Path) -> None:
    done = ladder(run, folder, reply(WRONG), MALFORMED, reply(RIGHT), MALFORMED, tries=1, turns=2)
    assert done.returncode == 0, done.stderr
    (attempt,) = prediction(home)["all_results"]
    assert attempt["tests_outcomes"] == [False, True]
    chat = (home / "predictions/ladder/aider_python_sum_up.md").read_text()
    assert "assert add(1, 2) == 3" in chat
    assert "The tests are correct." in chat


@pytest.mark.smoke
def test_a_malformed_reply_gets_a_reflection(run: Run, home: Path, folder: Path) -> None:
    done = ladder(run, folder, MALFORMED, MALFORMED, reply(RIGHT), tries=1, reflections=1)
    assert done.returncode == 0, done.stderr
    (attempt,) = prediction(home)["all_results"]
    assert (attempt["num_malformed_responses"], attempt["reflections"], attempt["plausible"]) == (1, 1, True)


@pytest.mark.smoke
def test_a_lint_error_gets_a_reflection(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, reply(HALF), MALFORMED, reply(RIGHT), tries=1, reflections=1)
    (attempt,) = prediction(home)["all_results"]
    assert attempt["plausible"]
    assert "missing" in (home / "predictions/ladder/aider_python_sum_up.md").read_text()


def test_a_reply_that_edits_what_it_may_not_changes_nothing_and_is_told(run: Run, home: Path, folder: Path) -> None:
    helper = reply("ONE = 1\n", "helper.py")
    first = reply(RIGHT) + reply("import sys\n", "conftest.py") + helper
    done = ladder(run, folder, first, MALFORMED, reply(RIGHT) + helper, tries=1, reflections=1)
    assert done.returncode == 0, done.stderr
    record = prediction(home)
    assert (record["edited_files"], record["added_files"]) == (["sum_up.py"], ["helper.py"])
    assert record["all_results"][0]["faults"] == {"not_allowed": 1}
    assert "your reply edits conftest.py" in (home / "predictions/ladder/aider_python_sum_up.md").read_text()


def test_a_scored_patch_is_not_run_twice_and_a_changed_one_always_is(
    run: Run, home: Path, folder: Path, bwrap: Sandbox
) -> None:
    preds = folder.parent / "preds.jsonl"
    gold = json.loads(_row("sum_up", RIGHT))
    preds.write_text(json.dumps(gold) + "\n")

    def cached() -> list[bool]:
        done = run("report.py", preds, "-b", folder, "--sandbox", "bwrap")
        assert done.returncode == 0, done.stderr
        newest = max((home / "predictions").glob("preds-*/results.json"), key=lambda path: path.stat().st_mtime_ns)
        return [row["cached"] for row in json.loads(newest.read_text())["instances"]]

    assert cached() == [False]
    assert cached() == [True]
    preds.write_text(_row("sum_up", RIGHT.replace("a + b", "b + a")) + "\n")
    assert cached() == [False]


@pytest.mark.parametrize("name", ["edit--ollama/qwen:7b", "my model/é"])
def test_any_model_name_can_be_scored(run: Run, home: Path, folder: Path, name: str) -> None:
    replies = write_replies(folder.parent / "qwen:7b.jsonl", reply(RIGHT))
    flags = ("-m", f"replay/{replies}", "--name", name, "--run", "named", "--sandbox", "bwrap")
    assert run("harness.py", "-b", folder, *flags).returncode == 0
    done = run("report.py", "named", "--sandbox", "bwrap")
    assert done.returncode == 0, done.stderr
    (row,) = (home / "predictions/named/all_preds.jsonl").read_text().splitlines()
    assert json.loads(row)["model_name_or_path"] == name


def test_a_model_name_with_a_colon_makes_a_run_name(run: Run, home: Path, folder: Path) -> None:
    replies = write_replies(folder.parent / "qwen:7b.jsonl", reply(RIGHT))
    assert run("harness.py", "-b", folder, "-m", f"replay/{replies}", "--sandbox", "bwrap").returncode == 0
    assert run("report.py", "--sandbox", "bwrap").returncode == 0


def test_a_patch_that_is_not_utf8_can_be_scored(run: Run, home: Path, folder: Path) -> None:
    path = folder / "python/exercises/practice/sum-up/sum_up.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n\n\ndef add(a, b):\n    pass\n")
    ladder(run, folder, reply(RIGHT), MALFORMED)
    done = run("report.py", "ladder", "--sandbox", "bwrap")
    assert done.returncode == 0, done.stderr


def test_the_budget_of_a_run_is_not_renewed_by_going_on(run: Run, home: Path, folder: Path) -> None:
    paid = {"text": reply(WRONG), "cost": 0.5}
    assert ladder(run, folder, paid, CRASH, tries=1, max_cost=0.4).returncode == 1
    done = ladder(run, folder, paid, CRASH, tries=1, max_cost=0.4)
    assert "0.5000 USD spent" in done.stdout


def test_the_same_model_twice_is_asked_with_two_seeds(run: Run, home: Path, folder: Path) -> None:
    model = f"replay/{write_replies(folder.parent / 'm.jsonl', MALFORMED, MALFORMED)}"
    flags = ("--run", "ladder", "--turns", 1, "--reflections", 0, "--tries", 1, "--sandbox", "bwrap")
    assert run("harness.py", "-b", folder, "-m", model, "-m", model, *flags).returncode == 0
    assert [attempt["seed"] for attempt in prediction(home)["all_results"]] == [0, 1]


def test_a_torn_prediction_is_done_again(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, reply(RIGHT), MALFORMED)
    path = home / "predictions/ladder/aider_python_sum_up.json"
    path.write_text(path.read_text()[:100])
    assert ladder(run, folder, reply(RIGHT), MALFORMED).returncode == 0
    assert prediction(home)["plausible"]


def test_a_solution_in_a_folder_that_looks_like_tests_is_scored(run: Run, home: Path, tmp_path: Path) -> None:
    folder = write_exercise(tmp_path / "bench")
    exercise = folder / "python/exercises/practice/sum-up"
    (exercise / "testing").mkdir()
    (exercise / "sum_up.py").rename(exercise / "testing/sum_up.py")
    tests = exercise / "sum_up_test.py"
    tests.write_text("import sys\n\nsys.path.insert(0, 'testing')\n" + tests.read_text())
    config = exercise / ".meta/config.json"
    config.write_text(config.read_text().replace('"sum_up.py"', '"testing/sum_up.py"'))
    assert run("harness.py", "-b", folder, "-a", "gold", "--sandbox", "bwrap", "--run", "odd").returncode == 0
    assert run("report.py", "odd", "--sandbox", "bwrap").returncode == 0
    assert json.loads((home / "predictions/odd/results.json").read_text())["rate"]["percent"] == 100.0
    assert "return a + b" in (home / "predictions/odd/all_preds.jsonl").read_text()


def test_whether_a_task_is_void_does_not_depend_on_the_patch(run: Run, home: Path, tmp_path: Path) -> None:
    folder = write_exercise(tmp_path / "bench", example=WRONG)
    assert run("harness.py", "-b", folder, "-a", "null", "--sandbox", "bwrap", "--run", "void").returncode == 0
    run("report.py", "void", "--sandbox", "bwrap")
    content = json.loads((home / "predictions/void/results.json").read_text())
    assert list(content["void"]) == ["aider_python_sum_up"]
    assert content["rate_calibrated"]["of"] == 0


def test_a_benchmark_that_changed_between_the_phases_is_said(run: Run, home: Path, folder: Path) -> None:
    ladder(run, folder, reply(RIGHT), MALFORMED)
    tests = folder / "python/exercises/practice/sum-up/sum_up_test.py"
    tests.write_text(tests.read_text() + "\n\ndef test_more():\n    assert add(2, 2) == 4\n")
    done = run("report.py", "ladder", "--sandbox", "bwrap")
    assert done.returncode == 0, done.stderr
    assert "has changed since" in done.stderr


def test_what_was_paid_for_and_not_measured_is_in_the_results(run: Run, home: Path, folder: Path) -> None:
    paid = {"text": reply(WRONG), "prompt_tokens": 10, "completion_tokens": 5, "cost": 0.5}
    assert ladder(run, folder, paid, CRASH, tries=1).returncode == 1
    run("report.py", "ladder", "--sandbox", "bwrap")
    content = json.loads((home / "predictions/ladder/results.json").read_text())
    assert (content["spent"]["calls"], content["spent"]["cost"]) == (1, 0.5)


def test_the_reference_is_run_once_and_fresh_runs_it_again(run: Run, home: Path, folder: Path) -> None:
    def cached(*flags: str) -> bool:
        assert run("report.py", "--gold", "-b", folder, "--sandbox", "bwrap", *flags).returncode == 0
        (row,) = json.loads((home / "predictions/gold--bench/results.json").read_text())["instances"]
        return bool(row["cached"])

    assert [cached(), cached(), cached("--fresh"), cached()] == [False, True, False, True]
    assert len(list((home.parent / "cache" / "verdicts").rglob("*.json"))) == 1


def _row(module: str, content: str) -> str:
    from retrial.patches.apply import diff
    from tests.support.exercises import STUB

    patch = diff({f"{module}.py": STUB.encode()}, {f"{module}.py": content.encode()})
    return json.dumps({"instance_id": f"aider_python_{module}", "model_name_or_path": "me", "model_patch": patch})
