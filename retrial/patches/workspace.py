"""Where an agent edits: a plain folder with a one-commit repository for the agent's own use.

What the agent did is read file by file and compared with the base. Git never runs on the folder once the agent has it,
so whatever it does to its `.git`, its attributes or its settings changes nothing of what we see.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from retrial.errors import NotMeasured, PatchError, TreeError
from retrial.patches import apply, git
from retrial.patches.apply import File
from retrial.patches.git import check_name, decode, encode
from retrial.system.files import everything, nameable, permit, scratch_folder
from retrial.types import Tree

CACHES = re.compile(r"__pycache__/|\.pytest_cache/|\.ruff_cache/|\.mypy_cache/|node_modules/|.*\.pyc", re.DOTALL)
"""Names of files, and with a `/` at the end of folders, under which new files are not edits."""
MAX_FILE_BYTES = 10_000_000
MAX_BYTES = 20_000_000
"""Of all that was edited: it is held in memory, and an agent may leave files of any size and number."""
FILE_BYTES = 4_000
"""What a file costs beside its content."""
LARGE = 500
"""Files; fewer are read as quickly as they are looked at."""

Signature: TypeAlias = tuple[int, ...]


class Folder:
    """A workspace on this machine."""

    def __init__(self, root: Path, base: Mapping[str, File], untouched: Mapping[str, Signature] | None = None) -> None:
        """`untouched` tells by their signature which files need not be read to know that they are as in the base."""
        self.root = root
        self.omitted: tuple[str, ...] = ()
        """What the last diff left out because no patch can hold it: odd names, huge files."""
        self._base = base
        self._folders = _folders(base)
        self._untouched = untouched or {}
        self._last: tuple[dict[str, File], str] | None = None

    def diff(self) -> str:
        """Everything that differs from the base, new files included, as we read it."""
        found = self._found()
        if self._last is None or self._last[0] != found:
            self._last = found, apply.diff_trees(self._base, found)
        return self._last[1]

    def read(self, path: str) -> bytes | None:
        """A file's content; None when there is none, or when it lies outside."""
        try:
            file = apply.read_below(self.root, path)
        except PatchError:
            return None
        return file.content if file else None

    def write(self, path: str, content: bytes) -> None:
        """Raises: PatchError when the path leaves the workspace or goes through a symlink."""
        try:
            old = apply.read_below(self.root, path)
        except PatchError:
            old = None
        apply.write_below(self.root, path, File(old.mode if old else git.REGULAR, content))

    def remove(self, path: str) -> None:
        """Raises: PatchError as `write` does, or when there is no such file."""
        try:
            apply.remove_below(self.root, path)
        except FileNotFoundError as error:
            raise PatchError(f"There is no file '{path}' to remove.") from error

    def hand_over(self, user: int) -> None:
        """Make everything here that user's; what is known to be as in the base stays known."""
        still = [path for path, known in self._untouched.items() if known == _look(f"{self.root}/{path}")]
        for entry in everything(self.root):
            if entry.stat(follow_symlinks=False).st_uid != user:
                os.lchown(entry.path, user, user)
        os.lchown(self.root, user, user)
        moment = os.lstat(self.root).st_ctime_ns
        while still and os.lstat(self.root).st_ctime_ns == moment:
            # A tick later, all of them can be told from what is written from now on.
            os.lchown(self.root, user, user)
        self._untouched = signatures(self.root, still, self.root)

    def _found(self) -> dict[str, File]:
        """Every file and symlink that a patch can hold, by its path."""
        found: dict[str, File] = {}
        omitted: list[str] = []
        room = MAX_BYTES
        for path, entry in self._in_order():
            with apply.passing_over_changes():
                signature = self._untouched.get(path)
                if signature and signature == _signature(entry.stat(follow_symlinks=False)):
                    found[path] = self._base[path]
                elif file := _file(self.root, entry, path, min(room, MAX_FILE_BYTES)):
                    found[path] = file
                    if file != self._base.get(path):
                        room -= len(file.content) + FILE_BYTES
                else:
                    omitted.append(path)
        self.omitted = tuple(sorted(omitted))
        # What cannot be said in a patch is not said: such a file of the base is neither changed nor deleted.
        return found | {path: self._base[path] for path in omitted if path in self._base}

    def _in_order(self) -> list[tuple[str, os.DirEntry[str]]]:
        """Files of the base first, then those that its own .gitignore files do not hide, small ones first: should there
        not be room for all, it is a build that is left out, and not the edit."""
        entries = dict(self._walk())
        for path in self._hidden([path for path in entries if path not in self._base]):
            del entries[path]
        sizes = {}
        for path, entry in entries.items():
            with apply.passing_over_changes():
                sizes[path] = entry.stat(follow_symlinks=False).st_size
        return [
            (path, entries[path])
            for path in sorted(sizes, key=lambda path: (path not in self._base, sizes[path], path))
        ]

    def _hidden(self, paths: list[str]) -> list[str]:
        """Which new paths the base's .gitignore files hide. What the agent wrote into such files does not matter."""
        names = [path for path in self._base if path.rpartition("/")[2] == ".gitignore"]
        rules = {path: self._base[path] for path in names if self._base[path].mode != git.SYMLINK}
        if not rules or not paths:
            return []
        with scratch_folder() as folder:
            work, git_dir = folder / "work", folder / "git"
            work.mkdir()
            git.init_repository(git_dir, bare=False)
            for path, file in rules.items():
                apply.write_below(work, path, file)
            # A file may be called `:!x`, which git would take for an order.
            stdin = b"".join(b"./" + encode(path) + b"\0" for path in paths)
            done = git.run("check-ignore", "--no-index", "-z", "--stdin", git_dir=git_dir, cwd=work, stdin=stdin)
        if done.returncode > 1:
            raise NotMeasured(f"git could not read the .gitignore files: {done.complaint}.")
        return [decode(path.removeprefix(b"./")) for path in done.stdout.split(b"\0")[:-1]]

    def _walk(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        folders = [("", False)] if self.root.is_dir() and not self.root.is_symlink() else []
        while folders:
            folder, ignored = folders.pop()
            for entry in _entries(self.root / folder):
                path, is_folder = folder + entry.name, entry.is_dir(follow_symlinks=False)
                hidden = ignored or bool(CACHES.fullmatch(f"{entry.name}/" if is_folder else entry.name))
                if is_folder:
                    # A file of the base is looked at even where new files would be ignored.
                    if not hidden or path in self._folders:
                        folders.append((path + "/", hidden))
                elif not hidden or path in self._base:
                    yield path, entry


def _folders(paths: Iterable[str]) -> set[str]:
    """All folders above these files."""
    found: set[str] = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in found:
            found.add(path)
    return found


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, all repositories' own folders left out; nothing when it is gone, or too deep to be named."""
    found: list[os.DirEntry[str]] = []
    with apply.passing_over_changes():
        permit(folder, 0o500)
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name.lower() != ".git" and nameable(entry)]
    return found


def _file(root: Path, entry: os.DirEntry[str], path: str, most: int) -> File | None:
    """None for pipes and the like, for what is too large, and for names that no patch may have."""
    found = entry.stat(follow_symlinks=False)
    try:
        check_name(path)
        if found.st_size > most:
            return None
        if entry.is_symlink():
            return File(git.SYMLINK, os.fsencode(os.readlink(entry.path)))
        if not stat.S_ISREG(found.st_mode):
            return None
        permit(Path(entry.path), 0o400)
        # From the root: a folder on the way may by now be a link to somewhere else. And it may have grown.
        file = apply.read_below(root, path, most + 1)
    except PatchError:
        return None
    return file if file and len(file.content) <= most else None


@contextmanager
def open_workspace(tree: Tree, parent: Path | None = None) -> Iterator[Folder]:
    """A fresh workspace, gone afterwards.

    Raises: TreeError when the files cannot be laid out.
    """
    base = apply.with_modes(tree.files(), tree.modes())
    with scratch_folder(sum(len(file.content) for file in base.values()), parent) as holder:
        root = holder / "work"
        root.mkdir()
        try:
            apply.lay_out(root, base)
        except PatchError as error:
            raise TreeError(f"The task's tree cannot be laid out: {error}") from error
        # One commit, the same on every machine; no remote, no tag, no hook, no other history.
        git_dir = root / ".git"
        git.init_repository(git_dir, bare=False)
        git.commit(git_dir, "main", base)
        git.write_index(git_dir, base)
        yield Folder(root, base, signatures(root, base) if len(base) >= LARGE else {})


def signatures(root: Path, paths: Iterable[str], last: Path | None = None) -> dict[str, Signature]:
    """Of files as laid out: nobody can write one and keep its time of change.

    That time moves in ticks, though. Whatever is written from now on is not older than what was changed last (the
    index, unless another is named); only what is older than that can be told from it, and the rest is read each time.
    """
    newest = os.lstat(last or root / ".git" / "index").st_ctime_ns
    found = ((path, os.lstat(f"{root}/{path}")) for path in paths)
    return {path: _signature(status) for path, status in found if status.st_ctime_ns < newest}


def _look(path: str) -> Signature | None:
    try:
        return _signature(os.lstat(path))
    except OSError:
        return None


def _signature(found: os.stat_result) -> Signature:
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
