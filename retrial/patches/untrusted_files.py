"""Files in a folder that somebody hostile may have changed: never through a symlink, never outside."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from retrial.errors import PatchError
from retrial.patches import git
from retrial.patches.git import check_name

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK, so that a named pipe cannot hold us.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THEIRS = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTEMPTY}
_GONE = {*_THEIRS, errno.ENOENT, errno.EINVAL}


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    executable: bool = False


def read(root: Path, path: str, most: int = -1) -> File | None:
    """A regular file, or so many of its first bytes; None when there is nothing.

    Raises: PatchError when the path leaves the folder, goes through a symlink, or is not a regular file.
    """
    try:
        with _parent(root, path) as (folder, name):
            return _read(os.open(name, _READ, dir_fd=folder), path, most)
    except FileNotFoundError:
        return None


def _read(opened: int, path: str, most: int) -> File:
    try:
        mode = os.fstat(opened).st_mode
        if not stat.S_ISREG(mode):
            raise PatchError(f"'{path}' is not a regular file.")
        with os.fdopen(opened, "rb", closefd=False) as file:
            return File(file.read(most), bool(mode & 0o100))
    finally:
        os.close(opened)


def write(root: Path, path: str, file: File) -> None:
    """Put a new file in the place of whatever file or symlink is there; makes its folders.

    Raises: PatchError as `read` does.
    """
    with _parent(root, path, create=True) as (folder, name):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        opened = os.open(name, _CREATE, 0o777 if file.executable else 0o666, dir_fd=folder)
        with os.fdopen(opened, "wb") as new:
            new.write(file.content)


def fill(root: Path, files: Mapping[str, bytes], modes: Mapping[str, str]) -> None:
    """Lay a whole tree out in an empty folder that nobody else knows of yet; `modes` are those of `files` that are not
    plain. All folders come first, so no link can stand for one although nothing is looked at on the way.

    Raises: PatchError when a path leaves the folder or cannot be made.
    """
    path = ""
    try:
        for path in {path.rpartition("/")[0] for path in files} - {""}:
            os.makedirs(root / check_name(path), exist_ok=True)
        for path, content in files.items():
            _make(f"{root}/{check_name(path)}", content, modes.get(path, git.REGULAR))
    except (OSError, ValueError) as error:
        raise PatchError(f"'{path}' cannot be made: {getattr(error, 'strerror', '') or error}.") from error


def _make(place: str, content: bytes, mode: str) -> None:
    if mode == git.SYMLINK:
        os.symlink(os.fsdecode(content), place)
        return
    with os.fdopen(os.open(place, _CREATE, 0o777 if mode == git.EXECUTABLE else 0o666), "wb") as new:
        new.write(content)


def remove(root: Path, path: str) -> None:
    """Remove a file, and the folders that it leaves empty, as git does.

    Raises: PatchError as `read` does.
    """
    with _parent(root, path) as (folder, name):
        os.unlink(name, dir_fd=folder)
    while "/" in path:
        path = path.rpartition("/")[0]
        try:
            with _parent(root, path) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except PatchError:
            return


@contextmanager
def _parent(root: Path, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """The folder that holds `path`, opened step by step so that no step can be a symlink, and the file's own name."""
    *folders, name = check_name(path).split("/")
    try:
        opened = os.open(root, _FOLDER)
        try:
            for folder in folders:
                opened = _step(opened, folder, create)
            yield opened, name
        finally:
            os.close(opened)
    except OSError as error:
        if error.errno in _THEIRS:
            raise PatchError(f"'{path}' goes through a symlink or cannot be a file here: {error.strerror}.") from error
        raise


def _step(opened: int, folder: str, create: bool) -> int:
    try:
        inner = os.open(folder, _FOLDER, dir_fd=opened)
    except FileNotFoundError:
        if not create:
            raise
        os.mkdir(folder, dir_fd=opened)
        inner = os.open(folder, _FOLDER, dir_fd=opened)
    os.close(opened)
    return inner


@contextmanager
def changing() -> Iterator[None]:
    """Pass over what is no longer what it was a moment ago: an agent that asks for tests goes on with its work."""
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE:
            raise
