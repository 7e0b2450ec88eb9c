"""Bad input: exit 2, clear sentences with file and line, no traceback, nothing overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.support.exercises import write_exercise


def written(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def assert_refused(run: Run, home: Path, words: str, script: str, *arguments: object) -> None:
    before = written(home)
    done = run(script, *arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert words in done.stderr
    assert written(home) == before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_exercise(tmp_path / "bench")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--sampel-size", "3"), "did you mean '--sample-size'"),
        (("-t", "nothing-like-this"), "There is no task 'nothing-like-this'"),
        (("-b", "nowhere"), "Unknown benchmark 'nowhere'"),
        (("-b", "no/such/folder"), "Unknown benchmark"),
        (("-a", "nobody"), "Unknown agent 'nobody'"),
        (("-a", "gold", "-m", "gpt-5"), "asks no model"),
        (("--edit-format", "hole"), "did you mean 'whole'"),
        (("--filter-category", "cobol"), "languages: python"),
        (("-m", "replay/nowhere.jsonl"), "nowhere.jsonl"),
        (("-m", "local/nowhere.gguf"), "nowhere.gguf"),
        (("--sandbox", "chroot"), "Unknown sandbox 'chroot'"),
        (("--executor", "cloud"), "Unknown executor 'cloud'"),
        (("--run", "../up"), "cannot be a run's name"),
        (("-c", "nowhere.yaml"), "nowhere.yaml"),
        (("--price", "cheap"), "price"),
        (("--disk", "0.5"), "--disk must be at least 1"),
    ],
)
def test_harness_refuses(run: Run, home: Path, arguments: tuple[str, ...], words: str) -> None:
    assert_refused(run, home, words, "harness.py", *arguments)


def test_a_missing_key_is_said_before_anything_is_spent(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert_refused(run, home, "OPENAI_API_KEY", "harness.py", "-m", "gpt-5")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "There is no run yet"),
        (("nowhere",), "There is no run and no file 'nowhere'"),
        (("nowhere.jsonl", "-b", "demo"), "nowhere.jsonl"),
        (("--gold", "--null"), "exclude each other"),
        (("--calibrate", "--gold"), "exclude each other"),
        (("--calibrate", "some-run"), "they need no predictions"),
        (("--doctor", "some-run"), "they need no predictions"),
        (("--doctor", "--sandbox", "chroot"), "Unknown sandbox 'chroot'"),
        (
            ("--doctor", "-t", "sum-two"),
            "--task and --filter-category go with --gold, --null, --calibrate and a predictions file",
        ),
        (("--gold", "-t", "nothing"), "There is no task 'nothing'"),
        (("--gold", "--sandbox", "chroot"), "Unknown sandbox 'chroot'"),
        (("--gold", "--executor", "cloud"), "Unknown executor 'cloud'"),
        (("a", "b"), "There is no run and no file 'a'"),
        (("a", "--run", "b"), "--run names the one result of several runs"),
    ],
)
def test_report_refuses(run: Run, home: Path, arguments: tuple[str, ...], words: str) -> None:
    assert_refused(run, home, words, "report.py", *arguments)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["{"], "preds.jsonl:1 is not JSON"),
        (['{"instance_id": "aider_python_sum_up"}'], "preds.jsonl:1 lacks model_patch"),
        (
            ['{"instance_id": "x", "model_name_or_path": "m", "model_patch": ""}'],
            "preds.jsonl:1 names 'x', which is not in the benchmark",
        ),
        (
            [
                json.dumps({"instance_id": "aider_python_sum_up", "model_name_or_path": "m", "model_patch": patch})
                for patch in ("a", "b")
            ],
            "preds.jsonl:2 contradicts line 1",
        ),
    ],
)
def test_a_broken_predictions_file_is_refused_whole(
    run: Run, home: Path, folder: Path, lines: list[str], words: str
) -> None:
    path = folder.parent / "preds.jsonl"
    path.write_text("\n".join(lines) + "\n")
    assert_refused(run, home, words, "report.py", path, "-b", folder)
    assert path.read_text() == "\n".join(lines) + "\n"


def test_a_predictions_file_needs_a_benchmark(run: Run, home: Path, folder: Path) -> None:
    path = folder.parent / "preds.jsonl"
    path.write_text("{}\n")
    assert_refused(run, home, "Say it with -b", "report.py", path)


@pytest.mark.parametrize("content", ["", "[]", '{"identity": []}', "[" * 100_000])
def test_a_broken_run_is_refused_by_name_and_hides_no_other(run: Run, home: Path, content: str) -> None:
    folder = home / "predictions" / "broken"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(content)
    assert_refused(run, home, "run.json", "report.py", "broken")
    assert_refused(run, home, "There is no run yet", "report.py")


@pytest.mark.real
@pytest.mark.usefixtures("bwrap")
def test_a_home_that_is_no_folder_is_said(run: Run, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = run("harness.py", "-a", "null", "--sandbox", "bwrap", RETRIAL_HOME=str(file))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.real
@pytest.mark.usefixtures("bwrap")
def test_keep_going_scores_the_good_lines_and_ends_with_one(run: Run, home: Path, folder: Path) -> None:
    path = folder.parent / "preds.jsonl"
    good = json.dumps({"instance_id": "aider_python_sum_up", "model_name_or_path": "m", "model_patch": ""})
    path.write_text(f"{{\n{good}\n")
    done = run("report.py", path, "-b", folder, "--keep-going", "--sandbox", "bwrap")
    assert done.returncode == 1
    assert "preds.jsonl:1 is not JSON" in done.stderr
    (written_results,) = (home / "predictions").glob("preds-*/results.json")
    assert json.loads(written_results.read_text())["no_generation"] == ["aider_python_sum_up"]
    assert sorted(child.name for child in folder.parent.iterdir() if child.name.startswith("preds")) == ["preds.jsonl"]


def test_help_needs_nothing(run: Run, home: Path) -> None:
    for script in ("harness.py", "report.py"):
        done = run(script, "--help")
        assert done.returncode == 0
        assert "--sandbox" in done.stdout


@pytest.mark.parametrize("command", [("harness.py", "-a", "null"), ("report.py", "--null"), ("report.py", "--doctor")])
@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_missing_tmpdir_is_named_and_not_created(
    run: Run, tmp_path: Path, folder: Path, command: tuple[str, ...], kind: str
) -> None:
    place = tmp_path / "no" / "such" / "place"
    if kind == "file":
        place = tmp_path / "file"
        place.touch()
    done = run(*command, *(() if "--doctor" in command else ("-b", folder)), TMPDIR=str(place))
    assert done.returncode == 2, done.stderr
    assert f"TMPDIR is '{place}', which is not a folder" in done.stderr
    assert not place.is_dir()
    assert run("harness.py", "--help", TMPDIR=str(place)).returncode == 0
