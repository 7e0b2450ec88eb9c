"""Several runs as one result, and a run that goes on where others left off."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.support.exercises import RIGHT, WRONG, reply, write_exercise, write_replies
from tests.support.programs import read, report

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

ONE, TWO = "aider_python_add_one", "aider_python_add_two"
FLAGS = ("--sandbox", "bwrap", "--turns", 1, "--reflections", 0, "--tries", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark of two tasks."""
    for slug in ("add-one", "add-two"):
        write_exercise(tmp_path / "bench", slug)
    return tmp_path / "bench"


def harness(run: Run, folder: Path, name: str, contents: dict[str, str], *more: object) -> Any:
    """A run whose model writes these contents, by module, at half a dollar each."""
    lines = [
        {"match": f"{module}.py", "text": reply(text, f"{module}.py"), "cost": 0.5, "prompt_tokens": 10}
        for module, text in contents.items()
    ]
    model = write_replies(folder.parent / f"{name}.jsonl", *lines)
    return run(
        "harness.py", "-b", folder, "-m", f"replay/{model}", "--run", name, "--name", f"edit--{name}", *FLAGS, *more
    )


@pytest.fixture
def halves(run: Run, home: Path, folder: Path) -> None:
    """Run A has only the first task right, run B only the second."""
    assert harness(run, folder, "A", {"add_one": RIGHT, "add_two": WRONG}).returncode == 0
    assert harness(run, folder, "B", {"add_one": WRONG, "add_two": RIGHT}).returncode == 0


@pytest.mark.smoke
@pytest.mark.usefixtures("halves")
def test_of_each_task_the_plausible_prediction_is_scored(run: Run, home: Path) -> None:
    done = report(run, "A", "B")
    content = read(home, "A+B")
    assert content["resolved"] == [ONE, TWO]
    assert {row["instance_id"]: (row["dname"], row["try"], row["tries"]) for row in content["instances"]} == {
        ONE: ("A", 1, 2),
        TWO: ("B", 2, 2),
    }
    assert (content["rate"]["attempts"], content["provenance"]["sources"]) == ("2+", ["A", "B"])
    assert (content["spent"]["calls"], content["spent"]["cost"]) == (4, 2.0)
    assert content["statistics"]["cost_per_instance"] == 1.0
    assert "plausible     2 (100.0 %), of which resolved 2 (100.0 %)" in done.stdout
    rows = [json.loads(line) for line in (home / "predictions/A+B/all_preds.jsonl").read_text().splitlines()]
    assert [(row["instance_id"], row["model_name_or_path"]) for row in rows] == [
        (ONE, "edit--A+edit--B"),
        (TWO, "edit--A+edit--B"),
    ]
    assert set(rows[0]) == {"instance_id", "model_name_or_path", "model_patch"}
    assert (home / f"predictions/A+B/{ONE}.md").read_text() == (home / f"predictions/A/{ONE}.md").read_text()


@pytest.mark.usefixtures("halves")
def test_the_sources_stay_as_they_are_and_are_still_the_latest(run: Run, home: Path) -> None:
    before = {path: path.read_bytes() for path in (home / "predictions").rglob("*") if path.is_file()}
    report(run, "A", "B")
    assert {path: path.read_bytes() for path in before} == before
    assert "predictions/B/results.json" in report(run).stdout


@pytest.mark.usefixtures("halves")
def test_one_result_can_be_scored_again_without_its_sources(run: Run, home: Path) -> None:
    report(run, "A", "B", "--run", "best")
    first = read(home, "best")
    for name in "AB":
        shutil.rmtree(home / "predictions" / name)
    report(run, "best")
    again = read(home, "best")
    assert [row["cached"] for row in again["instances"]] == [True, True]
    for content in (first, again):
        del content["instances"]
        del content["provenance"]
    assert again == first


@pytest.mark.usefixtures("halves")
def test_what_the_sources_have_by_then_is_what_is_scored(run: Run, home: Path, folder: Path) -> None:
    assert harness(run, folder, "C", {"add_one": WRONG}, "-t", "add-one").returncode == 0
    report(run, "C", "A")
    assert {row["dname"] for row in read(home, "C+A")["instances"]} == {"A"}
    assert harness(run, folder, "C", {"add_two": RIGHT}, "-t", "add-two").returncode == 0
    report(run, "C", "A")
    assert {row["instance_id"]: row["dname"] for row in read(home, "C+A")["instances"]} == {ONE: "A", TWO: "C"}
    assert read(home, "C+A")["resolved"] == [ONE, TWO]


def test_what_no_run_finished_is_not_measured(run: Run, home: Path, folder: Path) -> None:
    assert harness(run, folder, "A", {"add_one": RIGHT}).returncode == 1
    assert harness(run, folder, "B", {"add_one": WRONG}, "-t", "add-one").returncode == 0
    report(run, "A", "B", code=1)
    content = read(home, "A+B")
    assert list(content["not_measured"]) == [TWO]
    assert "has no reply" in content["not_measured"][TWO]
    assert content["resolved"] == [ONE]


def test_runs_of_two_benchmarks_are_refused(run: Run, home: Path, folder: Path, tmp_path: Path) -> None:
    other = write_exercise(tmp_path / "other")
    for name, bench in (("A", folder), ("B", other)):
        assert run("harness.py", "-b", bench, "-a", "null", "--run", name, "--sandbox", "bwrap").returncode == 0
    done = report(run, "A", "B", code=2)
    assert "Run 'B' is about" in done.stderr
    assert not (home / "predictions/A+B").exists()


# --prior


@pytest.mark.smoke
@pytest.mark.usefixtures("halves")
def test_a_run_is_compared_together_with_its_prior_run(run: Run, home: Path, folder: Path) -> None:
    assert harness(run, folder, "next", {"add_two": RIGHT}, "--prior", "A").returncode == 0
    shown = report(run, "--compare", "A", "next").stdout
    assert "A+next solves 50.0 points more than A on the 2 tasks that both measured. No significance test" in shown
    assert read(home, "compare--A--next")["pairs"][0]["p"] is None
    assert "the tasks for which A found no plausible edit (--prior)" in report(run, "next").stdout
    assert "neither can be the baseline" in report(run, "next", "--baseline", "A", code=2).stderr


@pytest.mark.usefixtures("halves")
def test_only_what_a_prior_run_left_is_worked_on(run: Run, home: Path, folder: Path) -> None:
    done = run("harness.py", "-b", folder, "-a", "gold", "--run", "next", "--prior", "A", "--sandbox", "bwrap")
    assert done.returncode == 0, done.stderr
    assert "1 left out, plausible or unverified in A" in done.stderr
    stored = read(home, "next", "run.json")
    assert (stored["prior"], stored["selected"]) == (["A"], [TWO])
    assert "prior" not in stored["identity"]
    assert not (home / f"predictions/next/{ONE}.json").exists()
    report(run, "A", "next")
    assert read(home, "A+next")["resolved"] == [ONE, TWO]


@pytest.mark.usefixtures("halves")
def test_with_nothing_left_nothing_is_asked(run: Run, home: Path, folder: Path) -> None:
    done = harness(run, folder, "next", {}, "--prior", "A", "--prior", "B")
    assert done.returncode == 0, done.stderr
    assert "0 tasks" in done.stderr and "2 left out, plausible or unverified in A, B" in done.stderr
    report(run, "A", "B", "next")
    assert read(home, "A+B+next")["resolved"] == [ONE, TWO]


@pytest.mark.usefixtures("halves")
def test_one_result_can_be_a_prior_run_and_a_dry_run_says_what_is_left(run: Run, home: Path, folder: Path) -> None:
    report(run, "A", "B")
    done = harness(run, folder, "next", {}, "--prior", "A+B", "--dry-run")
    assert "would do 0 tasks" in done.stdout and "2 left out, plausible or unverified in A+B" in done.stdout
    assert not (home / "predictions/next").exists()


def test_what_a_prior_run_could_not_finish_is_left_and_what_it_never_had_is_not(
    run: Run, home: Path, folder: Path
) -> None:
    write_exercise(folder, "add-three")
    assert harness(run, folder, "A", {"add_one": RIGHT}, "-t", "add-one", "-t", "add-two").returncode == 1
    done = run("harness.py", "-b", folder, "-a", "gold", "--run", "next", "--prior", "A", "--sandbox", "bwrap")
    assert done.returncode == 0, done.stderr
    assert read(home, "next", "run.json")["selected"] == [TWO]


@pytest.mark.usefixtures("halves")
def test_tasks_are_still_filtered_by_name(run: Run, home: Path, folder: Path) -> None:
    flags = ("-a", "gold", "--run", "next", "--sandbox", "bwrap", "-t", "add-one")
    assert run("harness.py", "-b", folder, *flags, "--prior", "B").returncode == 0
    assert read(home, "next", "run.json")["selected"] == [ONE]
    assert run("harness.py", "-b", folder, *flags, "--prior", "A").returncode == 0
    assert read(home, "next", "run.json")["prior"] == ["B", "A"]


@pytest.mark.usefixtures("halves")
def test_a_prior_run_that_cannot_be_one_is_refused(run: Run, home: Path, folder: Path, tmp_path: Path) -> None:
    other = write_exercise(tmp_path / "other")
    file = write_replies(tmp_path / "file.jsonl")
    assert run("harness.py", "-b", other, "-a", "null", "--run", "O", "--sandbox", "bwrap").returncode == 0
    assert (
        run("harness.py", "-b", folder, "-a", "null", "--run", "P", "-t", "add-one", "--sandbox", "bwrap").returncode
        == 0
    )
    cases = {
        "nowhere": "no run and no file 'nowhere'",
        str(file): "is a file from elsewhere",
        "O": "Run 'O' is about",
        "next": "cannot be its own --prior",
        "P": "none of them is in P",
    }
    (home / "predictions/next").mkdir()
    shutil.copy(home / "predictions/A/run.json", home / "predictions/next/run.json")
    for prior, words in cases.items():
        flags = ("-a", "gold", "--run", "next", "-t", "add-two", "--prior", prior, "--sandbox", "bwrap")
        done = run("harness.py", "-b", folder, *flags)
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr
