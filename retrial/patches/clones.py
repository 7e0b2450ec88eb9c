"""Clones of public repositories in the cache, each made once: the tree of any commit, and checkouts of one commit."""

from __future__ import annotations

import functools
import re
import stat
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from retrial.errors import TreeError, UsageError
from retrial.patches import git
from retrial.patches.git import Result, decode, encode
from retrial.system.console import say
from retrial.system.files import scratch_folder
from retrial.system.locks import file_lock, release
from retrial.system.paths import cache
from retrial.types import fingerprint

WHOLE = "retrial-whole"
"""A file in a clone that has every branch; written last."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")

# Threads of this process wait here: what they wait for has been said already.
_threads: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryTree:
    """All files of one commit; submodules are left out, and so are names that no patch may have."""

    repository: str
    """`owner/name`."""
    commit: str

    @property
    def digest(self) -> str:
        return fingerprint(f"{self.repository}@{self.commit}")

    def files(self) -> Mapping[str, bytes]:
        return _files(cache(), self.repository, self.commit)

    def modes(self) -> Mapping[str, str]:
        entries = _entries(cache(), self.repository, self.commit)
        return {path: mode for path, (mode, _) in entries.items() if mode != git.REGULAR}

    def some(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        entries = _entries(cache(), self.repository, self.commit)
        wanted = {path: entries[path] for path in paths if path in entries}
        return _contents(_folder(cache(), self.repository), wanted)


@functools.lru_cache(maxsize=4)
def _files(root: Path, repository: str, commit: str) -> Mapping[str, bytes]:
    entries = _entries(root, repository, commit)
    return MappingProxyType(_contents(_folder(root, repository), entries))


@functools.lru_cache(maxsize=16)
def _entries(root: Path, repository: str, commit: str) -> Mapping[str, tuple[str, bytes]]:
    """Path → mode and object id."""
    folder = clone(root, repository, commit)
    found: dict[str, tuple[str, bytes]] = {}
    for entry in _read(folder, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")[:-1]:
        about, _, name = entry.partition(b"\t")
        mode, kind, object_id = about.split()
        path = decode(name)
        if kind == b"blob" and git.is_allowed(path):
            found[path] = _mode(int(mode, 8)), object_id
    return found


def _mode(mode: int) -> str:
    """Old commits have modes such as 100664, which git itself takes for the nearest of today's."""
    if stat.S_ISLNK(mode):
        return git.SYMLINK
    return git.EXECUTABLE if mode & 0o100 else git.REGULAR


def _contents(folder: Path, entries: Mapping[str, tuple[str, bytes]]) -> dict[str, bytes]:
    """All of them by one process."""
    wanted = b"".join(object_id + b"\n" for _, object_id in entries.values())
    output = _read(folder, "cat-file", "--batch", "--buffer", stdin=wanted) if wanted else b""
    found: dict[str, bytes] = {}
    start = 0
    for path in entries:
        head, _, size = output[start : output.index(b"\n", start)].rpartition(b" ")
        if size == b"missing":
            raise _broken(folder, f"the object {decode(head)} is missing")
        start = output.index(b"\n", start) + 1
        found[path] = output[start : start + int(size)]
        start += int(size) + 1
    return found


def _read(folder: Path, *command: str, stdin: bytes | None = None) -> bytes:
    done = git.run(*command, cwd=folder, git_dir=folder, stdin=stdin)
    if done.returncode:
        raise _broken(folder, done.complaint)
    return done.stdout


def _broken(folder: Path, why: str) -> TreeError:
    return TreeError(f"The clone '{folder}' cannot be read: {why}. Remove it, and it is cloned again.")


def clone(root: Path, repository: str, commit: str) -> Path:
    """A bare clone below `root` that has the commit; needs neither a lock nor the network once it is there.

    Raises: TreeError when it cannot be had.
    """
    folder = _folder(root, repository)
    if not _COMMIT.fullmatch(commit):
        raise TreeError(f"'{commit}' is no commit of {repository}: its 40 hexadecimal digits are needed.")
    if _has(folder, commit):
        return folder
    waiting = partial(say, f"Waiting for another process that is cloning {repository} …")
    with _threads[folder], file_lock(folder.with_suffix(".lock"), on_wait=waiting) as lock:
        try:
            if not (folder / WHOLE).exists():
                _fetch_all(folder, repository, lock)
            if not _has(folder, commit):
                # Newer than the clone, or on no branch any more. The ref keeps it from being cleaned away.
                _fetch(folder, repository, wanted=f"{commit}:refs/retrial/{commit}", lock=lock)
            if not _has(folder, commit):
                raise TreeError(f"{commit} in {repository} is not a commit: look for the right one in the task's row.")
        finally:
            # A helper that git left running may have it open too.
            release(lock)
    return folder


def _folder(root: Path, repository: str) -> Path:
    if not _NAME.fullmatch(repository):
        raise TreeError(f"'{repository}' is no repository on GitHub: a name such as 'owner/name' is needed.")
    return root / "repositories" / f"{repository}.git"


def _has(folder: Path, commit: str) -> bool:
    if not (folder / WHOLE).exists():
        return False
    return git.run("cat-file", "-e", f"{commit}^{{commit}}", cwd=folder, git_dir=folder).returncode == 0


def _fetch_all(folder: Path, repository: str, lock: int) -> None:
    """Clone, or go on with a clone that was cut off."""
    say(f"Cloning {_url(repository)} (once) …")
    started = time.monotonic()
    git.init_repository(folder)
    _fetch(folder, repository, "--prune", wanted="+refs/heads/*:refs/heads/*", lock=lock)
    (folder / WHOLE).touch()
    size = sum(path.stat().st_size for path in (folder / "objects").rglob("*.pack"))
    say(f"Cloned {repository}: {size / 1e6:.0f} MB in {time.monotonic() - started:.0f} s.")


def _fetch(folder: Path, repository: str, *options: str, wanted: str, lock: int) -> None:
    _clean(folder)
    # Git keeps the lock if we are killed, so that nobody cleans up below it. It may not tidy up in the background, and
    # a connection that has gone dead does not hold us for ever.
    settings = ("gc.auto=0", "maintenance.auto=false", "http.lowSpeedLimit=1", "http.lowSpeedTime=300")
    done = users_git(
        "--git-dir=.", *(part for setting in settings for part in ("-c", setting)),
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", *options, _url(repository), wanted,
        folder=folder, held=(lock,),
    )  # fmt: skip
    if done.returncode:
        what = f" at {wanted[:40]}" if _COMMIT.match(wanted) else ""
        raise TreeError(
            f"{_url(repository)}{what} cannot be fetched: {done.complaint}. "
            "Look whether it is there and can be reached; the same command tries again."
        )


def _clean(folder: Path) -> None:
    """Remove what a git that was killed left behind and what would stop the next one; whole objects stay."""
    for path in folder.rglob("*"):
        kind = path.relative_to(folder).parts[0]
        half = kind == "objects" and path.name.startswith("tmp_")
        if path.is_file() and (half or path.suffix == ".lock" or (kind == "refs" and not path.stat().st_size)):
            path.unlink()


def _url(repository: str) -> str:
    return f"https://github.com/{repository}"


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
    folder = cache() / "clones" / source.name
    if folder.is_dir():
        return folder
    with file_lock(folder.with_name(f"{folder.name}.lock")):
        if not folder.is_dir():
            say(f"Cloning {source.url} at {source.commit[:12]} (once) …")
            # Under its own name only when it is whole, so that one that was cut off is never taken for it.
            with scratch_folder(where=folder.parent) as temporary:
                _fetch_commit(source, temporary)
                temporary.rename(folder)
    return folder


def _fetch_commit(source: RepositoryCommit, folder: Path) -> None:
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
    """Git with the user's own settings, which may know a proxy or a mirror. It never prompts for a password.

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
