"""Repositories are cloned once, whatever happens on the way, and a workspace holds nothing of what came later."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retrial.errors import TreeError
from retrial.patches import git
from retrial.patches.clones import WHOLE, RepositoryTree
from retrial.patches.workspace import open_workspace
from retrial.system import paths
from tests.conftest import PROJECT

NAME = "owner/name"


class Origin:
    """A repository that stands for one on GitHub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", *arguments]
        return subprocess.run(command, cwd=self.folder, input=stdin, check=True, capture_output=True).stdout.decode()

    def commit(self, message: str = "More", **files: bytes) -> str:
        for name, content in files.items():
            (self.folder / name).write_bytes(content)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--message", message)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()


@pytest.fixture
def settings(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own git settings, which say where GitHub is."""
    path = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(path))
    return path


@pytest.fixture
def origin(settings: Path, tmp_path: Path) -> Origin:
    reach(settings, f"file://{tmp_path}/github/")
    return Origin(tmp_path / "github" / NAME)


def reach(settings: Path, address: str) -> None:
    settings.write_text(f'[url "{address}"]\n\tinsteadOf = https://github.com/\n[protocol "ext"]\n\tallow = always\n')


def tree(commit: str, repository: str = NAME) -> RepositoryTree:
    return RepositoryTree(repository=repository, commit=commit)


def clone() -> Path:
    return paths.cache() / "repositories" / f"{NAME}.git"


READ = """
import sys
from retrial.patches.clones import RepositoryTree
print(RepositoryTree(repository="owner/name", commit=sys.argv[1]).files())
"""


def reader(commit: str) -> subprocess.Popen[str]:
    """Another process that reads the tree."""
    return subprocess.Popen(
        [sys.executable, "-c", READ, commit],
        cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


# Cloned once


def test_a_clone_is_made_once_and_has_every_branch(origin: Origin, capsys: pytest.CaptureFixture[str]) -> None:
    first = origin.commit(file=b"one")
    origin.git("checkout", "--quiet", "-b", "side/branch")
    second = origin.commit(file=b"two")
    origin.git("tag", "v1")
    assert tree(first).files() == {"file": b"one"}
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "Cloning https://github.com/owner/name (once) …"
    assert re.fullmatch(r"Cloned owner/name: \d+ MB in \d+ s\.", said[1])
    shutil.rmtree(origin.folder)
    assert tree(second).files() == {"file": b"two"}
    assert capsys.readouterr().err == ""
    assert not list((clone() / "refs").glob("tags/*"))


def test_the_digest_needs_no_clone(settings: Path) -> None:
    assert tree("a" * 40).digest == tree("a" * 40).digest != tree("b" * 40).digest
    assert tree("a" * 40).digest != tree("a" * 40, "owner/other").digest
    assert not clone().exists()


def test_threads_share_one_clone(origin: Origin, capsys: pytest.CaptureFixture[str]) -> None:
    commits = [origin.commit(file=b"%d" % number) for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda commit: tree(commit).files(), commits))
    assert found == [{"file": b"%d" % number} for number in range(6)]
    said = capsys.readouterr().err
    assert said.count("Cloning") == 1 and "Waiting" not in said


def test_processes_share_one_clone(origin: Origin) -> None:
    commit = origin.commit(file=b"one")
    readers = [reader(commit), reader(commit)]
    outputs = [process.communicate(timeout=60) for process in readers]
    assert [stdout for stdout, _ in outputs] == ["{'file': b'one'}\n"] * 2
    assert "".join(stderr for _, stderr in outputs).count("Cloning") == 1


def test_who_waits_says_so_and_who_reads_does_not_wait(origin: Origin, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = origin.commit(file=b"one"), origin.commit(file=b"two")
    assert tree(first).files() == {"file": b"one"}
    third = origin.commit(file=b"three")
    with clone().with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tree(second).files() == {"file": b"two"}
        waiting = reader(third)
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "Waiting for another process that is cloning owner/name …\n"
    assert waiting.communicate(timeout=60) == ("{'file': b'three'}\n", "")


# Commits


def test_a_commit_newer_than_the_clone_or_on_no_branch_is_fetched(origin: Origin) -> None:
    first = origin.commit(file=b"one")
    origin.git("branch", "tmp_x")
    assert tree(first).files() == {"file": b"one"}
    newer = origin.commit(file=b"two")
    assert tree(newer).files() == {"file": b"two"}
    origin.git("checkout", "--quiet", "--detach")
    lost = origin.commit(file=b"three")
    origin.git("checkout", "--quiet", "main")
    assert tree(lost).files() == {"file": b"three"}
    assert (clone() / "refs" / "heads" / "tmp_x").exists()


def test_what_is_not_there_is_said(origin: Origin) -> None:
    commit = origin.commit(file=b"one")
    with pytest.raises(TreeError, match=r"^https://github.com/owner/none cannot be fetched: .*none.*\. Look whether"):
        tree(commit, "owner/none").files()
    with pytest.raises(TreeError, match=f"^https://github.com/owner/name at {'f' * 40} cannot be fetched: "):
        tree("f" * 40).files()
    with pytest.raises(TreeError, match="not a commit"):
        tree(origin.git("rev-parse", "HEAD^{tree}").strip()).files()


@pytest.mark.parametrize("name", ["name", "../../etc", "a/b/c", "https://x/y", "-x/y", "", "owner/na me"])
def test_a_name_that_is_none_is_refused(settings: Path, name: str) -> None:
    with pytest.raises(TreeError, match="owner/name"):
        tree("a" * 40, name).files()


@pytest.mark.parametrize("commit", ["", "main", "--all", "abc123", "A" * 40, "a" * 41])
def test_a_commit_that_is_none_is_refused(settings: Path, commit: str) -> None:
    with pytest.raises(TreeError, match="40 hexadecimal digits"):
        tree(commit).modes()


# Broken clones


def cut_off(folder: Path) -> None:
    """As a power cut leaves it: files of a git that was at work, and empty ones."""
    (folder / WHOLE).unlink()
    (folder / "HEAD").write_bytes(b"")
    (folder / "config").write_bytes(b"\0\0\0")
    (folder / "refs" / "heads" / "main").write_bytes(b"")
    for name in ("packed-refs.lock", "HEAD.lock", "refs/heads/main.lock", "objects/pack/tmp_pack_x"):
        (folder / name).write_bytes(b"torn")


def only_objects(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "objects":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def nothing_yet(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize("damage", [cut_off, only_objects, nothing_yet])
def test_a_clone_that_is_not_whole_is_repaired(origin: Origin, damage: Callable[[Path], None]) -> None:
    first = origin.commit(file=b"one")
    origin.git("branch", "tmp_x")
    assert tree(first).files()
    damage(clone())
    second = origin.commit(file=b"two")
    assert tree(second).files() == {"file": b"two"}
    assert not [path for path in clone().rglob("*") if path.suffix == ".lock" or path.name.startswith("tmp_pack")]
    branches = subprocess.run(["git", "branch", "--list"], cwd=clone(), capture_output=True, text=True, check=True)
    assert branches.stdout.split() == ["*", "main", "tmp_x"]


def test_what_was_fetched_before_stays(origin: Origin, settings: Path) -> None:
    first = origin.commit(file=b"one")
    origin.git("checkout", "--quiet", "--detach")
    lost = origin.commit(file=b"two")
    origin.git("checkout", "--quiet", "main")
    assert tree(first).files() and tree(lost).files()
    cut_off(clone())
    later = origin.commit(file=b"three")
    assert tree(later).files()
    shutil.rmtree(origin.folder)
    assert tree(lost).some(["file"]) == {"file": b"two"}


def through(settings: Path, tmp_path: Path, script: str) -> None:
    """A connection that does what the script says; `$serve` in it is the real server."""
    path = tmp_path / "connection"
    path.write_text(f'serve="git-upload-pack {tmp_path}/github/$2"\n{script}\n')
    reach(settings, f"ext::sh {path} %S ")


def test_a_connection_that_breaks_is_told_and_the_next_call_goes_on(
    origin: Origin, settings: Path, tmp_path: Path
) -> None:
    commit = origin.commit(file=os.urandom(100_000))
    through(settings, tmp_path, "$serve | dd bs=1 count=50000; kill $PPID")
    with pytest.raises(TreeError, match="cannot be fetched"):
        tree(commit).files()
    assert not (clone() / WHOLE).exists()
    through(settings, tmp_path, "$serve")
    assert len(tree(commit).files()["file"]) == 100_000


def test_a_process_that_is_killed_in_the_middle_leaves_nothing_that_hurts(
    origin: Origin, settings: Path, tmp_path: Path
) -> None:
    commit = origin.commit(file=b"one")
    started, ended = tmp_path / "started", tmp_path / "ended"
    os.mkfifo(started)
    os.mkfifo(ended)
    through(settings, tmp_path, f"echo >{started}; cat {ended}")
    process = reader(commit)
    started.read_bytes()
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    # The git that it started is still at work there, and keeps others out until it ends.
    with clone().with_suffix(".lock").open("w") as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    reach(settings, f"file://{tmp_path}/github/")
    ended.write_bytes(b"")
    process.communicate()
    assert tree(commit).files() == {"file": b"one"}


def test_a_clone_that_lost_objects_names_the_folder_to_remove(origin: Origin) -> None:
    first, second = origin.commit(file=b"one"), origin.commit(file=b"two")
    assert tree(first).files()
    blob = origin.git("rev-parse", f"{second}:file").strip()
    (clone() / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(TreeError, match=f"{re.escape(str(clone()))}.* {blob} is missing.*Remove it"):
        tree(second).files()


# Trees


ODD = {
    "plain.py": b"x = 1\n",
    "tool.sh": b"#!/bin/sh\n",
    "link": b"plain.py",
    "dangling": b"/nowhere/at all",
    "folder": b"deep",
    "deep/é ü.txt": b"\xff\xfe\n",
    "deep/mixed.txt": b"dos\r\nunix\n",
    "unix.txt": b"unix\n",
    "dos.txt": b"dos\r\n",
    "image.bin": b"\0\r\n\r\n",
    "tracked.log": b"kept\n",
    "empty": b"",
    ".gitignore": b"*.log\n",
    ".gitattributes": b"*.txt text eol=crlf\n*.py text=auto ident\n*.bin filter=lfs -diff\n",
    ".gitmodules": b'[submodule "sub"]\n\tpath = sub\n\turl = https://github.com/owner/sub\n',
}
MODES = {"tool.sh": git.EXECUTABLE, "link": git.SYMLINK, "dangling": git.SYMLINK, "folder": git.SYMLINK}


@pytest.fixture
def odd(origin: Origin) -> str:
    """A commit of everything that is not a plain text file, byte by byte as in ODD."""
    for path, content in {**ODD, "new\nline": b""}.items():
        blob = origin.git("hash-object", "-w", "--stdin", "--no-filters", stdin=content).strip()
        mode = MODES.get(path, git.REGULAR)
        origin.git("update-index", "--add", "-z", "--index-info", stdin=f"{mode} {blob}\t{path}\0".encode())
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},sub")
    origin.git("commit", "--quiet", "--message", "odd")
    return origin.head()


def test_a_tree_has_the_bytes_and_modes_of_the_commit(odd: str) -> None:
    assert tree(odd).files() == ODD
    assert tree(odd).modes() == MODES


def test_some_files_are_read_without_the_others(odd: str) -> None:
    wanted = ["link", "deep/é ü.txt", "deep", "sub", "none", "../x", "new\nline"]
    assert tree(odd).some(wanted) == {"link": b"plain.py", "deep/é ü.txt": b"\xff\xfe\n"}
    assert tree(odd).some([]) == {}


def agent(folder: Path, script: str) -> str:
    done = subprocess.run(["sh", "-euc", script], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_workspace_of_such_a_tree_is_one_clean_commit(odd: str, tmp_path: Path) -> None:
    with open_workspace(tree(odd), tmp_path) as work:
        assert work.diff() == "" and work.omitted == ()
        assert agent(work.root, "git status --porcelain; git diff HEAD; git fsck --strict --no-progress 2>&1") == ""
        agent(work.root, "find . -name .git -prune -o -type f -exec touch {} +")
        assert agent(work.root, "git status --porcelain; git log --format=%s; git fsck") == "Base\n"
        assert work.diff() == ""
        assert os.readlink(work.root / "link") == "plain.py"
        assert (work.root / "dos.txt").read_bytes() == b"dos\r\n"
        assert os.access(work.root / "tool.sh", os.X_OK) and not os.access(work.root / "plain.py", os.X_OK)


CHANGES = """
chmod -x tool.sh; chmod +x plain.py; ln -sfn unix.txt link; rm folder; echo file >folder; rm unix.txt; ln -s x unix.txt
printf 'dos\\r\\nmore\\r\\n' >dos.txt; rm dangling deep/mixed.txt; echo new >'deep/ñ.txt'; echo 2 >>tracked.log
"""


def test_changed_modes_links_and_files_are_a_patch_that_git_applies(odd: str, origin: Origin, tmp_path: Path) -> None:
    with open_workspace(tree(odd), tmp_path) as work:
        agent(work.root, CHANGES)
        patch = work.diff().encode("utf-8", "surrogateescape")
        wanted = agent(work.root, "git add --all; git write-tree")
    origin.git("rm", "--cached", "--quiet", "sub", "new\nline")
    origin.git("apply", "--cached", "-", stdin=patch)
    assert origin.git("write-tree") == wanted


def test_a_tree_in_which_a_link_and_a_folder_have_one_name_is_refused(origin: Origin, tmp_path: Path) -> None:
    inside = origin.git("hash-object", "-w", "--stdin", stdin=b"pwned").strip()
    link = origin.git("hash-object", "-w", "--stdin", stdin=str(tmp_path).encode()).strip()
    folder = origin.git("mktree", stdin=f"100644 blob {inside}\tfile\n".encode()).strip()
    lines = [("120000", "x", link), ("40000", "x", folder)]
    raw = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(object_id) for mode, name, object_id in lines)
    root = origin.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw).strip()
    commit = origin.git("commit-tree", root, "-m", "evil").strip()
    origin.git("update-ref", "refs/heads/evil", commit)
    with pytest.raises(TreeError, match="'x' cannot be made"), open_workspace(tree(commit), tmp_path / "cache"):
        pass
    assert not (tmp_path / "file").exists()


# Nothing of what came later


SECRETS = (
    "gold-line",
    "hidden-test",
    "later-line",
    "side-line",
    "tag-message",
    "note-line",
    "secret_name.py",
    "before-line",
)


@pytest.fixture
def secretive(origin: Origin) -> str:
    """A repository with a past and a future; the base commit lies in between."""
    origin.commit(old=b"before-line\n")
    (origin.folder / "old").unlink()
    base = origin.commit("Base of the task", module=b"line\n" * 50, test_module=b"old test\n" * 50)
    origin.git("checkout", "--quiet", "-b", "side", base)
    origin.commit(module=b"line\n" * 50 + b"side-line\n")
    origin.git("checkout", "--quiet", "main")
    origin.commit("Fix, gold-line", module=b"gold-line\n" + b"line\n" * 50, test_module=b"hidden-test\n")
    origin.git("tag", "--annotate", "v1", "--message", "tag-message")
    (origin.folder / "secret_name.py").write_bytes(b"later-line\n")
    origin.commit()
    origin.git("notes", "add", "--message", "note-line")
    return base


def texts(root: Path) -> list[bytes]:
    """Everything below a folder that can be read in any way: names, files, each compressed stream in them, objects."""
    found = [os.fsencode(path) for path in root.rglob("*")]
    for path in root.rglob("*"):
        if path.is_file():
            raw = path.read_bytes()
            found.append(raw)
            found += [_decompressed(raw[match.start() :]) for match in re.finditer(b"x", raw)]
    for folder in root.rglob("*"):
        if folder.is_dir() and (folder / "objects").is_dir():
            command = ["git", "--git-dir", str(folder), "cat-file", "--batch-all-objects", "--batch"]
            found.append(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def _decompressed(raw: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(raw)
    except zlib.error:
        return b""


def secrets(root: Path) -> set[str]:
    return {secret for secret in SECRETS for text in texts(root) if secret.encode() in text}


def test_nothing_of_gold_hidden_tests_or_later_commits_can_be_read_in_a_workspace(
    secretive: str, origin: Origin, tmp_path: Path
) -> None:
    # The search finds what there is to find where it is: in the origin, and in the clone but for tags and notes.
    assert secrets(origin.folder) == set(SECRETS)
    with open_workspace(tree(secretive), tmp_path / "cache") as work:
        assert secrets(clone()) == set(SECRETS) - {"tag-message", "note-line"}
        assert secrets(work.root.parent) == set()
        here = texts(work.root.parent)
        assert any(b"old test" in text for text in here)
        # Nor a way to where it is: no other store of objects, no address, no original commit.
        for way in (str(clone()), str(origin.folder), "github.com", secretive):
            assert not [text for text in here if way.encode() in text]
        assert not list(work.root.rglob("alternates"))
        refs = agent(work.root, "git rev-list --all --count; git for-each-ref --format='%(refname)'; git remote")
        assert refs.split() == ["1", "refs/heads/main"]
        assert agent(work.root, "git reflog; git stash list; git notes list 2>/dev/null; git fsck --lost-found") == ""
