"""`--grid`: every model with every edit format as a run of its own, and what comes of comparing them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrial import registry
from tests.conftest import Run
from tests.parts import weights
from tests.support.exercises import RIGHT, reply, write_exercise
from tests.support.programs import read, report
from tests.support.servers import Answer, Asked, ChatServer
from tests.support.servers import reply as answer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

KEY = "sk-test-0123456789abcdef"
FLAGS = ("--sandbox", "bwrap", "--turns", 1, "--reflections", 0, "--tries", 1)
TWO = ("--edit-format", "whole", "--edit-format", "diff")


def knows_only_whole(asked: Asked) -> Answer:
    """Right in one format, and the same words in any other."""
    (path,) = (path for path in ("add_one.py", "add_two.py") if path in asked.body["messages"][1]["content"])
    return answer(reply(RIGHT, path), usage={"prompt_tokens": 1000, "completion_tokens": 100})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark of two tasks."""
    for slug in ("add-one", "add-two"):
        write_exercise(tmp_path / "bench", slug)
    return tmp_path / "bench"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer([knows_only_whole]) as found:
        yield found


def grid(run: Run, folder: Path, server: ChatServer, *more: object, model: str = "gpt-test") -> Any:
    flags = ("-b", folder, "-m", model, "--api-base", server.url, "--price", "1/10", "--grid", *FLAGS, *more)
    return run("harness.py", *flags, OPENAI_API_KEY=KEY)


@pytest.mark.smoke
def test_every_format_is_a_run_of_its_own_and_they_are_compared(
    run: Run, home: Path, folder: Path, server: ChatServer
) -> None:
    done = grid(run, folder, server, *TWO)
    assert done.returncode == 0, done.stderr
    assert "run 2 of 2" in done.stderr
    names = ["bench--edit--gpt-test--whole", "bench--edit--gpt-test--diff"]
    stored = read(home, "bench--edit--gpt-test--grid", "run.json")
    assert (stored["program"], stored["kind"]) == ("harness.py", "grid")
    assert [each["run"] for each in stored["runs"]] == names

    # Nothing is named: the grid was started last, though its runs were started later.
    shown = report(run).stdout
    assert "measured by all 2 of 2 tasks" in shown
    assert [read(home, name)["rate"]["resolved"] for name in names] == [2, 0]
    content = read(home, "bench--edit--gpt-test--grid")
    assert content["kind"] == "grid" and content["not_started"] == []
    assert content["common"]["measured_by_all"] == 2
    whole, diff = content["runs"]
    assert (whole["edit_format"], whole["percent"], whole["pass_rate_1"]) == ("whole", 100.0, 100.0)
    assert (diff["edit_format"], diff["percent"], diff["percent_cases_well_formed"]) == ("diff", 0.0, 0.0)
    assert sum(diff["faults"].values()) == diff["num_malformed_responses"] == 2
    assert (whole["prompt_tokens"], whole["cost"], whole["cost_per_resolved"]) == (2000, 0.004, 0.002)
    assert set(content["by_format"]) == {"whole", "diff"}
    assert (content["by_model"]["gpt-test"]["resolved"], content["by_model"]["gpt-test"]["of"]) == (2, 4)


def test_the_same_command_goes_on_and_asks_nothing_twice(
    run: Run, home: Path, folder: Path, server: ChatServer
) -> None:
    assert grid(run, folder, server, *TWO, "-t", "add-one").returncode == 0
    assert grid(run, folder, server, *TWO).returncode == 0
    asked = len(server.requests)
    assert asked == 4
    done = grid(run, folder, server, *TWO)
    assert (done.returncode, len(server.requests)) == (0, asked)
    assert done.stderr.count("2 done before") == 2


def test_a_grid_grows_but_only_with_the_same_settings(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    assert grid(run, folder, server, "--edit-format", "whole", "--run", "g").returncode == 0
    assert grid(run, folder, server, "--edit-format", "diff", "--run", "g").returncode == 0
    runs = [each["run"] for each in read(home, "g", "run.json")["runs"]]
    assert runs == ["g--gpt-test--whole", "g--gpt-test--diff"]
    done = grid(run, folder, server, "--edit-format", "udiff", "--run", "g", "--seed", 7)
    assert (done.returncode, "seed: 0 then, 7 now" in done.stderr) == (2, True), done.stderr
    assert not (home / "predictions/g--gpt-test--udiff").exists()


def test_a_model_named_with_its_format_is_asked_in_that_alone(
    run: Run, home: Path, folder: Path, server: ChatServer
) -> None:
    done = grid(run, folder, server, "-m", "other", *TWO, "--dry-run", model="gpt-test:udiff")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("Run ")] == [
        "bench--edit--gpt-test--udiff",
        "bench--edit--other--whole",
        "bench--edit--other--diff",
    ]


def test_a_dry_run_sums_up_and_asks_nothing(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    done = grid(run, folder, server, "--dry-run")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("Run ")]
    assert len(lines) == len(registry.names("formats"))
    costs = [float(line.split("at most ")[1].split()[0]) for line in lines]
    (last,) = (line for line in done.stdout.splitlines() if "together" in line)
    assert float(last.split("at most ")[1].split()[0]) == pytest.approx(sum(costs), abs=0.001)
    assert server.requests == []
    assert not (home / "predictions").exists()


def test_the_budget_is_the_whole_grids(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    # Each call takes all that is reserved for it, a thousandth of a dollar: there is money for two.
    flags = (*TWO, "--max-tokens", 100, "--price", "0/10", "--max-cost", 0.0025, "--jobs", 1, "--run", "g")
    done = grid(run, folder, server, *flags)
    assert done.returncode == 1, done.stderr
    assert "budget of 0.0025 USD" in done.stdout, done.stdout
    assert len(server.requests) == 2
    report(run, "g", code=1)
    whole, diff = read(home, "g")["runs"]
    assert (whole["of"], diff["of"], diff["not_measured"]) == (2, 0, 2)
    assert read(home, "g")["common"]["measured_by_all"] == 0
    assert read(home, "g")["spent"]["cost"] == pytest.approx(0.002)


def test_a_run_that_was_never_started_is_said(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    assert grid(run, folder, server, *TWO, "--run", "g").returncode == 0
    shutil.rmtree(home / "predictions/g--gpt-test--diff")
    report(run, "g", code=1)
    assert read(home, "g")["not_started"] == ["g--gpt-test--diff"]
    assert [row["edit_format"] for row in read(home, "g")["runs"]] == ["whole"]


def test_a_grid_is_no_run(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    assert grid(run, folder, server, *TWO, "--run", "g").returncode == 0
    assert "'g' is a grid" in report(run, "g", "g--gpt-test--whole", code=2).stderr
    gold = ("harness.py", "-b", folder, "-a", "gold", "--sandbox", "bwrap")
    for flags in (("--run", "next", "--prior", "g"), ("--run", "g")):
        done = run(*gold, *flags)
        assert (done.returncode, "'g' is a grid" in done.stderr) == (2, True), done.stderr
    done = run("harness.py", "-m", "replay:g--gpt-test--whole", "--grid", "--sandbox", "bwrap")
    assert (done.returncode, "replay:RUN" in done.stderr) == (2, True), done.stderr
    done = grid(run, folder, server, *TWO, "--run", "g--gpt-test--whole")
    assert (done.returncode, "is one run already" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-a", "gold"), "only agent 'edit'"),
        (("-m", "a:whole", "-m", "a"), "twice in this grid"),
        (("--edit-format", "whole", "--edit-format", "hole"), "Unknown edit format 'hole'"),
    ],
)
def test_what_cannot_be_a_grid_is_refused(run: Run, home: Path, flags: tuple[str, ...], words: str) -> None:
    done = run("harness.py", "--grid", "--sandbox", "bwrap", *flags)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert not (home / "predictions").exists()


def test_a_real_model_writes_in_three_formats_and_the_results_compare_them(run: Run, home: Path) -> None:
    weights()
    tasks = ("-t", "even-steven", "-t", "mirror-word")
    formats = ("whole", "diff", "udiff")
    flags = [text for each in formats for text in ("--edit-format", each)]
    done = run("harness.py", "--grid", *tasks, *flags, *FLAGS, "--max-tokens", 96, "--run", "g")
    assert done.returncode == 0, done.stderr
    shown = report(run, "g").stdout
    content = read(home, "g")
    assert content["common"]["measured_by_all"] == 2
    assert [row["edit_format"] for row in content["runs"]] == list(formats)
    for row in content["runs"]:
        assert (row["of"], row["calls"], row["cost"]) == (2, 2, 0.0)
        assert row["completion_tokens"] > 0
        assert {"pass_rate_1", "percent_cases_well_formed", "lazy_comments", "syntax_errors"} <= set(row)
        assert row["edit_format"] in shown
