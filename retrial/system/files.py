"""Files that are written whole or not at all, and read only if they are regular files; trees that are removed.

A scratch folder lives for a moment, and carries the name of the process that made it.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from retrial.errors import UsageError
from retrial.system import locks
from retrial.system.host import give_up_reserve
from retrial.system.secrets import MASKER

_NUMBERS = itertools.count()
LONGEST_PATH = 4096
PIECE = 1 << 16
# O_NONBLOCK: opening a FIFO would wait for a writer.
_HOW = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
MEMORY = Path("/dev/shm")
SCRATCH_ROOM = 20
"""How many such folders there must be room for: others make theirs at the same time."""
SCRATCH_SMALL = 10_000_000
"""Bytes; less is not worth counting."""
_KINDS = {
    stat.S_IFLNK: "a symlink",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def write_atomically(path: Path, content: bytes) -> None:
    """All of it or nothing, and on disk when this returns; without what nobody may see."""
    write_data(path, MASKER.redact_bytes(content), sure=True)


def write_again(path: Path, content: bytes) -> None:
    """What can be made again from what is on disk: if the machine itself fails in the next seconds, it may be lost."""
    write_data(path, MASKER.redact_bytes(content))


def write_data(path: Path, content: bytes, *, sure: bool = False) -> None:
    """Exactly these bytes: what is read back as data must be what it was. `sure` as in `write_atomically`.

    On a full disk, in the place of the reserve.
    """
    try:
        _replace(path, content, sure=sure)
    except OSError as error:
        give_up_reserve(error)
        _replace(path, content, sure=sure)


def write_if_other(path: Path, content: bytes) -> None:
    """As `write_again`, unless it is there already: to read is a fraction of the work."""
    masked = MASKER.redact_bytes(content)
    try:
        same = path.stat().st_size == len(masked) and path.read_bytes() == masked
    except OSError:
        same = False
    if not same:
        write_again(path, content)


def _replace(path: Path, content: bytes, *, sure: bool) -> None:
    # Carries our name: who is killed in the middle leaves it.
    owner = locks.register_resource(locks.ResourceKind.FILES, path.parent)
    temporary = f"{path.parent}/.{path.name[:40]}.{owner}.{next(_NUMBERS)}"
    replaced = False
    try:
        # Each call of the system lets other threads in, of which there are hundreds: here are as few as can be.
        file = open_or_create(temporary, os.O_WRONLY | os.O_EXCL)
        try:
            write_all(file, content)
            os.fchmod(file, 0o644)
            if sure:
                os.fsync(file)
        finally:
            os.close(file)
        os.replace(temporary, path)
        replaced = True
    finally:
        if not replaced:
            with suppress(FileNotFoundError):
                os.unlink(temporary)


def open_or_create(path: str | Path, how: int) -> int:
    """Open a file, which is made if it is missing, and so is its folder."""
    how |= os.O_CREAT | os.O_CLOEXEC
    try:
        return os.open(path, how, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, how, 0o666)


def write_all(file: int, content: bytes) -> None:
    """Write to a descriptor until nothing is left."""
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def sync_folder(folder: Path) -> None:
    """Its names are on disk when this returns: a file that nobody can find is not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def permit(path: Path, bits: int) -> None:
    """Let us read what an agent took our right to read from."""
    if path.lstat().st_mode & bits == bits:
        return
    opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # What was opened, not what may have its name by now.
        mode = os.fstat(opened).st_mode
        if not stat.S_ISLNK(mode):
            os.chmod(f"/proc/self/fd/{opened}", stat.S_IMODE(mode) | bits)
    finally:
        os.close(opened)


def remove_all(holder: Path) -> None:
    """As much as can be removed, and nothing that was mounted in there: it is unmounted, or all of it stays."""
    if (mounted := _mounts_below(holder)) and not _unmounted(mounted, holder):
        return
    # Something of the agent's may still be at work in there; that is no reason to lose its patch.
    with suppress(RecursionError):
        shutil.rmtree(holder, ignore_errors=True)
    if holder.exists():
        for entry in everything(holder):
            if entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    permit(Path(entry.path), 0o700)
        # rmtree needs a stack frame and a file descriptor for each level; rm does not.
        with suppress(FileNotFoundError):
            subprocess.run(["rm", "-rf", "--", holder], stderr=subprocess.DEVNULL)


def _unmounted(places: list[bytes], holder: Path) -> bool:
    for place in places:
        with suppress(FileNotFoundError):
            subprocess.run(["umount", "--lazy", "--", place], stderr=subprocess.DEVNULL)
    return not _mounts_below(holder)


def _mounts_below(holder: Path) -> list[bytes]:
    """The last first, as they can be unmounted."""
    above = os.path.realpath(os.fsencode(holder)) + b"/"
    escaped = re.sub(rb"[ \t\n\\]", lambda found: b"\\%03o" % found[0][0], above)
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    places = [line.split(b" ")[4] for line in lines if b" " + escaped in line]
    plain = [re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), place) for place in places]
    return [place for place in plain if place.startswith(above)][::-1]


def nameable(entry: os.DirEntry[str]) -> bool:
    """Its path is not too long for the system."""
    return len(os.fsencode(entry.path)) < LONGEST_PATH


def everything(root: Path) -> Iterator[os.DirEntry[str]]:
    """All files and folders below, a folder before it is looked into; not what is too deep to be named."""
    waiting = [str(root)]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in filter(nameable, entries):
            yield entry
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)


def read_file(path: str | Path, most: int | None = None) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    Raises: OSError, whose `strerror` names what else the path is.
    """
    return _read_whole(path, most, _HOW)


def read_real_file(path: str, most: int | None = None) -> bytes:
    """As `read_file`, but raise for a symlink too, and for a path that leads through one.

    `path` is absolute, and real as far as the user chose it: what follows may be a stranger's.
    """
    return _read_whole(path, most, _HOW | os.O_NOFOLLOW, real=True)


def why_unreadable(path: str, most: int | None = None) -> str:
    """Return why `read_real_file` would refuse what is there, as the end of a sentence; empty if it would not."""
    try:
        if why := _refusal(os.lstat(path), most):
            return why
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    real = os.path.realpath(path)
    return "" if real == path else _through(real)


def special_kind(entry: os.DirEntry[str]) -> str:
    """Return what an entry is if it is neither a regular file nor a folder; else an empty text."""
    if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
        return ""
    return _kind(entry.stat(follow_symlinks=False).st_mode)


def _read_whole(path: str | Path, most: int | None, how: int, *, real: bool = False) -> bytes:
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
        return _read_pieces(file, path, most)
    finally:
        os.close(file)


def _read_pieces(file: int, path: str | Path, most: int | None) -> bytes:
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


@contextmanager
def scratch_folder(size: int = 0, where: Path | None = None) -> Iterator[Path]:
    """A temporary folder for about `size` bytes: in memory where there is room for it, which is ten times as quick."""
    there = where or scratch_place(size) or Path(tempfile.gettempdir())
    made = Path(
        tempfile.mkdtemp(prefix=scratch_prefix(locks.register_resource(locks.ResourceKind.FOLDERS, there)), dir=there)
    )
    try:
        yield made
    finally:
        remove_all(made)
        if os.path.lexists(made):
            locks.current_lease().abandon(str(made))


def scratch_prefix(owner: str) -> str:
    return f"retrial-{owner}-"


def scratch_place(size: int = 0) -> Path | None:
    """Where to make such a folder: where TMPDIR says, if it does; None is the usual place."""
    if wanted := os.environ.get("TMPDIR"):
        return Path(wanted)
    return MEMORY if _scratch_room() > SCRATCH_ROOM * max(size, SCRATCH_SMALL) else None


def refuse_missing_scratch() -> None:
    """Raise UsageError if TMPDIR names no folder: to create it, or to use /tmp instead, would surprise."""
    wanted = os.environ.get("TMPDIR")
    if wanted and not os.path.isdir(wanted):
        raise UsageError(f"TMPDIR is '{wanted}', which is not a folder: create it, or unset TMPDIR.")


def scratch_places() -> tuple[Path, ...]:
    """Where such folders may be."""
    return tuple(Path(os.path.realpath(folder)) for folder in (MEMORY, tempfile.gettempdir()))


def _scratch_room() -> int:
    """Bytes that are free; containers often give it a few MB only."""
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return 0
    found = os.statvfs(MEMORY)
    return found.f_bavail * found.f_frsize
