"""A run recorded over real HTTP and played again with nobody there: the same predictions, to the byte."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from retrial.chat import Edit
from retrial.store.runs import Run as Stored
from tests.conftest import Run
from tests.support import edit_formats
from tests.support.exercises import RIGHT, STUB, TESTS, WRONG, reply, write_exercise
from tests.support.servers import Answer, ChatServer, status
from tests.support.servers import reply as answer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

TASK = "aider_python_sum_up"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
MALFORMED = "I would simply add the two numbers."
NOISY = "import uuid\n" + TESTS.replace("    assert add(1", "    print(uuid.uuid4())\n    assert add(1")
"""No two runs of these tests say the same, and what they say is in the next question."""
MEASURED = ("seconds",)
"""All that differs in a prediction: how long an attempt took here. What tests and model took is as recorded."""


def said(text: str) -> Answer:
    return answer(text, usage=USAGE)


def called(content: str, path: str = "sum_up.py") -> Answer:
    """The solution through a real function call."""
    written = edit_formats.write("whole-func", (Edit(path=path, content=content),), {path: STUB})
    calls = [
        {"id": "call-1", "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in written.calls
    ]
    return answer("", finish="tool_calls", usage=USAGE, tool_calls=calls)


RECORDED = (
    # The easy task: asked for again after a failure, then right.
    status(500, headers={"Retry-After": "0"}),
    said(reply(RIGHT, "add_on.py")),
    # The other: malformed, wrong, wrong again; then the second model.
    said(MALFORMED),
    said(reply(WRONG)),
    said(reply(WRONG.replace("-", "*"))),
    called(WRONG),
    called(RIGHT),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_exercise(tmp_path / "bench", "add-on")
    return write_exercise(tmp_path / "bench", tests=NOISY)


def record(run: Run, folder: Path, *behaviours: Answer) -> None:
    with ChatServer(behaviours or RECORDED) as server:
        done = run(
            *("harness.py", "-b", folder, "-m", "gpt-one:whole", "-m", "gpt-two:whole-func", "--run", "old"),
            *("--api-base", server.url, "--sandbox", "bwrap", "--jobs", 1, "--tries", 1, "--price", "2/8"),
            OPENAI_API_KEY="sk-test-0123456789abcdef",
        )
    assert done.returncode in (0, 1), done.stderr


def play(run: Run, *flags: object) -> subprocess.CompletedProcess[str]:
    return run("harness.py", "-m", "replay:old", "--sandbox", "bwrap", *flags)


def prediction(home: Path, run: str, task: str = TASK) -> dict[str, Any]:
    return Stored(home, run).stored_prediction(task)


def unmeasured(value: Any) -> Any:
    """Without what a clock said."""
    if isinstance(value, dict):
        return {name: unmeasured(each) for name, each in value.items() if name not in MEASURED}
    return [unmeasured(each) for each in value] if isinstance(value, list) else value


@pytest.mark.smoke
def test_a_run_is_played_again_to_the_byte(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    done = play(run)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 plausible, 0.0000 USD" in done.stderr
    for name in ("old", "replay--old"):
        assert run("report.py", name, "--sandbox", "bwrap").returncode == 0
    old, new = home / "predictions/old", home / "predictions/replay--old"
    assert (new / "all_preds.jsonl").read_bytes() == (old / "all_preds.jsonl").read_bytes()
    assert prediction(home, "old")["try"] == 2
    assert prediction(home, "old", "aider_python_add_on")["all_results"][0]["num_error_outputs"] == 1, "the retry"
    for task in (TASK, "aider_python_add_on"):
        assert unmeasured(prediction(home, "replay--old", task)) == unmeasured(prediction(home, "old", task))
        assert (new / f"{task}.md").read_bytes() == (old / f"{task}.md").read_bytes()


def test_what_was_paid_once_is_not_paid_again(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    play(run, "--max-cost", 0.0001)
    found = {}
    for name in ("old", "replay--old"):
        run("report.py", name, "--sandbox", "bwrap")
        found[name] = json.loads((home / "predictions" / name / "results.json").read_text())
    assert found["old"]["spent"]["cost"] == pytest.approx(6 * 0.006)
    assert (found["replay--old"]["spent"]["cost"], found["replay--old"]["spent"]["calls"]) == (0.0, 0)
    assert found["replay--old"]["by_model"] == found["old"]["by_model"], "formats stay comparable"
    assert found["replay--old"]["provenance"]["replay_of"] == "old"


def test_a_later_call_that_is_no_longer_needed_is_left_out(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    done = play(run, "-t", "sum-up", "--turns", 1, "--run", "fewer")
    assert done.returncode == 0, done.stdout + done.stderr
    calls = {name: [each["calls"] for each in prediction(home, name)["all_results"]] for name in ("old", "fewer")}
    assert calls == {"old": [3, 2], "fewer": [2, 1]}
    assert [path.stem for path in (home / "predictions/fewer").glob("aider*.json")] == [TASK]


def test_a_call_more_than_was_recorded_leaves_the_task_not_measured(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    done = play(run, "--turns", 3)
    assert done.returncode == 1
    expected = f"Task {TASK}, attempt 1, call 4: run 'old' was asked nothing more: the attempt had ended."
    assert expected in done.stdout


def test_the_first_question_that_differs_is_shown(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    for slug in ("sum-up", "add-on"):
        text = folder / f"python/exercises/practice/{slug}/.docs/instructions.md"
        text.write_text(text.read_text().replace("the sum of two numbers", "the sum of both numbers"))
    done = play(run)
    assert done.returncode == 1
    shown = [line for line in done.stdout.splitlines() if "was asked something else" in line]
    assert len(shown) == 1
    assert "Task aider_python_add_on, attempt 1, call 1: run 'old'" in shown[0]
    assert "message 2 (user), line 3: '…" in shown[0]
    assert "the sum of two numbers.' then" in shown[0]
    assert "the sum of both numbers.' now" in shown[0]
    assert "and 1 more" in done.stdout
    assert "## Attempt 1" in (home / "predictions/replay--old/aider_python_add_on.md").read_text()


def test_with_other_tests_the_recorded_results_do_not_count(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    done = play(run, "--test-timeout-seconds", 59)
    assert done.returncode == 1
    assert f"Task {TASK}, attempt 1, call 3: run 'old' was asked something else: message 6 (user), line" in done.stdout


def test_a_provider_that_failed_then_fails_again(run: Run, home: Path, folder: Path) -> None:
    record(run, folder, status(401, "no such key"), called(RIGHT, "add_on.py"), status(401))
    assert prediction(home, "old", "aider_python_add_on")["try"] == 2
    done = play(run)
    assert done.returncode == 1, "the other task was not measured then"
    old, new = (prediction(home, name, "aider_python_add_on") for name in ("old", "replay--old"))
    assert unmeasured(new) == unmeasured(old)
    assert "no such key" in new["all_results"][0]["error"]


def test_a_torn_journal_leaves_its_task_not_measured(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    journal = home / f"predictions/old/journal/{TASK}.jsonl"
    journal.write_bytes(journal.read_bytes()[: journal.stat().st_size // 2])
    (home / "predictions/old/journal/aider_python_add_on.jsonl").unlink()
    done = play(run)
    assert done.returncode == 1
    assert "Not measured: 2 of 2 tasks" in done.stdout
    assert "Task aider_python_add_on, attempt 1, call 1: run 'old' was asked nothing, or its journal" in done.stdout


def test_a_run_is_not_played_into_itself(run: Run, home: Path, folder: Path) -> None:
    record(run, folder)
    done = play(run, "--run", "old")
    assert done.returncode == 2
    assert "cannot be played again into itself" in done.stderr


def test_a_run_that_asked_nobody_cannot_be_played(run: Run, home: Path, folder: Path) -> None:
    run("harness.py", "-b", folder, "-a", "gold", "--run", "old", "--sandbox", "bwrap")
    done = play(run)
    assert done.returncode == 2
    assert "has no replies in its journals" in done.stderr
