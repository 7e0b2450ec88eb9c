"""Read whole files with few system calls: at every start there may be tens of thousands of them.

What is read may come from strangers, so only regular files are read: a FIFO does not block, a device is left alone.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

PIECE = 1 << 16
# O_NONBLOCK: opening a FIFO would wait for a writer.
_HOW = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_KINDS = {
    stat.S_IFLNK: "a symlink",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def read(path: str | Path, most: int | None = None) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    Raises: OSError, whose `strerror` names what else the path is.
    """
    return _read(path, most, _HOW)


def read_real(path: str, most: int | None = None) -> bytes:
    """As `read`, but raise for a symlink too, and for a path that leads through one.

    `path` is absolute, and real as far as the user chose it: what follows may be a stranger's.
    """
    return _read(path, most, _HOW | os.O_NOFOLLOW, real=True)


def refusal(path: str, most: int | None = None) -> str:
    """Return why `read_real` would refuse what is there, as the end of a sentence; empty if it would not."""
    try:
        if why := _refusal(os.lstat(path), most):
            return why
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    real = os.path.realpath(path)
    return "" if real == path else _through(real)


def kind_of(entry: os.DirEntry[str]) -> str:
    """Return what an entry is if it is neither a regular file nor a folder; else an empty text."""
    if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
        return ""
    return _kind(entry.stat(follow_symlinks=False).st_mode)


def _read(path: str | Path, most: int | None, how: int, *, real: bool = False) -> bytes:
    try:
        file = os.open(path, how)
    except OSError as error:
        # Sockets cannot be opened; the system's words for them and for links do not say what they are.
        if error.errno in (errno.ENXIO, errno.ELOOP) and (seen := _kind_at(path)):
            raise OSError(errno.EINVAL, f"it is {seen}, not a regular file", str(path)) from error
        raise
    try:
        about = os.fstat(file)
        if stat.S_ISDIR(about.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if why := _refusal(about, most):
            raise OSError(errno.EINVAL, f"it {why}", str(path))
        # What was opened, not what may have this name by now.
        if real and (opened := os.readlink(f"/proc/self/fd/{file}")) != path:
            raise OSError(errno.EINVAL, f"it {_through(opened)}", str(path))
        return _content(file, path, most)
    finally:
        os.close(file)


def _content(file: int, path: str | Path, most: int | None) -> bytes:
    pieces = [os.read(file, PIECE)]
    size = len(pieces[0])
    while len(pieces[-1]) == PIECE:
        pieces.append(os.read(file, PIECE))
        size += len(pieces[-1])
        if most is not None and size > most:
            raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _refusal(about: os.stat_result, most: int | None) -> str:
    if other := _kind(about.st_mode):
        return f"is {other}, not a regular file"
    if stat.S_ISREG(about.st_mode) and most is not None and about.st_size > most:
        return f"has {about.st_size} bytes, more than {most}"
    return ""


def _through(real: str) -> str:
    return f"leads through a symlink to {real}"


def _kind(mode: int) -> str:
    return _KINDS.get(stat.S_IFMT(mode), "")


def _kind_at(path: str | Path) -> str:
    try:
        return _kind(os.lstat(path).st_mode)
    except OSError:
        return ""
