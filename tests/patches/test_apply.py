from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from retrial.errors import PatchError, UsageError
from retrial.patches import git
from retrial.patches.apply import apply, diff, patched
from retrial.patches.parser import parse
from retrial.patches.policy import allowed_changes, select, select_anywhere, writable
from tests.support.odd_patches import BASE, DONE, PLAIN, STUB, after, everything, exercise, sample, section


def counted(patch: str) -> tuple[list[str], tuple[str, ...]]:
    selection = select(patch, allowed_changes(exercise(), BASE))
    return [change.name for change in parse(selection.patch)], selection.dropped


# What counts


def test_only_editable_files_and_new_files_beside_them_count() -> None:
    new = {**BASE, "add.py": DONE, "helper.py": b"1\n", "add_test.py": b"\n", "notes.txt": b"\n", "src/more.py": b"2\n"}
    odd = {
        "conftest.py": b"3\n",
        "my_test.py": b"4\n",
        "new.txt": b"5\n",
        "sub/helper.py": b"6\n",
        "src/sub/x.py": b"7\n",
    }
    kept, dropped = counted(diff(BASE, {**new, **odd}))
    assert kept == ["add.py", "helper.py", "src/more.py"]
    assert sorted(dropped) == sorted([*odd, "add_test.py", "notes.txt"])


def test_an_editable_file_may_be_deleted_others_may_not() -> None:
    assert counted(diff(BASE, {})) == (["add.py"], ("add_test.py", "notes.txt"))


@pytest.mark.parametrize(
    ("verb", "old", "new", "fine"),
    [
        ("rename", "add.py", "sum.py", True),
        ("rename", "add.py", "add_test.py", False),
        ("rename", "add_test.py", "sum.py", False),
        ("rename", "notes.txt", "add.py", False),
        ("copy", "notes.txt", "sum.py", True),
        ("copy", "add.py", "conftest.py", False),
        ("copy", ".meta/example.py", "sum.py", False),
        ("copy", "hidden.py", "add.py", False),
    ],
)
def test_both_names_of_a_rename_or_copy_must_count(verb: str, old: str, new: str, fine: bool) -> None:
    patch = section(old, new, "similarity index 100%", f"{verb} from {old}", f"{verb} to {new}")
    assert counted(patch) == (([new], ()) if fine else ([], (old, new)))


def test_writable_is_the_rule_for_one_path() -> None:
    paths = ("add.py", "src/deep.py", "helper.py", "add_test.py", "notes.txt", "conftest.py", "x/add.py")
    assert [writable(exercise(), path, BASE) for path in paths] == [True, True, True, False, False, False, False]


def test_a_patch_that_only_touches_what_does_not_count_is_empty() -> None:
    assert counted(diff(BASE, {**BASE, "add_test.py": b""})) == ([], ("add_test.py",))


# Where it is applied


def a_repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def test_a_folder_below_another_repository_is_really_patched(tmp_path: Path) -> None:
    below = a_repository(tmp_path) / "deep" / "er"
    below.mkdir(parents=True)
    (below / "add.py").write_bytes(STUB)
    apply(below, sample("ok_mode"))
    assert (below / "add.py").read_bytes() == DONE
    assert os.access(below / "add.py", os.X_OK)


def test_a_temporary_folder_below_another_repository_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(a_repository(tmp_path)))
    assert after(PLAIN) == {**BASE, "add.py": DONE}
    assert diff({"add.py": STUB}, {"add.py": DONE}).startswith("diff --git")


def test_the_folders_own_repository_and_settings_have_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = a_repository(tmp_path / "evil")
    mark = tmp_path / "mark"
    with (evil / ".git" / "config").open("a") as config:
        config.write(
            f'[core]\n fsmonitor = "touch {mark}"\n[filter "evil"]\n smudge = "touch {mark}"\n clean = "touch {mark}"\n'
        )
    (evil / ".gitattributes").write_text("*.py filter=evil eol=crlf ident\n")
    (evil / "add.py").write_bytes(STUB)
    monkeypatch.setenv("GIT_DIR", str(evil / ".git"))
    monkeypatch.setenv("HOME", str(evil))
    (evil / ".gitconfig").write_text("[apply]\n whitespace = error-all\n[core]\n autocrlf = true\n")
    apply(evil, PLAIN)
    assert (evil / "add.py").read_bytes() == DONE
    assert not mark.exists()


def test_attributes_of_the_tree_change_no_byte() -> None:
    files = {**BASE, ".gitattributes": b"* text eol=crlf working-tree-encoding=UTF-16\n"}
    touched = diff(files, {**files, "add.py": DONE, ".gitattributes": files[".gitattributes"] + b"*.py -diff\n"})
    assert after(touched, files)["add.py"] == DONE


def test_nothing_is_written_through_a_symlink(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "add.py").write_bytes(STUB)
    (inside / "add.py").symlink_to(outside / "add.py")
    (inside / "sub").symlink_to(outside)
    for name in ("add.py", "sub/add.py"):
        with pytest.raises(PatchError, match=name):
            apply(inside, PLAIN.replace("add.py", name))
    with pytest.raises(PatchError):
        apply(inside, diff({}, {"sub/new.py": b"x\n"}))
    assert (outside / "add.py").read_bytes() == STUB
    assert os.listdir(outside) == ["add.py"]


def test_apply_adds_deletes_and_makes_folders(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "x.py").write_bytes(b"1\n")
    apply(tmp_path, diff({"old/x.py": b"1\n"}, {"new/deep/y.py": b"2\n"}))
    assert (tmp_path / "new/deep/y.py").read_bytes() == b"2\n"
    assert os.listdir(tmp_path) == ["new"]
    apply(tmp_path, "")


# There and back


LINES = (b"a", b"", b"  b", b"--- a/x", b"+++ b/x", b"@@ -1 +1 @@", b"caf\xe9", b"c\r", b"\x0cd", b"diff --git a/x b/x")


def random_file(rng: random.Random) -> bytes:
    lines = [rng.choice(LINES) for _ in range(rng.randrange(30))]
    content = b"\n".join(lines) + rng.choice([b"", b"\n"])
    return content + b"\0\1\2" if rng.random() < 0.15 else content


def edited(rng: random.Random, files: Mapping[str, bytes]) -> dict[str, bytes]:
    result: dict[str, bytes] = {}
    for path, content in files.items():
        lines = content.split(b"\n")
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(lines) + 1)
            lines[at : at + rng.randrange(3)] = [b"new"] * rng.randrange(3)
        if rng.random() > 0.2:
            result[path] = b"\n".join(lines)
    return result


NAMES = (
    "a.py",
    "with space.py",
    "trailing ",
    "é/ü.txt",
    'quo"te\\.c',
    "a/b/c.rs",
    "b/a",
    "-- x",
    "\udce9.bin",
    "dev/null",
)


@pytest.mark.parametrize("seed", range(40))
def test_a_diff_applied_gives_back_exactly_the_new_files(seed: int) -> None:
    rng = random.Random(seed)
    old = {path: random_file(rng) for path in rng.sample(NAMES, 4)}
    new = edited(rng, old)
    for path in rng.sample(NAMES, 2):
        new.setdefault(path, random_file(rng))
    patch = diff(old, new)
    selection = select(patch, everything)
    assert selection.patch == patch or "trailing " in patch
    assert patched(old, selection.patch).files == new
    assert after("Some prose.\n\n" + patch.removesuffix("\n"), old) == new


# Git itself


def test_without_git_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="install"):
        git.run("--version", cwd=tmp_path)


RESERVED = ("tests/*", "conftest.py")


def anywhere(patch: str, *also: str) -> tuple[list[str], tuple[str, ...]]:
    selection = select_anywhere(patch, RESERVED, also)
    return [change.name for change in parse(selection.patch)], selection.dropped


def test_in_a_repository_all_but_reserved_files_count() -> None:
    patch = diff({}, {"src/a.py": b"1\n", "tests/test_a.py": b"2\n", "lib/conftest.py": b"3\n"})
    assert anywhere(patch) == (["src/a.py"], ("lib/conftest.py", "tests/test_a.py"))


def test_what_the_reference_changes_counts_whatever_it_is() -> None:
    patch = diff({}, {"src/a.py": b"1\n", "tests/test_a.py": b"2\n"})
    assert anywhere(patch, "tests/test_a.py") == (["src/a.py", "tests/test_a.py"], ())


def test_a_rename_out_of_the_tests_does_not_count() -> None:
    patch = "diff --git a/tests/a.py b/src/a.py\nsimilarity index 100%\nrename from tests/a.py\nrename to src/a.py\n"
    assert anywhere(patch) == ([], ("tests/a.py", "src/a.py"))


def test_blank_lines_that_were_stripped_from_the_end_of_a_patch_are_not_missed() -> None:
    patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,4 @@\n-1\n+2\n 3\n"
    assert anywhere(patch) == (["a.py"], ())


def test_a_repositorys_patch_that_git_cannot_read_is_not_repaired() -> None:
    patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n-1\n+2\n 3\nDone.\n"
    assert select(patch, lambda change: True).patch
    with pytest.raises(PatchError, match="corrupt patch"):
        anywhere(patch)
