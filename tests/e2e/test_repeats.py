"""`harness.py --repeat` and `report.py --repeat`: seeds that are known, verdicts that flip, and tests that flicker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retrial.patches.apply import diff
from tests.conftest import Run
from tests.e2e.test_calibrate import FLICKERING
from tests.support.exercises import RIGHT, STUB, WRONG, reply, write_exercise
from tests.support.programs import read, report
from tests.support.servers import Answer, Asked, ChatServer
from tests.support.servers import reply as answer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

KEY = "sk-test-0123456789abcdef"
FLAGS = ("--sandbox", "bwrap", "--turns", 1, "--reflections", 0, "--tries", 1)
SLUGS = ("always", "even", "never")

# Right or wrong for a whole run of the tests, by a coin.
TOSSED = """\
import random

LUCKY = random.random() < 0.5


def add(a, b):
    return a + b if LUCKY else 7
"""


def knows_even_seeds(asked: Asked) -> Answer:
    """`always` is right, `never` is wrong, and `even` is right with every second seed."""
    (slug,) = (slug for slug in SLUGS if f"{slug}.py" in asked.body["messages"][1]["content"])
    right = slug == "always" or (slug == "even" and asked.body["seed"] % 2 == 0)
    return answer(
        reply(RIGHT if right else WRONG, f"{slug}.py"), usage={"prompt_tokens": 1000, "completion_tokens": 100}
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark of three tasks."""
    for slug in SLUGS:
        write_exercise(tmp_path / "bench", slug)
    return tmp_path / "bench"


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer([knows_even_seeds]) as found:
        yield found


def repeat(run: Run, folder: Path, server: ChatServer, times: int, *more: object, code: int = 0) -> Any:
    flags = ("-b", folder, "-m", "gpt-test", "--api-base", server.url, "--price", "1/10", "--repeat", times)
    done = run("harness.py", *flags, *FLAGS, *more, OPENAI_API_KEY=KEY)
    assert done.returncode == code, done.stderr
    return done


def seeds(server: ChatServer) -> list[int]:
    return sorted(asked.body["seed"] for asked in server.requests)


@pytest.mark.smoke
def test_three_runs_with_three_seeds_have_a_mean_and_a_spread(
    run: Run, home: Path, folder: Path, server: ChatServer
) -> None:
    done = repeat(run, folder, server, 3, "--seed", 4)
    assert "run 3 of 3" in done.stderr
    assert seeds(server) == [4, 4, 4, 5, 5, 5, 6, 6, 6]
    name = "bench--edit--gpt-test"
    stored = read(home, name, "run.json")
    assert (stored["program"], stored["kind"], stored["identity"]["seed"]) == ("harness.py", "repeats", 4)
    assert stored["runs"] == [{"run": f"{name}.{number}", "seed": 3 + number} for number in (1, 2, 3)]
    assert read(home, f"{name}.2", "run.json")["identity"]["seed"] == 5

    # Nothing is named: the group was started last, though its runs were started later.
    shown = report(run).stdout
    content = read(home, name)
    assert content["kind"] == "repeats"
    assert [(row["seed"], row["resolved"], row["of"], row["cost"]) for row in content["runs"]] == [
        (4, 2, 3, 0.006),
        (5, 1, 3, 0.006),
        (6, 2, 3, 0.006),
    ]
    assert (content["mean"], content["spread"]["standard_deviation"]) == (55.56, 19.25)
    assert content["pass_at"] == {"1": 55.56, "2": 66.67, "3": 66.67}
    assert content["flips"] == {"aider_python_even": [True, False, True]}
    assert (content["always"], content["never"]) == (["aider_python_always"], ["aider_python_never"])
    assert (content["identical"], content["conditions_differ"]) == (False, {})
    assert "mean            55.6 % (spread 19.2 points over 3 runs; 33.3 to 66.7); pass@3 66.7 %; 1 of 3 tasks" in shown

    # Each is a run as any other.
    alone = report(run, f"{name}.2").stdout
    assert "resolved      1" in alone
    assert read(home, f"{name}.2")["rate"]["resolved"] == 1


def test_the_same_command_asks_nothing_twice_and_a_larger_number_adds_runs(
    run: Run, home: Path, folder: Path, server: ChatServer
) -> None:
    repeat(run, folder, server, 2, "--run", "r", "-t", "even")
    assert seeds(server) == [0, 1]
    done = repeat(run, folder, server, 2, "--run", "r", "-t", "even")
    assert (seeds(server), done.stderr.count("1 done before")) == ([0, 1], 2)
    repeat(run, folder, server, 3, "--run", "r", "-t", "even")
    assert seeds(server) == [0, 1, 2]
    repeat(run, folder, server, 2, "--run", "r", "-t", "even")
    assert seeds(server) == [0, 1, 2]
    report(run, "r")
    assert read(home, "r")["flips"] == {"aider_python_even": [True, False, True]}


def test_the_budget_is_that_of_all_runs(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    # Each call takes all that is reserved for it, a thousandth of a dollar: there is money for four.
    flags = ("--max-tokens", 100, "--price", "0/10", "--max-cost", 0.0045, "--jobs", 1, "--run", "r")
    done = repeat(run, folder, server, 2, *flags, code=1)
    assert "budget of 0.0045 USD" in done.stdout, done.stdout
    assert seeds(server) == [0, 0, 0, 1]
    shown = report(run, "r", code=1).stdout
    content = read(home, "r")
    assert (content["common"]["measured_by_all"], content["common"]["of"]) == (1, 3)
    assert [row["not_measured"] for row in content["runs"]] == [0, 2]
    assert "not measured    2 in r.2" in shown


def test_a_dry_run_sums_up_and_asks_nothing(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    done = repeat(run, folder, server, 3, "--run", "r", "--dry-run")
    lines = [line for line in done.stdout.splitlines() if line.startswith("Run ")]
    assert [line.split()[1] for line in lines] == ["r.1", "r.2", "r.3"]
    costs = [float(line.split("at most ")[1].split()[0]) for line in lines]
    (last,) = (line for line in done.stdout.splitlines() if "together" in line)
    assert float(last.split("at most ")[1].split()[0]) == pytest.approx(sum(costs), abs=0.001)
    assert server.requests == []
    assert not (home / "predictions").exists()


def test_runs_that_came_out_the_same_are_said_to_show_nothing(
    run: Run, home: Path, folder: Path, server: ChatServer
) -> None:
    done = repeat(run, folder, server, 2, "--run", "r", "-t", "always", "-t", "never")
    assert "all runs came to the same patches" in done.stderr
    assert "all runs came to the same patches" in report(run, "r").stdout
    assert (read(home, "r")["identical"], read(home, "r")["spread"]["standard_deviation"]) == (True, 0.0)


def test_repeats_are_no_run(run: Run, home: Path, folder: Path, server: ChatServer) -> None:
    repeat(run, folder, server, 2, "--run", "r", "-t", "even")
    assert "'r' is a group of repeats" in report(run, "r", "r.1", code=2).stderr
    assert "--fail-under is about one run" in report(run, "r", "--fail-under", 50, code=2).stderr
    gold = ("harness.py", "-b", folder, "-a", "gold", "--sandbox", "bwrap")
    for flags in (("--run", "next", "--prior", "r"), ("--run", "r")):
        done = run(*gold, *flags)
        assert (done.returncode, "'r' is a group of repeats" in done.stderr) == (2, True), done.stderr
    assert "is one run already" in repeat(run, folder, server, 2, "--run", "r.1", code=2).stderr
    assert "does not go with --grid" in repeat(run, folder, server, 2, "--run", "g", "--grid", code=2).stderr
    # Two of them are one result, as any two runs: of `even` the first that is plausible.
    report(run, "r.2", "r.1", "--run", "best")
    assert read(home, "best")["rate"]["resolved"] == 1


# Scoring a run several times


def predictions(path: Path, answers: dict[str, str]) -> Path:
    rows = [
        {
            "instance_id": f"aider_python_{slug}",
            "model_name_or_path": "somebody",
            "model_patch": diff({f"{slug}.py": STUB.encode()}, {f"{slug}.py": content.encode()}),
        }
        for slug, content in answers.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_verdicts_that_flip_between_scorings_are_named_with_their_tests(run: Run, home: Path, tmp_path: Path) -> None:
    # Three coins, eight times each: once in two million goes all of them would fall on one side.
    tossed = ("coin_a", "coin_b", "coin_c")
    for slug in ("sound", *tossed):
        write_exercise(tmp_path / "bench", slug)
    path = predictions(tmp_path / "preds.jsonl", {"sound": RIGHT, **dict.fromkeys(tossed, TOSSED)})
    done = report(run, path, "-b", tmp_path / "bench", "--repeat", 8)
    (folder,) = home.glob("predictions/preds-*")
    content = json.loads((folder / "results.json").read_text())
    found = content["repeats"]
    assert (found["times"], found["of"], found["not_measured"]) == (8, 4, [])
    assert found["flaky"] and set(found["flaky"]) <= {f"aider_python_{slug}" for slug in tossed}
    assert len(found["flaky"]) + found["stable"] == 4
    headline = {row["instance_id"]: row for row in content["instances"]}
    for name, each in found["flaky"].items():
        assert len(each["outcomes"]) == 8 and len(set(each["outcomes"])) > 1
        assert any("test_small_numbers" in test for test in each["tests"])
        assert headline[name]["outcome"] == each["outcomes"][0]
        assert all(statuses[0] == headline[name]["tests"].get(test) for test, statuses in each["tests"].items())
    assert not any(row["cached"] for row in content["instances"])
    assert "Scoring 8 of 8" in done.stderr
    assert f"flaky         {len(found['flaky'])} of 4 instances gave different verdicts in 8 scorings" in done.stdout
    # Each scoring has logs of its own, and the first one's are where they always are.
    for scoring in ("", *(f"scoring-{number}/" for number in range(2, 9))):
        for name, each in found["flaky"].items():
            log = home / "logs" / folder.name / f"{scoring}{name}.somebody.eval.log"
            place = int(scoring[8:-1]) - 1 if scoring else 0
            assert f"outcome:  {each['outcomes'][place]}" in log.read_text()


def test_references_that_flicker_are_found_with_gold(run: Run, home: Path, tmp_path: Path) -> None:
    write_exercise(tmp_path / "bench", "flicker", tests=FLICKERING)
    write_exercise(tmp_path / "bench", "sound")
    done = report(run, "--gold", "-b", tmp_path / "bench", "--repeat", 2)
    found = read(home, "gold--bench")["repeats"]
    assert (found["times"], found["flaky"], found["stable"]) == (2, {}, 2)
    # A test that is skipped where the reference skips it changes no verdict: it is said all the same.
    assert list(found["flaky_tests"]) == ["aider_python_flicker"]
    assert "without changing a verdict: aider_python_flicker" in done.stdout


def test_a_run_of_a_group_may_be_scored_several_times_too(
    run: Run, home: Path, folder: Path, server: ChatServer
) -> None:
    repeat(run, folder, server, 2, "--run", "r", "-t", "even")
    done = report(run, "r", "--repeat", 2)
    assert [read(home, f"r.{number}")["repeats"]["stable"] for number in (1, 2)] == [1, 1]
    assert done.stdout.count("0 of 1 instance gave different verdicts in 2 scorings") == 2
    assert read(home, "r")["flips"] == {"aider_python_even": [True, False]}
