"""The Exercism layout: what an agent may see, and what it may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import DEMO, ExerciseSettings, Exercism
from retrial.errors import UsageError
from retrial.grading.run_check import select
from retrial.patches.apply import diff, patched
from retrial.patches.policy import Selection
from tests.support.exercises import RIGHT, write_exercise


def open_folder(root: Path) -> Exercism:
    return Exercism(root, "here", 1)


def test_an_agent_sees_the_stub_and_the_editor_files_and_nothing_else(tmp_path: Path) -> None:
    extra = {
        "data/words.txt": "a b\n",
        ".approaches/x/snippet.txt": RIGHT,
        "test_extra.py": "def test_x():\n    pass\n",
    }
    write_exercise(tmp_path, editor={"helper.py": "ONE = 1\n"}, extra=extra)
    (task,) = open_folder(tmp_path).tasks()
    assert set(task.tree.files()) == {"sum_up.py", "helper.py", "data/words.txt"}
    assert (task.editable, task.read_only) == (("sum_up.py",), ("helper.py",))
    assert RIGHT not in repr(task)


def test_compiled_tests_are_not_shown(tmp_path: Path) -> None:
    write_exercise(tmp_path, extra={"__pycache__/sum_up_test.cpython-311.pyc": "x", "old.pyc": "x"})
    (task,) = open_folder(tmp_path).tasks()
    assert set(task.tree.files()) == {"sum_up.py"}


def test_a_folder_that_is_called_demo_is_not_the_bundled_one(tmp_path: Path) -> None:
    root = write_exercise(tmp_path / "demo")
    assert Exercism(root, "demo", 1).provenance["source"] == str(root.resolve())


@pytest.mark.parametrize("slug", ["sum_up", "sum up"])
def test_a_name_that_is_taken_or_cannot_be_one_is_refused(tmp_path: Path, slug: str) -> None:
    write_exercise(tmp_path)
    write_exercise(tmp_path, slug)
    with pytest.raises(UsageError, match="name"):
        open_folder(tmp_path).tasks()


def test_instructions_that_are_not_utf8_are_read_all_the_same(tmp_path: Path) -> None:
    write_exercise(tmp_path)
    (tmp_path / "python/exercises/practice/sum-up/.docs/instructions.md").write_bytes(b"caf\xe9")
    (task,) = open_folder(tmp_path).tasks()
    assert task.problem_statement == "caf\ufffd"


def test_every_test_file_is_put_back_for_a_check_even_one_in_no_list(tmp_path: Path) -> None:
    write_exercise(tmp_path, extra={"test_extra.py": "def test_x():\n    pass\n"})
    benchmark = open_folder(tmp_path)
    assert set(benchmark.visible("aider_python_sum_up").files) == {"sum_up_test.py", "test_extra.py"}


def test_ids_have_language_and_slug(tmp_path: Path) -> None:
    (task,) = open_folder(write_exercise(tmp_path)).tasks()
    assert task.instance_id == "aider_python_sum_up"
    assert "returns the sum" in task.problem_statement


def test_a_single_track_takes_its_language_from_its_config(tmp_path: Path) -> None:
    write_exercise(tmp_path)
    track = tmp_path / "python"
    (track / "config.json").write_text(json.dumps({"slug": "python"}))
    assert [task.instance_id for task in open_folder(track).tasks()] == ["aider_python_sum_up"]


def test_a_task_may_give_its_own_test_command(tmp_path: Path) -> None:
    benchmark = open_folder(write_exercise(tmp_path, test_command="python3 -m unittest sum_up_test"))
    assert "python3 -m unittest sum_up_test" in benchmark.visible("aider_python_sum_up").script


def test_the_reference_is_a_patch_of_the_stub(tmp_path: Path) -> None:
    answer = open_folder(write_exercise(tmp_path)).answer("aider_python_sum_up")
    assert "+    return a + b\n" in answer.patch
    assert answer.patch.startswith("diff --git a/sum_up.py b/sum_up.py\n")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"files": []}',
        '{"files": {"solution": null}}',
        '{"files": {"solution": [], "test": ["sum_up_test.py"]}}',
        '{"files": {"solution": ["nowhere.py"]}}',
        '{"files": {"solution": ["sum_up.py"], "test": ["sum_up_test.py"]}, "test_command": ["pytest"]}',
    ],
)
def test_a_broken_exercise_is_refused_with_its_file(tmp_path: Path, content: str) -> None:
    write_exercise(tmp_path)
    (tmp_path / "python/exercises/practice/sum-up/.meta/config.json").write_text(content)
    with pytest.raises(UsageError, match=r"sum-up.*config\.json"):
        open_folder(tmp_path).tasks()


def test_a_folder_without_exercises_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No exercise"):
        open_folder(tmp_path).tasks()


def test_the_demo_is_large_enough_and_whole() -> None:
    benchmark = Exercism(DEMO, "demo", 2)
    assert len(benchmark.tasks()) >= 10
    for task in benchmark.tasks():
        assert task.problem_statement
        assert benchmark.answer(task.instance_id).patch


def rust(root: Path, **files: str) -> Exercism:
    folder = root / "rust" / "exercises" / "practice" / "sum-up"
    names = {"solution": ["src/lib.rs", "Cargo.toml"], "test": ["tests/sum-up.rs"], "example": [".meta/example.rs"]}
    content = {
        "src/lib.rs": "mod given;\n",
        "src/given.rs": "pub struct Given;\n",
        "Cargo.toml": '[package]\nname = "sum-up"\n',
        "tests/sum-up.rs": "#[test]\nfn t() {}\n",
        "tests/more/data.rs": "// of the tests\n",
        "target/debug/old": "compiled\n",
        ".meta/example.rs": "mod given;\n// done\n",
        ".meta/Cargo-example.toml": '[package]\nname = "sum-up"\n\n[dependencies]\nanyhow = "1"\n',
        ".meta/config.json": json.dumps({"files": names}),
        **files,
    }
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return open_folder(root)


def test_all_below_a_folder_of_tests_is_a_test_and_build_folders_are_nothing(tmp_path: Path) -> None:
    (task,) = rust(tmp_path).tasks()
    assert set(task.tree.files()) == {"src/lib.rs", "src/given.rs", "Cargo.toml"}
    assert set(rust(tmp_path).visible(task.instance_id).files) == {"tests/sum-up.rs", "tests/more/data.rs"}


def test_sources_beside_the_solution_and_manifests_are_shown_read_only(tmp_path: Path) -> None:
    benchmark = rust(tmp_path)
    (task,) = benchmark.tasks()
    assert task.read_only == ("src/given.rs", "Cargo.toml")
    assert task.partly_editable == ("Cargo.toml",)
    (task,) = Exercism(benchmark.root, "here", settings=ExerciseSettings(show_editor_files=False)).tasks()
    assert task.read_only == ()


def test_a_reference_may_bring_a_manifest(tmp_path: Path) -> None:
    benchmark = rust(tmp_path)
    (task,) = benchmark.tasks()
    assert "anyhow" in benchmark.answer(task.instance_id).patch


def test_of_a_manifest_only_the_dependencies_count(tmp_path: Path) -> None:
    (task,) = rust(tmp_path).tasks()
    base = task.tree.files()
    edited = b'[package]\nname = "sum-up"\nautotests = false\n\n[dependencies]\nanyhow = "1"\n'
    found = select(task, diff(base, {**base, "Cargo.toml": edited}))
    assert isinstance(found, Selection)
    assert "Cargo.toml" in found.dropped
    kept = patched(base, found.patch).files["Cargo.toml"]
    assert b"anyhow" in kept
    assert b"autotests" not in kept


def test_a_reference_patch_is_made_once_and_anew_when_the_task_changes_or_what_was_kept_is_damaged(
    home: Path, tmp_path: Path
) -> None:
    bench = write_exercise(tmp_path / "bench")
    example = bench / "python/exercises/practice/sum-up/.meta/example.py"
    first = open_folder(bench).answer("aider_python_sum_up").patch
    (kept,) = (home.parent / "cache" / "patches").glob("*/*.json")
    written = kept.stat().st_ino
    assert open_folder(bench).answer("aider_python_sum_up").patch == first
    assert kept.stat().st_ino == written
    kept.write_bytes(b"{")
    assert open_folder(bench).answer("aider_python_sum_up").patch == first
    example.write_text("def add(a, b):\n    return b + a\n")
    assert "+    return b + a" in open_folder(bench).answer("aider_python_sum_up").patch
