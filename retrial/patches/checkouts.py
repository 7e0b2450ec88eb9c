"""Public repositories, each once in the cache, at one commit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from retrial.errors import UsageError
from retrial.patches.git import Result
from retrial.patches.names import encode
from retrial.system import paths, scratch
from retrial.system.console import say


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryCommit:
    url: str
    commit: str

    @property
    def name(self) -> str:
        return "-".join(self.url.removesuffix(".git").rstrip("/").rsplit("/", 2)[-2:]) + f"-{self.commit[:12]}"


def checkout(source: RepositoryCommit) -> Path:
    """A folder with the files of that commit.

    Raises: UsageError when it cannot be had.
    """
    folder = paths.cache() / "clones" / source.name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    say(f"Cloning {source.url} at {source.commit[:12]} (once) …")
    # Under its own name only when it is whole, so that one that was cut off is never taken for it.
    with scratch.folder(where=folder.parent) as temporary:
        _fetch(source, temporary)
        try:
            temporary.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    return folder


def _fetch(source: RepositoryCommit, folder: Path) -> None:
    for command in (
        ("init", "--quiet"),
        ("fetch", "--quiet", "--depth=1", source.url, source.commit),
        ("checkout", "--quiet", "--detach", source.commit),
    ):
        done = users_git(*command, folder=folder)
        if done.returncode:
            raise UsageError(
                f"{source.url} cannot be cloned: {done.complaint}. Clone it by hand and give the folder with -b."
            )


def users_git(*arguments: str, folder: Path, held: Collection[int] = ()) -> Result:
    """Git with the user's own settings, which may know a proxy or a mirror. It asks nobody for a password.

    `held` are descriptors that stay open until it ends, even when we end before.

    Raises: UsageError when there is no git, or no GitPython.
    """
    try:
        from git import Git
    except ImportError as error:
        raise UsageError(f"Clones need git and the package gitpython: {error}.") from error
    status, stdout, stderr = Git(folder).execute(
        ["git", *arguments],
        env={"GIT_TERMINAL_PROMPT": "0"},
        with_extended_output=True,
        with_exceptions=False,
        pass_fds=held,
        # Ctrl-C is for us: what has begun may finish.
        start_new_session=True,
    )
    return Result(status, encode(stdout), encode(stderr))
