from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from retrial.errors import PatchError, TreeError
from retrial.patches import git
from retrial.patches.apply import patched
from retrial.patches.parser import parse
from retrial.patches.policy import select
from retrial.patches.workspace import FILE_BYTES, MAX_BYTES, Folder, open_workspace, signatures
from retrial.protocols import Workspace
from retrial.system import files as system_files

BASE = {
    "add.py": b"def add(a, b):\n    raise NotImplementedError\n",
    "dos.txt": b"one\r\ntwo\r\n",
    "sub/deep.py": b"x = 1\n",
    "build/kept.txt": b"kept\n",
}


class Files:
    digest = "x"

    def __init__(self, files: Mapping[str, bytes], modes: Mapping[str, str] | None = None) -> None:
        self._files, self._modes = files, modes or {}

    def files(self) -> Mapping[str, bytes]:
        return self._files

    def modes(self) -> Mapping[str, str]:
        return self._modes

    def some(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        return {path: self._files[path] for path in paths if path in self._files}


LARGE = {f"pkg{number % 7}/sub/module{number}.py": b"x = %06d\n" % number for number in range(600)}
"""Enough files that those as they were laid out are not read again."""


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Folder]:
    with open_workspace(Files(BASE), tmp_path) as workspace:
        yield workspace


def shell(folder: Path, script: str) -> str:
    """What an agent may do, with a home of its own."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder.parent)}
    done = subprocess.run(["sh", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def result(workspace: Workspace) -> dict[str, bytes]:
    """The base with the workspace's diff: what a check will see."""
    return patched(BASE, select(workspace.diff(), lambda change: True).patch).files


def test_an_untouched_workspace_has_no_diff(work: Folder) -> None:
    assert work.diff() == ""


def test_the_agent_finds_one_clean_commit_and_nothing_else(work: Folder) -> None:
    assert (
        shell(
            work.root, "git status --porcelain; git remote; git tag; git stash list; ls .git/hooks 2>/dev/null || true"
        )
        == ""
    )
    assert shell(work.root, "git rev-list --all --count; git branch --show-current").split() == ["1", "main"]
    kinds = shell(work.root, "git cat-file --batch-all-objects --batch-check='%(objecttype)'").split()
    assert sorted(kinds) == ["blob"] * 4 + ["commit"] + ["tree"] * 3


def test_the_commit_is_the_same_every_time(work: Folder, tmp_path: Path) -> None:
    with open_workspace(Files(BASE), tmp_path) as other:
        assert shell(other.root, "git rev-parse HEAD") == shell(work.root, "git rev-parse HEAD")


def test_changed_new_and_deleted_files_are_in_the_diff(work: Folder) -> None:
    (work.root / "add.py").write_bytes(b"def add(a, b):\n    return a + b  # caf\xe9\n")
    (work.root / "new").mkdir()
    (work.root / "new" / "é x.txt").write_bytes(b"no newline")
    (work.root / "dos.txt").write_bytes(b"one\r\nthree\r\n")
    (work.root / "blob").write_bytes(bytes(range(256)))
    (work.root / "sub" / "deep.py").unlink()
    assert result(work) == {
        "add.py": b"def add(a, b):\n    return a + b  # caf\xe9\n",
        "new/é x.txt": b"no newline",
        "dos.txt": b"one\r\nthree\r\n",
        "blob": bytes(range(256)),
        "build/kept.txt": b"kept\n",
    }


def test_an_executable_bit_is_in_the_diff(work: Folder) -> None:
    (work.root / "add.py").chmod(0o755)
    assert "old mode 100644\nnew mode 100755\n" in work.diff()
    assert patched(BASE, work.diff()).executable == {"add.py"}


def test_a_symlink_is_in_the_diff_as_a_symlink(work: Folder) -> None:
    (work.root / "link").symlink_to("/etc/passwd")
    (work.root / "folder").symlink_to("/etc")
    (work.root / "add.py").unlink()
    (work.root / "add.py").symlink_to("dos.txt")
    assert "root:" not in work.diff()
    assert set(select(work.diff(), lambda change: True).dropped) == {"link", "folder", "add.py"}


HOSTILE: dict[str, str] = {
    "nothing": "true",
    "it committed": "git add -A; git commit -qm done; git tag v1",
    "it has no repository": "rm -rf .git",
    "its repository is a file": "rm -rf .git; echo 'gitdir: /' >.git",
    "its repository is a symlink": "mv .git ../stolen; ln -s ../stolen .git",
    "its index is broken": "echo broken >.git/index; echo broken >.git/HEAD",
    "it set a monitor": 'git config core.fsmonitor "touch $HOME/mark"; git config core.worktree /',
    "it set hooks": "mkdir hooks; printf 'touch $HOME/mark' >hooks/pre-commit; chmod +x hooks/*; mv hooks .git/",
    "it has settings": "printf '[diff]\\n external = touch $HOME/mark\\n noprefix = true\\n' >$HOME/.gitconfig",
    "it hides by info": "mkdir -p .git/info; echo '*' >.git/info/exclude; echo '* -diff' >.git/info/attributes",
}  # fmt: skip


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE.keys())
def test_whatever_the_agent_does_to_its_repository_the_diff_is_the_same(
    work: Folder, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(work.root.parent))
    (work.root / "add.py").write_bytes(b"new\n")
    (work.root / "other.py").write_bytes(b"other\n")
    expected = work.diff()
    assert expected.count("diff --git a/") == 2
    shell(work.root, "git config user.name x; git config user.email x@y; " + script)
    assert work.diff() == expected
    assert not (work.root.parent / "mark").exists()


def test_attributes_and_filters_in_the_tree_change_nothing(work: Folder) -> None:
    mark = work.root.parent / "mark"
    shell(work.root, f'git config filter.evil.clean "touch {mark}"; git config diff.evil.textconv "touch {mark}"')
    attributes = (
        "* -diff text eol=crlf ident filter=evil diff=evil working-tree-encoding=UTF-16\n[attr]x -diff\n*.py binary x\n"
    )
    (work.root / ".gitattributes").write_text(attributes)
    (work.root / "add.py").write_bytes(b"$Id$\r\nnew\n")
    assert result(work) == {**BASE, ".gitattributes": attributes.encode(), "add.py": b"$Id$\r\nnew\n"}
    assert "\n+new\n" in work.diff()
    assert not mark.exists()


@pytest.mark.parametrize("commit", ["true", "git add -A; git -c user.name=x -c user.email=x@y commit -qm x"])
def test_files_of_a_nested_repository_are_plain_files(work: Folder, commit: str) -> None:
    shell(work.root, f"mkdir nested; cd nested; git init -q; echo 1 >file.py; {commit}; mkdir .GIT; echo 2 >.GIT/x")
    assert result(work) == {**BASE, "nested/file.py": b"1\n"}


def test_caches_are_not_edits_but_files_of_the_base_always_count(tmp_path: Path) -> None:
    base = {**BASE, "node_modules/kept.txt": b"kept\n", "sub/old.pyc": b"old"}
    with open_workspace(Files(base), tmp_path) as work:
        shell(work.root, "mkdir -p sub/__pycache__ node_modules/debug; touch sub/__pycache__/x sub/y.pyc")
        shell(work.root, "touch node_modules/new node_modules/debug/z; echo >node_modules/kept.txt; echo >sub/old.pyc")
        after = patched(base, work.diff()).files
        assert after == {**base, "node_modules/kept.txt": b"\n", "sub/old.pyc": b"\n"}


def test_the_bases_gitignore_is_honoured_and_the_agents_is_not(tmp_path: Path) -> None:
    base = {**BASE, ".gitignore": b"/out/\n*.log\n", "sub/.gitignore": b"!keep.log\n", "tracked.log": b"1\n"}
    with open_workspace(Files(base), tmp_path) as work:
        (work.root / ".gitignore").write_bytes(b"*\n")
        shell(work.root, "mkdir out; touch out/x y.log sub/keep.log z.py; echo 2 >tracked.log")
        selection = select(work.diff(), lambda change: True)
        after = patched(base, selection.patch).files
        assert set(after) - set(base) == {"sub/keep.log", "z.py"}
        assert after["tracked.log"] == b"2\n"


@pytest.mark.parametrize("name", [":!x", ":(glob)x", ":(attr:y)x", ":/x", ":", "./x", "-x", "*", "x\\", '"x"'])
def test_where_the_base_has_a_gitignore_a_new_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    with open_workspace(Files({".gitignore": b"*.log\n"}), tmp_path) as work:
        work.write(name.removeprefix("./"), b"1\n")
        work.write(f"{name.removeprefix('./')}.log", b"1\n")
        assert [change.name for change in parse(work.diff())] == [name.removeprefix("./")]


def test_should_there_not_be_room_for_all_edits_the_largest_new_files_are_left_out(tmp_path: Path) -> None:
    with open_workspace(Files({"z.py": b"old\n", ".gitignore": b"*.o\n"}), tmp_path) as work:
        for number in range(200):
            # They take no room where they lie, which is how an agent could make us read any amount.
            for name in (f"huge{number:03}", f"ignored{number}.o"):
                (work.root / name).touch()
                os.truncate(work.root / name, 9_000_000)
        (work.root / "new.py").write_bytes(b"1\n")
        (work.root / "z.py").write_bytes(b"new\n" * 1_000)
        assert {change.name for change in parse(work.diff())} == {"z.py", "new.py", "huge000", "huge001"}
        assert len(work.omitted) == 198


def test_a_great_many_new_files_are_no_edit(tmp_path: Path) -> None:
    with open_workspace(Files({"z.py": b"old\n"}), tmp_path) as work:
        for number in range(MAX_BYTES // FILE_BYTES + 10):
            (work.root / f"new{number}").touch()
        (work.root / "z.py").write_bytes(b"new\n")
        assert "+new" in work.diff()
        assert len(work.omitted) >= 10


def test_an_agent_that_changes_everything_all_the_time_is_read_all_the_same(work: Folder) -> None:
    changes = """
import os
os.mkdir("folder")
while True:
    for name in map(str, range(20)):
        os.symlink("nowhere", "new")
        os.replace("new", name)
        open("new", "w").close()
        os.replace("new", name)
    os.chmod("folder", 0)
    os.rmdir("folder")
    os.mkdir("folder")
"""
    with subprocess.Popen([sys.executable, "-c", changes], cwd=work.root) as agent:
        try:
            for _ in range(100):
                assert "b/add.py" not in work.diff()
        finally:
            agent.kill()


def test_what_no_patch_can_hold_is_left_out_and_listed(work: Folder) -> None:
    os.mkfifo(work.root / "pipe")
    (work.root / "new\nline").write_bytes(b"x")
    (work.root / "add.py").write_bytes(b"x" * 10_000_001)
    assert work.diff() == ""
    assert work.omitted == ("add.py", "new\nline", "pipe")


def test_a_workspace_that_is_gone_is_a_deletion_of_all(work: Folder) -> None:
    work.root.rename(work.root.parent / "moved")
    assert result(work) == {}
    work.root.symlink_to("/etc")
    assert result(work) == {}


def test_files_are_read_and_written(work: Folder) -> None:
    (work.root / "add.py").chmod(0o755)
    work.write("add.py", b"new\n")
    work.write("some/new/file.py", b"x\n")
    assert work.read("add.py") == b"new\n"
    assert work.read("some/new/file.py") == b"x\n"
    assert work.read("missing.py") is work.read("sub") is work.read("add.py/x") is None
    assert os.access(work.root / "add.py", os.X_OK)
    assert set(result(work)) == {*BASE, "some/new/file.py"}


@pytest.mark.parametrize(
    "path", ["../x", "/tmp/x", ".git/hooks/pre-commit", "sub/.GIT/x", "", ".", "link/x", "sub", "add.py/x", "x" * 300]
)
def test_a_path_outside_or_through_a_symlink_is_refused(work: Folder, path: str) -> None:
    outside = work.root.parent / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"secret")
    (work.root / "link").symlink_to(outside)
    with pytest.raises(PatchError):
        work.write(path, b"pwned")
    assert work.read(path) is None
    assert (outside / "x").read_bytes() == b"secret"


def test_a_symlink_is_replaced_not_followed(work: Folder) -> None:
    outside = work.root.parent / "outside.txt"
    outside.write_bytes(b"secret")
    (work.root / "add.py").unlink()
    (work.root / "add.py").symlink_to(outside)
    assert work.read("add.py") is None
    work.write("add.py", b"new\n")
    assert outside.read_bytes() == b"secret"
    assert result(work) == {**BASE, "add.py": b"new\n"}


def test_files_and_folders_that_may_not_be_read_are_read(work: Folder) -> None:
    (work.root / "sub" / "deep.py").write_bytes(b"new\n")
    (work.root / "sub" / "deep.py").chmod(0)
    (work.root / "sub").chmod(0)
    assert result(work) == {**BASE, "sub/deep.py": b"new\n"}


def make_read_only(root: Path) -> None:
    (root / "sub" / "more").mkdir()
    (root / "sub" / "more" / "x").write_bytes(b"x")
    (root / "sub" / "more").chmod(0)
    (root / "sub").chmod(0o500)
    root.chmod(0o500)


def remove_all(root: Path) -> None:
    shell(root, "rm -rf ../work")


@pytest.mark.parametrize("what", [make_read_only, remove_all])
def test_nothing_is_left_behind(tmp_path: Path, what: Callable[[Path], None]) -> None:
    with open_workspace(Files(BASE), tmp_path) as work:
        what(work.root)
    assert os.listdir(tmp_path) == []


def test_a_failing_attempt_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), open_workspace(Files(BASE), tmp_path):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []


def test_a_tree_that_cannot_be_laid_out_is_told(tmp_path: Path) -> None:
    with pytest.raises(TreeError, match="leaves the tree"), open_workspace(Files({"../x": b""}), tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_an_empty_tree_is_a_workspace_too(tmp_path: Path) -> None:
    with open_workspace(Files({}), tmp_path) as work:
        work.write("x.py", b"1\n")
        assert patched({}, work.diff()).files == {"x.py": b"1\n"}


# Modes and links of the base


MODES = {"add.py": git.EXECUTABLE, "sub/link": git.SYMLINK}
LINKED = {**BASE, "sub/link": b"../dos.txt"}


def test_modes_and_links_of_the_base_are_laid_out_and_are_no_edits(tmp_path: Path) -> None:
    with open_workspace(Files(LINKED, MODES), tmp_path) as work:
        assert os.readlink(work.root / "sub" / "link") == "../dos.txt"
        assert os.access(work.root / "add.py", os.X_OK)
        assert work.diff() == shell(work.root, "git status --porcelain; git diff HEAD") == ""


def test_a_mode_or_link_that_changed_is_in_the_diff(tmp_path: Path) -> None:
    with open_workspace(Files(LINKED, MODES), tmp_path) as work:
        shell(work.root, "chmod -x add.py; ln -sfn new sub/link")
        diff = work.diff()
        assert "old mode 100755\nnew mode 100644\n" in diff
        assert "120000\n--- a/sub/link\n+++ b/sub/link\n" in diff
        assert "-../dos.txt\n" in diff and "+new\n" in diff
        shell(work.root, "chmod +x add.py; rm sub/link; printf ../dos.txt >sub/link")
        assert "deleted file mode 120000" in work.diff() and "new file mode 100644" in work.diff()


def test_a_file_of_the_base_that_no_patch_can_hold_any_more_keeps_its_mode(tmp_path: Path) -> None:
    with open_workspace(Files(LINKED, MODES), tmp_path) as work:
        (work.root / "add.py").write_bytes(b"x" * 10_000_001)
        assert work.diff() == "" and work.omitted == ("add.py",)


def test_a_link_named_gitignore_hides_nothing(tmp_path: Path) -> None:
    base, modes = {".gitignore": b"rules"}, {".gitignore": git.SYMLINK}
    with open_workspace(Files(base, modes), tmp_path) as work:
        shell(work.root, "echo rules >rules")
        assert "b/rules" in work.diff()


@pytest.mark.parametrize("files", [{"x": b"", "x/y": b""}, {"x" * 300: b""}, {"a/.git/x": b""}])
def test_files_that_cannot_be_together_in_a_folder_are_told(tmp_path: Path, files: Mapping[str, bytes]) -> None:
    with pytest.raises(TreeError, match="cannot be laid out"), open_workspace(Files(files), tmp_path):
        pass
    assert os.listdir(tmp_path) == []


# Large trees


def test_a_large_tree_is_one_clean_commit_too(tmp_path: Path) -> None:
    base = {**LARGE, **BASE, "copy.py": LARGE["pkg0/sub/module0.py"], "large": bytes(range(256)) * 1000}
    with open_workspace(Files(base), tmp_path) as work, open_workspace(Files(base), tmp_path) as other:
        assert shell(work.root, "git status --porcelain; git fsck --strict --no-progress") == work.diff() == ""
        assert shell(work.root, "git rev-parse HEAD") == shell(other.root, "git rev-parse HEAD")
        shell(work.root, "git gc --quiet; git repack -adq; git reset -q --hard")
        assert shell(work.root, "git ls-files").splitlines() == sorted(base)
        assert work.diff() == ""


def test_every_edit_of_a_large_tree_is_seen_however_it_is_made(tmp_path: Path) -> None:
    with open_workspace(Files(LARGE), tmp_path) as work:
        paths = list(LARGE)
        for path in paths[:300]:
            # At once, of the same length, and as old as it was.
            edit_quietly(work.root / path)
        (work.root / paths[300]).chmod(0o755)
        (work.root / paths[301]).unlink()
        (work.root / paths[302]).unlink()
        (work.root / paths[302]).symlink_to("x")
        shutil.copystat(work.root / paths[303], work.root / paths[304])
        (work.root / paths[303]).replace(work.root / paths[304])
        (work.root / "new.py").write_bytes(b"1\n")
        changed = {*paths[:305], "new.py"}
        assert {change.name for change in parse(work.diff())} == changed
        assert work.diff() == work.diff()
        for path in paths[:305]:
            work.write(path, LARGE[path])
        # A link to which we write is a plain file again; an executable bit stays.
        assert {change.name for change in parse(work.diff())} == {paths[300], "new.py"}


def test_edits_in_the_very_moment_are_seen(tmp_path: Path) -> None:
    with open_workspace(Files(LARGE), tmp_path) as work:
        last = list(LARGE)[-50:]
        for path in last:
            edit_quietly(work.root / path)
        assert {change.name for change in parse(work.diff())} == set(last)


def test_a_file_that_is_not_older_than_the_index_has_no_signature(work: Folder) -> None:
    assert signatures(work.root, BASE).keys() <= BASE.keys()
    (work.root / "add.py").write_bytes(BASE["add.py"])
    (work.root / "dos.txt").chmod(0o600)
    assert not signatures(work.root, BASE).keys() & {"add.py", "dos.txt"}


def edit_quietly(path: Path) -> None:
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"y")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_files_of_a_large_tree_that_nobody_touched_are_not_read(tmp_path: Path) -> None:
    with open_workspace(Files(LARGE), tmp_path) as work:
        early = [work.root / path for path in list(LARGE)[:100]]
        before = [path.stat().st_atime_ns for path in early]
        work.write("new.py", b"1\n")
        assert work.diff()
        assert [path.stat().st_atime_ns for path in early] == before


def test_a_folder_of_a_large_tree_that_became_a_link_is_not_followed(tmp_path: Path) -> None:
    with open_workspace(Files(LARGE), tmp_path) as work:
        shell(work.root, "mv pkg1 ../elsewhere; ln -s ../elsewhere pkg1")
        changes = parse(work.diff())
        assert {change.name for change in changes} == {"pkg1", *(path for path in LARGE if path.startswith("pkg1/"))}


# Handed over to another user


NOBODY = 65534
as_root = pytest.mark.usefixtures("root")


@as_root
def test_everything_becomes_the_other_users_but_nothing_that_a_link_points_to(work: Folder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    (work.root / "link").symlink_to(outside)
    os.mkfifo(work.root / "pipe")
    (work.root / "sub").chmod(0)
    work.hand_over(NOBODY)
    everything = [work.root, *work.root.rglob("*")]
    assert len(everything) > len(BASE)
    assert {path.lstat().st_uid for path in everything} == {NOBODY}
    assert outside.stat().st_uid == 0


@as_root
def test_a_large_tree_that_was_handed_over_is_still_not_read_and_every_edit_is_seen(tmp_path: Path) -> None:
    with open_workspace(Files(LARGE), tmp_path) as work:
        work.hand_over(NOBODY)
        early = [work.root / path for path in list(LARGE)[:100]]
        before = [path.stat().st_atime_ns for path in early]
        assert work.diff() == ""
        assert [path.stat().st_atime_ns for path in early] == before
        edited = list(LARGE)[:50] + list(LARGE)[-50:]
        for path in edited:
            edit_quietly(work.root / path)
        assert {change.name for change in parse(work.diff())} == set(edited)


@as_root
def test_what_was_edited_before_it_is_handed_over_again_is_still_an_edit(tmp_path: Path) -> None:
    with open_workspace(Files(LARGE), tmp_path) as work:
        first, second, *_ = LARGE
        edit_quietly(work.root / first)
        work.hand_over(NOBODY)
        edit_quietly(work.root / second)
        work.write("ours.py", b"1\n")
        work.hand_over(NOBODY)
        assert {change.name for change in parse(work.diff())} == {first, second, "ours.py"}


def test_a_folder_that_is_swapped_for_a_link_while_it_is_read_shows_nothing_of_what_is_there(
    work: Folder, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "deep.py").write_bytes(b"gold\n")
    walk = work._walk

    def swapping() -> Iterator[tuple[str, os.DirEntry[str]]]:
        for path, entry in walk():
            if path == "sub/deep.py":
                (work.root / "sub").rename(work.root / "moved")
                (work.root / "sub").symlink_to(secret)
            yield path, entry

    work._walk = swapping  # type: ignore[method-assign]
    assert "gold" not in work.diff()


def test_folders_in_folders_too_deep_to_be_named_are_no_edit_and_can_be_removed(tmp_path: Path) -> None:
    with open_workspace(Files(BASE), tmp_path) as work:
        nest = "import os; [(os.mkdir('d'), os.chdir('d'), n > 1950 and open('long-name', 'w')) for n in range(2100)]"
        subprocess.run([sys.executable, "-c", nest], cwd=work.root, check=True)
        (work.root / "new.py").write_bytes(b"1\n")
        work.hand_over(os.getuid())
        assert {change.name for change in parse(work.diff())} == {"new.py"}
        assert len(work.omitted) > 10
    assert os.listdir(tmp_path) == []


def test_deep_folders_are_removed_with_few_file_descriptors(tmp_path: Path) -> None:
    nest = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(300)]"
    subprocess.run([sys.executable, "-c", nest], cwd=tmp_path, check=True)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, limits[1]))
    try:
        system_files.remove_all(tmp_path / "d")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert os.listdir(tmp_path) == []


def test_the_index_is_the_one_that_git_makes_of_the_commit(tmp_path: Path) -> None:
    odd = ("a.b", "a/b", "a0", "é/\udcff", "x" * 7, "y" * 8, f"{'z' * 200}/" * 21 + "long")
    files = {path: (git.REGULAR, path[:3].encode("utf-8", "replace")) for path in odd}
    files |= {"run": (git.EXECUTABLE, b"#!/bin/sh\n"), "link": (git.SYMLINK, b"run"), "empty": (git.REGULAR, b"")}
    git.init_repository(tmp_path / ".git", bare=False)
    git.commit(tmp_path / ".git", "main", files)
    git.write_index(tmp_path / ".git", files)

    def listed() -> bytes:
        return git.run("ls-files", "--stage", "-z", git_dir=tmp_path / ".git", cwd=tmp_path).stdout

    ours = listed()
    done = git.run("read-tree", "refs/heads/main", git_dir=tmp_path / ".git", cwd=tmp_path)
    assert done.returncode == 0, done.complaint
    assert ours == listed()
    assert ours.count(b"\0") == len(files)
