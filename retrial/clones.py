"""Public repositories, each once in the cache, at one commit."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from retrial import paths
from retrial.errors import UsageError
from retrial.progress import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    url: str
    commit: str

    @property
    def name(self) -> str:
        return "-".join(self.url.removesuffix(".git").rstrip("/").rsplit("/", 2)[-2:]) + f"-{self.commit[:12]}"


def checkout(source: Source) -> Path:
    """A folder with the files of that commit.

    Raises: UsageError when it cannot be had.
    """
    folder = paths.cache() / "clones" / source.name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    say(f"Cloning {source.url} at {source.commit[:12]} (once) …")
    # Under its own name only when it is whole, so that one that was cut off is never taken for it.
    with tempfile.TemporaryDirectory(prefix=".clone-", dir=folder.parent) as temporary:
        _fetch(source, Path(temporary))
        try:
            Path(temporary).rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
        else:
            # TemporaryDirectory wants something to remove.
            Path(temporary).mkdir()
    return folder


def _fetch(source: Source, folder: Path) -> None:
    # With the user's own settings, which may know a proxy or a mirror.
    try:
        from git import GitCommandError, Repo
    except ImportError as error:
        raise UsageError(f"Clones need git and the package gitpython: {error}.") from error
    with Repo.init(folder) as repository:
        try:
            repository.git.fetch("--quiet", "--depth=1", source.url, source.commit)
            repository.git.checkout("--quiet", "--detach", source.commit)
        except GitCommandError as error:
            said = str(error.stderr).strip().removeprefix("stderr:").strip(" '\n").splitlines()
            raise UsageError(
                f"{source.url} cannot be cloned: {said[-1] if said else error}. "
                "Clone it by hand and give the folder with -b."
            ) from error
