"""A provider that misbehaves, over real HTTP, through both phases: retried, or not measured; never a wrong answer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.support.exercises import RIGHT, WRONG, reply, write_exercise
from tests.support.servers import Answer, ChatServer, json_answer, stalled, status, torn
from tests.support.servers import reply as answer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

KEY = "sk-test-0123456789abcdef"
NOW = {"Retry-After": "0"}
GOOD = answer(reply(RIGHT))
TASK = "aider_python_sum_up"


def asked(run: Run, tmp_path: Path, *behaviours: Answer, **options: object) -> subprocess.CompletedProcess[str]:
    folder = write_exercise(tmp_path / "bench")
    flags = [text for key, value in options.items() for text in (f"--{key.replace('_', '-')}", value)]
    with ChatServer(behaviours) as server:
        return run(
            *("harness.py", "-b", folder, "-m", "gpt-test", "--api-base", server.url, "--sandbox", "bwrap"),
            *("--run", "http", *flags),
            OPENAI_API_KEY=KEY,
        )


def results(run: Run, home: Path) -> dict[str, Any]:
    run("report.py", "http", "--sandbox", "bwrap")
    content: dict[str, Any] = json.loads((home / "predictions/http/results.json").read_text())
    return content


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(status(429, "slow down", headers=NOW), id="429 with Retry-After"),
        pytest.param(status(500, headers=NOW), id="500"),
        pytest.param(torn(), id="cut-off JSON"),
    ],
)
def test_passing_trouble_is_retried(run: Run, home: Path, tmp_path: Path, trouble: Answer) -> None:
    done = asked(run, tmp_path, trouble, GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert results(run, home)["resolved"] == [TASK]


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        pytest.param(status(401, f"Incorrect API key provided: {KEY}"), "key", id="wrong key"),
        pytest.param(status(429, headers={"Retry-After": "9999"}), "429", id="429 for hours"),
        pytest.param(stalled(), "did not answer in time", id="stalled"),
    ],
)
def test_lasting_trouble_is_not_measured(run: Run, home: Path, tmp_path: Path, trouble: Answer, words: str) -> None:
    done = asked(run, tmp_path, trouble, timeout_seconds=2)
    assert done.returncode == 1
    assert words in done.stdout
    content = results(run, home)
    assert list(content["not_measured"]) == [TASK]
    assert (content["rate"]["of"], content["totals"]["unresolved"]) == (0, 0)


@pytest.mark.smoke
def test_the_key_is_in_no_file_and_no_message(run: Run, home: Path, tmp_path: Path) -> None:
    done = asked(run, tmp_path, status(401, f"Incorrect API key provided: {KEY}"))
    results(run, home)
    assert KEY not in done.stdout + done.stderr
    written = [path for path in home.rglob("*") if path.is_file()]
    assert written
    assert [path for path in written if KEY in path.read_text(errors="replace")] == []


def test_a_password_in_an_address_and_a_key_in_a_body_are_in_no_file_and_no_message(
    run: Run, home: Path, tmp_path: Path
) -> None:
    folder, file = write_exercise(tmp_path / "bench"), tmp_path / "models.yaml"

    def go(secret: str, top_p: float = 0.5) -> subprocess.CompletedProcess[str]:
        address, body = server.url.replace("//", f"//me:{secret}@"), {"api_key": secret, "top_p": top_p}
        models = [{"name": "vllm/one:whole"}, {"name": "vllm/two:whole", "api_base": address, "extra_body": body}]
        file.write_text(json.dumps({"model": models}))
        flags = ("--extra-body", json.dumps(body), "--sandbox", "bwrap", "--tries", 1, "--run", "http")
        return run("harness.py", "-b", folder, "-c", file, "--api-base", address, *flags)

    with ChatServer([status(401, "no such user")]) as server:
        # Another password is not another question.
        gone = [go("hunter2"), go("hunter3")]
        changed = go("hunter3", 0.7)
    assert [done.returncode for done in (*gone, changed)] == [1, 1, 2], changed.stderr
    assert "top_p" in changed.stderr
    shown = [done.stdout + done.stderr for done in (*gone, changed)]
    written = [path.read_text(errors="replace") for path in home.rglob("*") if path.is_file()]
    assert len(written) > 2
    assert [text for text in (*shown, *written) if "hunter" in text] == []


@pytest.mark.smoke
def test_the_budget_ends_a_run_before_it_is_passed(run: Run, home: Path, tmp_path: Path) -> None:
    done = asked(run, tmp_path, GOOD, price="1000000/1000000", max_cost=0.01)
    assert done.returncode == 1
    assert "budget of 0.01 USD is not enough" in done.stdout
    assert "0.0000 USD" in done.stderr


def test_a_budget_needs_a_price(run: Run, home: Path, tmp_path: Path) -> None:
    done = asked(run, tmp_path, GOOD, max_cost=1)
    assert done.returncode == 2
    assert "--price" in done.stderr


def test_a_limit_cannot_be_set_after_something_was_asked_without_a_price(run: Run, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    for slug in ("sum-up", "sum-more"):
        write_exercise(folder, slug)
    with ChatServer([GOOD]) as server:
        flags = ("-b", folder, "-m", "vllm/one", "--api-base", server.url, "--sandbox", "bwrap", "--run", "http")
        assert run("harness.py", *flags, "-t", "sum-up").returncode == 0
        done = run("harness.py", *flags, "--price", "1/1", "--max-cost", 1)
    assert done.returncode == 1
    assert "what was spent before is not known; leave --max-cost out" in done.stdout
    assert len(server.requests) == 1


def test_an_unknown_price_is_shown_as_unknown(run: Run, home: Path, tmp_path: Path) -> None:
    done = asked(run, tmp_path, GOOD)
    assert done.returncode == 0
    assert "cost unknown (no price for gpt-test; give --price)" in done.stderr
    assert results(run, home)["by_model"]["gpt-test"]["cost"] is None
    report = run("report.py", "http", "--sandbox", "bwrap").stdout
    assert "cost          unknown (no price for gpt-test; give --price)\n" in report
    flags = ("-m", "gpt-test", "--sandbox", "bwrap", "--dry-run")
    planned = run("harness.py", "-b", tmp_path / "bench", *flags, OPENAI_API_KEY=KEY).stdout
    assert "Model gpt-test: cost unknown (no price for gpt-test; give --price)\n" in planned


@pytest.mark.smoke
def test_a_dry_run_asks_nothing_and_says_the_most_it_can_cost(run: Run, home: Path, tmp_path: Path) -> None:
    folder = write_exercise(tmp_path / "bench")
    with ChatServer([GOOD]) as server:
        flags = ("--api-base", server.url, "--price", "2/8", "--dry-run", "--sandbox", "bwrap")
        done = run("harness.py", "-b", folder, "-m", "gpt-test", *flags)
    assert server.requests == []
    assert done.returncode == 0, done.stderr
    assert TASK in done.stdout
    assert "at most" in done.stdout
    assert "Nothing was asked." in done.stdout
    assert not (home / "predictions").exists()


def named(model: str) -> Answer:
    return json_answer({**json.loads(GOOD.content), "model": model, "system_fingerprint": "fp_1"})


def test_a_model_that_changes_inside_a_run_is_said(run: Run, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    for slug in ("sum-up", "sum-more"):
        write_exercise(folder, slug)
    answers = [named("gpt-test-1"), named("gpt-test-2")]
    done = asked(run, tmp_path, *answers, jobs=1)
    assert "note: gpt-test was served as gpt-test-1 (fp_1) and gpt-test-2 (fp_1)\n" in done.stdout
    stored = json.loads((home / "predictions/http/run.json").read_text())
    assert stored["served"] == {"gpt-test": ["gpt-test-1 (fp_1)", "gpt-test-2 (fp_1)"]}
    record = json.loads((home / f"predictions/http/{TASK}.json").read_text())
    assert record["served"] in (["gpt-test-1 (fp_1)"], ["gpt-test-2 (fp_1)"])


def test_a_model_that_changes_after_a_run_was_killed_is_said_too(run: Run, home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    for slug in ("sum-up", "sum-more"):
        write_exercise(folder, slug)
    with ChatServer([named("gpt-test-1"), named("gpt-test-2")]) as server:
        flags = ("-b", folder, "-m", "gpt-test", "--api-base", server.url, "--sandbox", "bwrap", "--run", "http")
        run("harness.py", *flags, "-t", "sum-more")
        # A process that is killed has no time to say who answered.
        stored = json.loads((home / "predictions/http/run.json").read_text())
        (home / "predictions/http/run.json").write_text(json.dumps({**stored, "served": {}}))
        done = run("harness.py", *flags)
    assert "note: gpt-test was served as gpt-test-1 (fp_1) and gpt-test-2 (fp_1)\n" in done.stdout


def test_what_a_model_would_not_take_is_recorded(run: Run, home: Path, tmp_path: Path) -> None:
    refusal = status(400, "Unsupported value: 'temperature' does not support 0.0.", param="temperature")
    assert asked(run, tmp_path, refusal, GOOD).returncode == 0
    assert json.loads((home / f"predictions/http/{TASK}.json").read_text())["left_out"] == ["temperature"]


LADDER = """
model:
  - {name: "gpt-test:whole", max_tokens: 77, extra_body: {top_p: 0.9}}
  - {name: "gpt-test:whole", temperature: 1, reasoning_effort: REASONING, seed: 5}
"""


def test_each_model_of_a_ladder_is_asked_with_its_own_options(run: Run, home: Path, tmp_path: Path) -> None:
    file, bad = tmp_path / "ladder.yaml", answer(reply(WRONG))
    folder = write_exercise(tmp_path / "bench")

    def go(effort: str) -> subprocess.CompletedProcess[str]:
        file.write_text(LADDER.replace("REASONING", effort))
        flags = ("--tries", 1, "--turns", 1, "--sandbox", "bwrap", "--run", "http")
        return run("harness.py", "-b", folder, "-c", file, "--api-base", server.url, *flags, OPENAI_API_KEY=KEY)

    with ChatServer([bad]) as server:
        assert go("high").returncode == 0
        changed = go("low")
    first, second = (request.body for request in server.requests)
    assert (first["max_tokens"], first["temperature"], first["top_p"], first["seed"]) == (77, 0.0, 0.9, 0)
    assert (second["max_tokens"], second["temperature"], second["reasoning_effort"]) == (8192, 1.0, "high")
    # Another way of asking is another model: its first attempt is a first one.
    assert second["seed"] == 5
    assert changed.returncode == 2
    assert "model_options" in changed.stderr
