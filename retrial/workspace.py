"""Where an agent edits: a plain folder with a one-commit repository for the agent's own use.

What the agent did is read file by file and compared with the base. Git never runs on the folder once the agent has it,
so whatever it does to its `.git`, its attributes or its settings changes nothing of what we see.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path

from retrial import git, patches, safe_files, scratch
from retrial.errors import NotMeasured, PatchError, TreeError
from retrial.names import check_name, decode, encode
from retrial.protocols import Tree
from retrial.safe_files import File

CACHES = ("__pycache__/", ".pytest_cache/", ".ruff_cache/", ".mypy_cache/", "node_modules/", "*.pyc")
MAX_FILE_BYTES = 10_000_000


class Folder:
    """A workspace on this machine."""

    def __init__(self, root: Path, base: Mapping[str, bytes], ignored: tuple[str, ...] = CACHES) -> None:
        self.root = root
        self.omitted: tuple[str, ...] = ()
        """What the last diff left out because no patch can hold it: odd names, huge files."""
        self._base = base
        self._folders = {path[:end] for path in base for end, char in enumerate(path) if char == "/"}
        self._ignored = ignored
        self._last: tuple[dict[str, tuple[str, bytes]], str] | None = None

    def diff(self) -> str:
        """Everything that differs from the base, new files included, as we read it."""
        found = self._found()
        if self._last is None or self._last[0] != found:
            self._last = found, self._compare(dict(found))
        return self._last[1]

    def _compare(self, found: dict[str, tuple[str, bytes]]) -> str:
        hidden = _ignored_by(self._base, [path for path in found if path not in self._base])
        for path in hidden:
            del found[path]
        contents = {path: content for path, (_, content) in found.items()}
        return patches.diff(self._base, contents, {path: mode for path, (mode, _) in found.items()})

    def read(self, path: str) -> bytes | None:
        """A file's content; None when there is none, or when it lies outside."""
        try:
            file = safe_files.read(self.root, path)
        except PatchError:
            return None
        return file.content if file else None

    def write(self, path: str, content: bytes) -> None:
        """Raises: PatchError when the path leaves the workspace or goes through a symlink."""
        try:
            old = safe_files.read(self.root, path)
        except PatchError:
            old = None
        safe_files.write(self.root, path, File(content, old is not None and old.executable))

    def _found(self) -> dict[str, tuple[str, bytes]]:
        """Path → mode and content of every file and symlink that a patch can hold."""
        found: dict[str, tuple[str, bytes]] = {}
        omitted: list[str] = []
        for path, entry in self._walk():
            content = _content(entry, path)
            if content is not None:
                found[path] = content
            else:
                omitted.append(path)
        self.omitted = tuple(sorted(omitted))
        # What cannot be said in a patch is not said: such a file of the base is neither changed nor deleted.
        return found | {path: (git.REGULAR, self._base[path]) for path in omitted if path in self._base}

    def _walk(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        folders = [("", False)] if self.root.is_dir() and not self.root.is_symlink() else []
        while folders:
            folder, ignored = folders.pop()
            for entry in _entries(self.root / folder):
                path, hidden = folder + entry.name, ignored or self._is_ignored(entry)
                if entry.is_dir(follow_symlinks=False):
                    # A file of the base is looked at even where new files would be ignored.
                    if not hidden or path in self._folders:
                        folders.append((path + "/", hidden))
                elif not hidden or path in self._base:
                    yield path, entry

    def _is_ignored(self, entry: os.DirEntry[str]) -> bool:
        name = entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name
        return any(fnmatchcase(name, glob) for glob in self._ignored)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, all repositories' own folders left out."""
    _permit(folder, 0o500)
    with os.scandir(folder) as entries:
        return [entry for entry in entries if entry.name.lower() != ".git"]


def _content(entry: os.DirEntry[str], path: str) -> tuple[str, bytes] | None:
    """Mode and content; None for pipes and the like, for what is too large, and for names that no patch may have."""
    found = entry.stat(follow_symlinks=False)
    try:
        check_name(path)
        if entry.is_symlink():
            return git.SYMLINK, os.fsencode(os.readlink(entry.path))
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
            return None
        _permit(Path(entry.path), 0o400)
        file = safe_files.read(Path(entry.path).parent, entry.name)
    except PatchError:
        return None
    return (git.EXECUTABLE if file.executable else git.REGULAR, file.content) if file else None


def _permit(path: Path, bits: int) -> None:
    """Let us read what an agent took our right to read from."""
    mode = path.lstat().st_mode
    if mode & bits != bits and not stat.S_ISLNK(mode):
        path.chmod(stat.S_IMODE(mode) | bits)


@contextmanager
def open_workspace(
    tree: Tree, parent: Path | None = None, *, name: str = "work", ignored: tuple[str, ...] = CACHES
) -> Iterator[Folder]:
    """A fresh workspace, gone afterwards. `ignored` are globs of file names, and with a `/` at the end of folder names,
    under which new files are not edits.

    Raises: TreeError when the files cannot be laid out.
    """
    base = tree.files()
    size = sum(len(content) for content in base.values())
    holder = Path(tempfile.mkdtemp(prefix="retrial-", dir=parent or scratch.place(size)))
    try:
        root = holder / check_name(name)
        root.mkdir()
        try:
            for path, content in base.items():
                safe_files.write(root, path, File(content))
        except PatchError as error:
            raise TreeError(f"The task's tree cannot be laid out: {error}") from error
        _commit(root, base)
        yield Folder(root, base, ignored)
    finally:
        _remove(holder)


def _commit(root: Path, base: Mapping[str, bytes]) -> None:
    """One commit, the same on every machine; no remote, no tag, no hook, no other history."""
    git_dir = root / ".git"
    git.lay(git_dir, bare=False)
    git.commit(git_dir, "main", {path: (git.REGULAR, content) for path, content in base.items()})
    done = git.run("read-tree", "refs/heads/main", git_dir=git_dir, work_tree=root, cwd=root)
    if done.returncode:
        raise NotMeasured(f"git could not prepare the workspace: {done.complaint}.")


def _ignored_by(base: Mapping[str, bytes], paths: list[str]) -> list[str]:
    """Which new paths the base's own .gitignore files hide. What the agent wrote into them since does not matter."""
    rules = {path: content for path, content in base.items() if path.rpartition("/")[2] == ".gitignore"}
    if not rules or not paths:
        return []
    with scratch.folder() as folder:
        work, git_dir = Path(folder, "work"), Path(folder, "git")
        work.mkdir()
        git.lay(git_dir, bare=False)
        for path, content in rules.items():
            safe_files.write(work, path, File(content))
        names = b"".join(encode(path) + b"\0" for path in paths)
        done = git.run(
            "check-ignore", "--no-index", "-z", "--stdin", git_dir=git_dir, work_tree=work, cwd=work, stdin=names
        )
    if done.returncode > 1:
        raise NotMeasured(f"git could not read the .gitignore files: {done.complaint}.")
    return [decode(path) for path in done.stdout.split(b"\0")[:-1]]


def _remove(holder: Path) -> None:
    for folder, names, _ in os.walk(holder):
        for name in names:
            with suppress(OSError):
                _permit(Path(folder, name), 0o700)
    # Something of the agent's may still be at work in there; that is no reason to lose its patch.
    shutil.rmtree(holder, ignore_errors=True)
