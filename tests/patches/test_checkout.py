"""Public sets are cloned once, at one commit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from retrial.benchmarks.exercism import ALIASES, SOURCES
from retrial.errors import UsageError
from retrial.patches import clones
from retrial.patches.clones import RepositoryCommit


@pytest.fixture
def source(tmp_path: Path) -> RepositoryCommit:
    """A repository that has gone on since the commit."""
    folder = tmp_path / "origin" / "set"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    commits = []
    for text in ("one", "two"):
        (folder / "file.txt").write_text(text)
        git(folder, "add", ".")
        git(folder, "-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "--quiet", "-m", text)
        commits.append(git(folder, "rev-parse", "HEAD"))
    return RepositoryCommit(url=str(folder), commit=commits[0])


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.usefixtures("home")
def test_a_clone_is_of_the_commit_and_asks_nobody_again(source: RepositoryCommit) -> None:
    folder = clones.checkout(source)
    assert (folder / "file.txt").read_text() == "one"
    shutil.rmtree(source.url)
    assert clones.checkout(source) == folder


@pytest.mark.usefixtures("home")
def test_what_cannot_be_cloned_is_said_and_nothing_is_left(source: RepositoryCommit, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be cloned"):
        clones.checkout(RepositoryCommit(url=source.url, commit="f" * 40))
    with pytest.raises(UsageError, match="Clone it by hand"):
        clones.checkout(RepositoryCommit(url=str(tmp_path / "nowhere"), commit=source.commit))
    assert [path for path in (tmp_path / "cache" / "clones").iterdir() if path.is_dir()] == []


def test_every_public_set_is_pinned() -> None:
    assert {len(source.commit) for source in SOURCES.values()} == {40}
    assert set(ALIASES.values()) <= set(SOURCES)
