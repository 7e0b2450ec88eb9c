"""Untrusted folders: symlinks, FIFOs and devices in benchmarks, runs and files."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from retrial.benchmarks import open_benchmark
from retrial.benchmarks.exercism import Exercism
from retrial.benchmarks.swebench.rows import Origin, read
from retrial.cli.arguments import parse
from retrial.errors import TreeError, UsageError
from retrial.options import HarnessOptions
from retrial.protocols import Context
from retrial.store.runs import Run as Files
from retrial.system.files import read_file
from retrial.system.locks import PREDICTING, SCORING, RunLock
from tests.conftest import Run
from tests.support.exercises import RIGHT, write_exercise, write_replies
from tests.support.swebench_sources import TWO, a_jsonl, a_repository, a_row, a_task, complaint, ids

SECRET = "the contents of a file of this host"
SLUG = Path("python/exercises/practice/sum-up")
USED = ("sum_up.py", "sum_up_test.py", ".meta/example.py", ".meta/config.json", ".docs/instructions.md")
OF_A_TASK = ("task.yaml", "problem_statement.md", "gold.patch", "test.patch", "tests.json", "eval.sh", "Dockerfile")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text(SECRET)
    return path


def linked(path: Path, secret: Path) -> str:
    path.unlink(missing_ok=True)
    path.symlink_to(secret)
    return "a symlink"


def fifo(path: Path, secret: Path) -> str:
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    return "a FIFO"


def listened(path: Path, secret: Path) -> str:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        # Its path must be short, so it is bound where it lies.
        before = os.open(".", os.O_RDONLY)
        os.chdir(path.parent)
        try:
            listener.bind(path.name)
        finally:
            os.fchdir(before)
            os.close(before)
    return "a socket"


KINDS = (linked, fifo, listened)
Kind = Callable[[Path, Path], str]


def opened(name: Path | str) -> object:
    """As both programs open what `-b` names."""
    benchmark = open_benchmark(Context(options=HarnessOptions(benchmark=str(name)), name=str(name)))
    return benchmark.tasks()


def refusal(name: Path | str) -> str:
    with pytest.raises(UsageError) as caught:
        opened(name)
    assert SECRET not in str(caught.value)
    return str(caught.value)


# Exercises


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*USED, "notes.txt", ".docs/hints.md", ".meta/additional_tests.json"])
def test_what_is_not_a_regular_file_is_refused_by_name(tmp_path: Path, secret: Path, name: str, kind: Kind) -> None:
    root = write_exercise(tmp_path / "bench")
    what = kind(root / SLUG / name, secret)
    assert refusal(root) == f"{root / SLUG / name} is {what}, not a regular file."


def test_every_problem_of_every_exercise_is_listed(tmp_path: Path, secret: Path) -> None:
    root = tmp_path / "bench"
    folders = [write_exercise(root, slug) / SLUG.with_name(slug) for slug in ("one", "sum-up", "two")]
    linked(folders[0] / ".docs/instructions.md", secret)
    fifo(folders[0] / "one_test.py", secret)
    (folders[1] / ".meta/config.json").write_text("[]")
    (folders[2] / "more").symlink_to("/etc")
    assert refusal(root).splitlines() == [
        f"{folders[0]}/.docs/instructions.md is a symlink, not a regular file.",
        f"{folders[0]}/one_test.py is a FIFO, not a regular file.",
        f"{folders[1]}/.meta/config.json must hold a JSON object.",
        f"{folders[2]}/more is a symlink, not a regular file.",
    ]


@pytest.mark.parametrize("depth", range(1, 5))
def test_a_folder_on_the_way_to_an_exercise_may_not_be_a_link(tmp_path: Path, depth: int) -> None:
    elsewhere = write_exercise(tmp_path / "elsewhere")
    way = Path(*SLUG.parts[:depth])
    root = tmp_path / "bench"
    (root / way).parent.mkdir(parents=True)
    (root / way).symlink_to(elsewhere / way)
    assert str(root / Path(*SLUG.parts[: max(depth, 3)])) in (said := refusal(root))
    assert "symlink" in said


@pytest.mark.parametrize("name", [".meta", ".docs"])
def test_a_folder_of_an_exercise_may_not_be_a_link(tmp_path: Path, name: str) -> None:
    elsewhere, root = write_exercise(tmp_path / "elsewhere"), write_exercise(tmp_path / "bench")
    (root / SLUG / name).rename(tmp_path / "away")
    (root / SLUG / name).symlink_to(elsewhere / SLUG / name)
    assert refusal(root) == f"{root / SLUG / name} is a symlink, not a regular file."


def test_links_that_no_task_uses_are_left_alone(tmp_path: Path, secret: Path) -> None:
    root = write_exercise(tmp_path / "bench", extra={"__pycache__/x.pyc": "x"})
    (root / "docs").symlink_to("/etc")
    (root / "LICENSE").symlink_to(secret)
    (root / SLUG / ".venv").mkdir()
    (root / SLUG / ".venv/python").symlink_to("/usr/bin/python3")
    assert opened(root)


def test_a_folder_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    root = write_exercise(tmp_path / "bench")
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "parent").symlink_to(tmp_path)
    for name in ("link", "parent/bench"):
        (task,) = Exercism(tmp_path / name, "here").tasks()
        assert set(task.tree.files()) == {"sum_up.py"}


def test_a_named_file_in_a_folder_that_is_not_searched_may_not_be_a_link(tmp_path: Path, secret: Path) -> None:
    files = {"solution": ["sum_up.py"], "test": ["sum_up_test.py", "__pycache__/more.py"]}
    root = write_exercise(tmp_path / "bench", extra={"__pycache__/more.py": ""}, files=files)
    assert opened(root)
    linked(root / SLUG / "__pycache__/more.py", secret)
    assert f"{root / SLUG}/__pycache__/more.py is a symlink, not a regular file." in refusal(root)


def test_a_file_that_becomes_a_link_after_the_check_is_not_read(tmp_path: Path, secret: Path) -> None:
    root = write_exercise(tmp_path / "bench", extra={"data/words.txt": "a b\n"})
    benchmark = Exercism(root, "here")
    (task,) = benchmark.tasks()
    linked(root / SLUG / "sum_up_test.py", secret)
    with pytest.raises(TreeError, match=r"sum_up_test\.py: it is a symlink, not a regular file"):
        benchmark.visible(task.instance_id)
    (root / SLUG / "data").rename(tmp_path / "data")
    (root / SLUG / "data").symlink_to(tmp_path / "data")
    with pytest.raises(TreeError, match=r"words\.txt: it leads through a symlink to .*/data/words\.txt"):
        task.tree.files()


def test_absurdly_large_files_are_refused_unread(tmp_path: Path) -> None:
    root = write_exercise(tmp_path / "bench")
    for name in (".docs/instructions.md", "sum_up_test.py"):
        os.truncate(root / SLUG / name, 1 << 28)
    assert refusal(root).splitlines() == [
        f"{root / SLUG}/.docs/instructions.md has 268435456 bytes, more than 1048576.",
        f"{root / SLUG}/sum_up_test.py has 268435456 bytes, more than 16777216.",
    ]


def test_a_name_with_control_characters_stays_on_its_line(tmp_path: Path, secret: Path) -> None:
    root = write_exercise(tmp_path / "bench")
    (root / SLUG / "a\nb\x1b[2J").symlink_to(secret)
    assert "a\\nb\\x1b[2J' is a symlink" in refusal(root)


def test_a_fifo_in_the_repository_of_a_benchmark_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrial.benchmarks.exercism.COMMIT_SECONDS", 1.0)
    root = write_exercise(tmp_path / "bench")
    for folder in ("objects", "refs"):
        (root / ".git" / folder).mkdir(parents=True)
    os.mkfifo(root / ".git/HEAD")
    assert Exercism(root, "here").provenance["commit"] == ""


# Task repositories and rows of SWE-bench


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*OF_A_TASK, "hints.md"])
def test_a_file_of_a_task_that_is_not_regular_is_refused_by_name(
    tmp_path: Path, secret: Path, name: str, kind: Kind
) -> None:
    root = a_repository(tmp_path / "tasks", TWO)
    path = root / "tasks/ours__tiny-2" / name
    what = kind(path, secret)
    assert f"is {what}, not a regular file." in (said := refusal(root))
    assert str(path) in said


def test_every_problem_of_a_task_repository_is_listed(tmp_path: Path, secret: Path) -> None:
    root = a_repository(tmp_path / "tasks", TWO)
    first, second = (root / "tasks" / str(row["instance_id"]) for row in TWO)
    linked(first / "gold.patch", secret)
    linked(first / "problem_statement.md", secret)
    second.rename(tmp_path / "second")
    second.symlink_to(tmp_path / "second")
    (said_first, said_next, *_), said = refusal(root).splitlines(), refusal(root)
    assert said_first == f"{first}/gold.patch is a symlink, not a regular file."
    assert said_next == f"{first}/problem_statement.md is a symlink, not a regular file."
    assert f"{second}/task.yaml cannot be read: it leads through a symlink to {tmp_path}/second/task.yaml." in said


@pytest.mark.parametrize("name", ["sweb.yaml", "tasks"])
def test_what_all_tasks_share_may_not_be_a_link(tmp_path: Path, name: str) -> None:
    root = a_repository(tmp_path / "tasks", TWO)
    (root / name).rename(tmp_path / "away")
    (root / name).symlink_to(tmp_path / "away")
    assert f"{root / name}" in (said := refusal(root))
    assert "symlink" in said


def test_a_task_repository_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    a_repository(tmp_path / "tasks", TWO)
    (tmp_path / "link").symlink_to(tmp_path / "tasks")
    assert ids(tmp_path / "link") == ["ours__tiny-1", "ours__tiny-2"]


def test_an_answer_that_becomes_a_link_after_the_check_is_not_read(tmp_path: Path, secret: Path) -> None:
    folder = a_task(tmp_path / "tasks", a_row())
    (row,) = read(Origin(where=str(tmp_path / "tasks")))
    linked(folder / "gold.patch", secret)
    with pytest.raises(UsageError, match=r"gold\.patch cannot be read: it is a symlink"):
        row.secrets()


@pytest.mark.parametrize("way", ["file", "folder", "absolute", "up"])
def test_test_assets_lie_in_the_folder_of_their_task(tmp_path: Path, secret: Path, way: str) -> None:
    paths = {"file": "a.png", "folder": "a.png", "absolute": "/etc/passwd", "up": "../../../../secret.txt"}
    assets = {"test_patch": [{"path": paths[way], "url": ""}]}
    folder = a_task(tmp_path / "tasks", a_row(image_assets=assets))
    (folder / "test_assets").mkdir()
    (folder / "test_assets" / "a.png").write_text("x")
    if way == "file":
        linked(folder / "test_assets/a.png", secret)
    if way == "folder":
        (folder / "test_assets").rename(tmp_path / "away")
        (folder / "test_assets").symlink_to(tmp_path / "away")
    assert paths[way] in complaint(tmp_path / "tasks")


def test_a_problem_statement_of_absurd_size_is_refused(tmp_path: Path) -> None:
    folder = a_task(tmp_path / "tasks", a_row())
    os.truncate(folder / "problem_statement.md", 1 << 28)
    assert "problem_statement.md cannot be read: it has 268435456 bytes" in complaint(tmp_path / "tasks")


@pytest.mark.parametrize("kind", [linked, fifo])
def test_data_files_of_a_folder_of_rows_are_regular(tmp_path: Path, kind: Kind) -> None:
    rows = a_jsonl(tmp_path / "elsewhere" / "rows.jsonl", TWO)
    hub = a_jsonl(tmp_path / "hub" / "test.jsonl", TWO).parent
    what = kind(hub / "test.jsonl", rows)
    assert f"{hub / 'test.jsonl'} is {what}, not a regular file." in complaint(hub)


def test_the_cache_of_the_hub_may_be_named_although_it_is_made_of_links(tmp_path: Path) -> None:
    a_jsonl(tmp_path / "blobs" / "0123", TWO)
    snapshot = tmp_path / "snapshots" / "abcd"
    snapshot.mkdir(parents=True)
    (snapshot / "test.jsonl").symlink_to("../../blobs/0123")
    assert ids(snapshot) == ["ours__tiny-1", "ours__tiny-2"]


# Files that users name


def test_a_file_that_users_name_may_be_a_link(tmp_path: Path) -> None:
    rows = a_jsonl(tmp_path / "rows.jsonl", TWO)
    (tmp_path / "link.jsonl").symlink_to(rows)
    assert len(ids(tmp_path / "link.jsonl")) == 2


def test_a_configuration_that_is_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(UsageError, match=r"config\.yaml cannot be read: it is a FIFO, not a regular file"):
        parse(HarnessOptions, ["-c", str(tmp_path / "config.yaml")], "")


def test_a_configuration_may_come_from_the_shell_through_a_pipe() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"tries: 7\n")
    os.close(writing)
    try:
        assert parse(HarnessOptions, ["-c", f"/dev/fd/{reading}"], "")[0].tries == 7
    finally:
        os.close(reading)


@pytest.mark.parametrize("kind", [fifo, listened])
def test_only_regular_files_are_read(tmp_path: Path, secret: Path, kind: Kind) -> None:
    what = kind(tmp_path / "file", secret)
    with pytest.raises(OSError, match=f"it is {what}, not a regular file"):
        read_file(tmp_path / "file")


def test_a_device_is_not_read() -> None:
    with pytest.raises(OSError, match="it is a device, not a regular file"):
        read_file("/dev/zero")


# As users see it


def test_a_task_folder_with_links_ends_the_program_before_anything_runs(
    run: Run, home: Path, tmp_path: Path, secret: Path
) -> None:
    root = write_exercise(tmp_path / "bench")
    linked(root / SLUG / ".docs/instructions.md", secret)
    fifo(root / SLUG / ".docs/introduction.md", secret)
    replies = write_replies(tmp_path / "replies.jsonl", RIGHT)
    for arguments in (("harness.py", "-m", f"replay/{replies}"), ("report.py", "--gold")):
        done = run(*arguments, "-b", root)
        assert done.returncode == 2
        assert f"{root / SLUG}/.docs/instructions.md is a symlink" in done.stderr
        assert f"{root / SLUG}/.docs/introduction.md is a FIFO" in done.stderr
        assert "Traceback" not in done.stderr
    assert not list(home.glob("predictions/*"))


@pytest.mark.parametrize("name", ["preds.jsonl", "preds.json"])
def test_a_predictions_file_that_is_a_fifo_does_not_block(run: Run, tmp_path: Path, name: str) -> None:
    root = write_exercise(tmp_path / "bench")
    os.mkfifo(tmp_path / name)
    done = run("report.py", tmp_path / name, "-b", root)
    assert done.returncode == 2
    assert "it is a FIFO, not a regular file" in done.stderr


@pytest.mark.parametrize("name", ["scoring.lock", "run.lock", ".reserve", "journal/a.jsonl", "one.json", "one.md"])
def test_a_run_from_elsewhere_may_not_hold_links(home: Path, tmp_path: Path, secret: Path, name: str) -> None:
    found = Files(home, "theirs")
    found.write_config({})
    found.refuse_links()
    (found.folder / "journal").mkdir()
    linked(found.folder / name, secret)
    fifo(found.folder / "two.json", secret)
    with pytest.raises(UsageError, match=r"theirs/two\.json is a FIFO") as caught:
        found.refuse_links()
    assert f"theirs/{name} is a symlink." in str(caught.value)


@pytest.mark.parametrize("claim", [PREDICTING, SCORING])
def test_a_lock_of_a_run_that_leads_elsewhere_empties_no_file(home: Path, secret: Path, claim: RunLock) -> None:
    found = Files(home, "theirs")
    found.write_config({})
    linked(found.folder / claim.file, secret)
    with pytest.raises(UsageError, match="is a symlink"), found.lock(claim):
        pass
    assert secret.read_text() == SECRET
