"""Every attempt scored: two models whose edits are wrong, right, or right and taken for bad."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.support.exercises import RIGHT, WRONG, reply, write_exercise
from tests.support.servers import Answer, Asked, ChatServer
from tests.support.servers import reply as answer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

SANDBOX = ("--sandbox", "bwrap")
ONE, TWO, THREE = (f"aider_python_add_{name}" for name in ("one", "two", "three"))
UGLY = "import os\n\n\ndef add(a, b):\n    return a + b\n\n\ndef never():\n    return missing\n"
"""Right, but it has a lint error: nobody takes it for plausible."""
TIMES = WRONG.replace("-", "*")
PLAN = {
    ("small", "add_one"): RIGHT,
    ("large", "add_one"): RIGHT,
    ("small", "add_two"): UGLY,
    ("large", "add_two"): RIGHT,
    ("small", "add_three"): WRONG,
    ("large", "add_three"): TIMES,
}
"""What each model writes, whenever it is asked."""


def scripted(asked: Asked) -> Answer:
    """The model and the task are told by the question."""
    text = json.dumps(asked.body["messages"])
    model, module = asked.body["model"], next(name for _, name in PLAN if f"{name}.py" in text)
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    return answer(reply(PLAN[model, module], f"{module}.py"), usage=usage)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer([scripted]) as started:
        yield started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for slug in ("add-one", "add-two", "add-three"):
        write_exercise(tmp_path / "bench", slug)
    return tmp_path / "bench"


@pytest.fixture
def ladder(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    """Two models, two rounds: 1 attempt at the first task, 2 at the second, 4 at the third; a dollar each."""
    models = ("-m", "openai/small", "-m", "openai/large", "--api-base", server.url, "--price", "900/1000")
    flags = ("--run", "ladder", "--tries", 2, "--turns", 1, "--reflections", 0, *SANDBOX)
    done = run("harness.py", "-b", folder, *models, *flags, OPENAI_API_KEY="none")
    assert done.returncode == 0, done.stderr


def report(run: Run, home: Path, *arguments: object) -> tuple[Any, Any]:
    done = run("report.py", "ladder", *SANDBOX, *arguments)
    assert done.returncode == 0, done.stderr
    return done, json.loads((home / "predictions/ladder/results.json").read_text())


def attempts(content: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {
        each["instance_id"]: [(go["try"], go["plausible"], go["resolved"], go["how"]) for go in each["attempts"]]
        for each in content["instances"]
    }


@pytest.mark.usefixtures("ladder")
def test_without_scoring_them_only_what_follows_is_known(run: Run, home: Path) -> None:
    done, content = report(run, home)
    assert content["resolved"] == [ONE, TWO]
    assert attempts(content) == {
        ONE: [(1, True, True, "scored")],
        # Its tests pass, so they do not refute it: whether it is right was not asked.
        TWO: [(1, False, None, "unknown"), (2, True, True, "scored")],
        THREE: [
            (1, False, False, "scored"),
            (2, False, False, "visible is hidden"),
            (3, False, False, "same patch"),
            (4, False, False, "visible is hidden"),
        ],
    }
    assert not content["picker"]["exact"]
    assert content["picker"]["picks"]["first"] == {"low": 1, "high": 2, "percent_low": 33.33, "percent_high": 66.67}
    assert "report attempts" not in done.stderr


@pytest.mark.smoke
@pytest.mark.usefixtures("ladder")
def test_with_every_attempt_scored_all_numbers_are_exact_and_the_headline_is_the_same(run: Run, home: Path) -> None:
    _, before = report(run, home)
    done, content = report(run, home, "--attempts")
    assert {name for name in before if before[name] != content[name]} == {"economics", "picker", "instances"}
    assert attempts(content)[TWO] == [(1, False, True, "scored"), (2, True, True, "scored")]
    assert [go[3] for go in attempts(content)[THREE]] == ["scored", "scored", "same patch", "same patch"]
    # The ugly one, and the large model's wrong one: the others are the same patches.
    assert "report attempts 2/2: " in done.stderr
    picker = content["picker"]
    assert (picker["exact"], picker["attempts"], picker["scored"]) == (True, 7, 5)
    assert (picker["precision"]["resolved"], picker["precision"]["of"]) == (2, 2)
    assert (picker["missed"]["missed"], picker["missed"]["of"]) == (1, 3)
    assert {name: pick["low"] for name, pick in picker["picks"].items()} == {
        "ours": 2,
        "best": 2,
        "first": 2,
        "last": 2,
        "random": 2.0,
    }


@pytest.mark.usefixtures("ladder")
def test_the_economics_are_those_counted_by_hand(run: Run, home: Path) -> None:
    done, content = report(run, home, "--attempts")
    rows = content["economics"]["rungs"]
    names = ("round", "tasks", "plausible", "chosen", "resolved", "cost", "cumulative_resolved", "cumulative_cost")
    assert [tuple(each[name] for name in names) for each in rows] == [
        (1, 3, 1, 2, 1, 3.0, 1, 3.0),
        (1, 2, 1, 1, 1, 2.0, 2, 5.0),
        (2, 1, 0, 0, 0, 1.0, 2, 6.0),
        (2, 1, 0, 0, 0, 1.0, 2, 7.0),
    ]
    assert [each["stopping_here"]["resolved_low"] for each in rows] == [2, 2, 2, 2]
    small = content["economics"]["what_ifs"][0]
    assert (small["resolved_low"], small["cost_low"], small["exact"]) == (2, 3.0, True)
    assert small["sentence"].endswith("alone, 1 try: 66.7 % for 3.00 USD instead of 66.7 % for 7.00 USD")
    assert "picker        plausible meant resolved in 2 of 2 (100.0 %); best possible pick 2, ours 2" in done.stdout
    assert f"what if       {small['sentence']}" in done.stdout
    (one,) = (each for each in content["instances"] if each["instance_id"] == THREE)
    assert (one["prompt_tokens"], one["completion_tokens"], one["turns_passed"]) == (4000, 400, [False])


@pytest.mark.usefixtures("ladder")
def test_each_scored_attempt_has_a_log_of_its_own_and_the_cache_knows_it_again(run: Run, home: Path) -> None:
    report(run, home, "--attempts")
    logs = home / "logs/ladder"
    own = logs / f"{TWO}.edit--openai-small--openai-large.eval.log"
    other = logs / f"{TWO}.edit--openai-small--openai-large.try-1.eval.log"
    assert "missing" not in own.read_text()
    assert "+    return missing" in other.read_text()
    assert "(from the cache)" not in other.read_text()
    assert len(list(logs.glob("*.try-*.eval.log"))) == 2
    report(run, home, "--attempts")
    assert "(from the cache)" in other.read_text()


def test_of_two_runs_made_one_every_order_is_known(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    for model in ("small", "large"):
        asked = ("-m", f"openai/{model}", "--api-base", server.url, "--price", "900/1000", "--run", model)
        flags = ("--tries", 1, "--turns", 1, "--reflections", 0, *SANDBOX)
        assert run("harness.py", "-b", folder, *asked, *flags, OPENAI_API_KEY="none").returncode == 0
    done = run("report.py", "small", "large", "--attempts", *SANDBOX)
    assert done.returncode == 0, done.stderr
    content = json.loads((home / "predictions/small+large/results.json").read_text())
    assert attempts(content)[ONE] == [(1, True, True, "scored"), (2, True, True, "same patch")]
    economics = content["economics"]
    assert [(each["run"], each["attempts"], each["cost"]) for each in economics["rungs"]] == [
        ("small", 3, 3.0),
        ("large", 3, 3.0),
    ]
    # Each of them is exact: both runs have made every attempt. Both are right about the first two.
    told = [(each["resolved_low"], each["cost_low"], each["exact"]) for each in economics["what_ifs"]]
    assert told == [(2, 3.0, True), (2, 3.0, True), (2, 4.0, True), (2, 5.0, True)]
    assert [len(each["rungs"]) for each in economics["what_ifs"]] == [1, 1, 2, 2]
    assert economics["what_ifs"][2]["label"].startswith("openai/large")
    assert economics["what_ifs"][3]["label"].startswith("openai/small")


def test_a_file_from_elsewhere_has_no_attempts_to_score(run: Run, home: Path, folder: Path) -> None:
    preds = folder.parent / "preds.jsonl"
    preds.write_text(json.dumps({"instance_id": ONE, "model_name_or_path": "me", "model_patch": ""}) + "\n")
    done = run("report.py", preds, "-b", folder, "--attempts", *SANDBOX)
    assert done.returncode == 0, done.stderr
    assert "only runs of harness.py tell of attempts" in done.stderr
    (path,) = (home / "predictions").glob("preds-*/results.json")
    content = json.loads(path.read_text())
    assert (content["economics"], content["picker"], content["instances"][0]["attempts"]) == ({}, {}, [])
