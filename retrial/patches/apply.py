"""Files in a folder that somebody hostile may have changed, never through a symlink and never outside; apply a patch to
such a folder or to a tree in memory, and make the patch that differs between two trees."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from retrial.errors import NotMeasured, PatchError
from retrial.patches import git
from retrial.patches.git import check_name, decode, encode
from retrial.patches.parser import Change, joined, parse, paths_of
from retrial.system.files import scratch_folder

MAX_COPIED_BYTES = 50_000_000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK, so that a named pipe cannot hold us.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_THEIRS = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ENOTEMPTY}
_GONE = {*_THEIRS, errno.ENOENT, errno.EINVAL}


class File(NamedTuple):
    mode: str
    """As git writes it."""
    content: bytes


@dataclass(frozen=True, slots=True)
class Patched:
    files: dict[str, bytes]
    executable: frozenset[str]


def with_modes(contents: Mapping[str, bytes], modes: Mapping[str, str]) -> dict[str, File]:
    """A tree; `modes` are given of those files that are not plain."""
    return {path: File(modes.get(path, git.REGULAR), content) for path, content in contents.items()}


def patched(files: Mapping[str, bytes], patch: str) -> Patched:
    """The files after the patch, and those that it makes executable: all of it or nothing, exactly where it says.

    Raises: PatchError when it does not apply, or makes symlinks or submodules.
    """
    changes = parse(patch)
    after, executable = dict(files), set[str]()
    before = {path: File(git.REGULAR, files[path]) for path in paths_of(changes) if path in files}
    for path, file in _results(changes, before).items():
        after.pop(path, None)
        if file is not None:
            after[path] = file.content
            executable |= {path} if file.mode == git.EXECUTABLE else set()
    _check_folders(changes, after)
    return Patched(after, frozenset(executable))


def apply(folder: Path, patch: str) -> None:
    """Patch a folder, which may be or lie below a repository. Git never runs in it.

    Raises: PatchError when it does not apply or would go through a symlink; then nothing has changed.
    """
    changes = parse(patch)
    found = {path: read_below(folder, path) for path in paths_of(changes)}
    results = _results(changes, {path: file for path, file in found.items() if file is not None})
    for path, file in results.items():
        if file is not None:
            write_below(folder, path, file)
        elif found[path] is not None:
            remove_below(folder, path)


def diff(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """A git patch from one set of plain files to another."""
    return diff_trees(with_modes(before, {}), with_modes(after, {}))


def diff_trees(old: Mapping[str, File], new: Mapping[str, File]) -> str:
    """A git patch from one tree to another."""
    changed = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    if not changed:
        return ""
    old, new = ({path: files[path] for path in changed if path in files} for files in (old, new))
    with scratch_folder(_size(old) + _size(new)) as folder:
        git_dir = folder / "git"
        git.init_repository(git_dir)
        how = ("-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
        done = git.run("diff-tree", *how, *git.write_trees(git_dir, old, new), git_dir=git_dir, cwd=git_dir)
    if done.returncode:
        raise NotMeasured(f"git could not compare the files: {done.complaint}.")
    return decode(done.stdout)


def _size(files: Mapping[str, File]) -> int:
    return sum(len(file.content) for file in files.values())


def _results(changes: Collection[Change], before: Mapping[str, File]) -> dict[str, File | None]:
    """What becomes of the files that a patch touches; None is a file that is not there."""
    if not changes:
        return {}
    for change in changes:
        if not change.regular:
            raise PatchError(f"The patch makes or changes something that is no file: '{change.name}'.")
    _check_copies(changes, before)
    with scratch_folder(_size(before)) as folder:
        # Only what is touched is laid out, so no .gitattributes of the tree can change a byte on its way.
        work, git_dir = folder / "work", folder / "git"
        work.mkdir()
        git.init_repository(git_dir)
        for path, file in before.items():
            write_below(work, path, file)
        git_apply("--apply", "--numstat", "-z", changes=changes, cwd=work, git_dir=git_dir)
        return {path: _file(work / path) for path in paths_of(changes)}


def _file(path: Path) -> File | None:
    return File(_mode(path.stat()), path.read_bytes()) if path.is_file() else None


def _mode(status: os.stat_result) -> str:
    return git.EXECUTABLE if status.st_mode & 0o100 else git.REGULAR


def git_apply(
    *options: str, changes: Collection[Change], cwd: Path, git_dir: Path | None = None, text: str = ""
) -> None:
    """Run `git apply`, which lists what it does: that must be what we think the patch does."""
    done = git.run(
        "apply", "--whitespace=nowarn", *options,
        stdin=encode(text or joined(changes)), cwd=cwd, git_dir=git_dir,
    )  # fmt: skip
    if done.returncode:
        raise PatchError(f"The patch does not apply: {done.complaint}.")
    _check_listed([decode(entry).split("\t", 2) for entry in done.stdout.split(b"\0")[:-1]], changes)


def _check_listed(listed: Collection[list[str]], changes: Collection[Change]) -> None:
    names = [name for _, _, name in listed]
    if names != [change.name for change in changes]:
        raise PatchError(f"Git reads the patch differently: it would change {', '.join(names[:10]) or 'nothing'}.")
    for (added, deleted, name), change in zip(listed, changes, strict=True):
        if (added, deleted) != change.counts:
            raise PatchError(
                f"Git reads the patch differently: it sees other lines of '{name}', whose counts are wrong."
            )


def _check_copies(changes: Iterable[Change], before: Mapping[str, File]) -> None:
    """Git copies files as they were before the patch, never what the patch itself makes."""
    sources = [before.get(change.old or "") for change in changes if change.copied]
    if sum(len(source.content) for source in sources if source) > MAX_COPIED_BYTES:
        raise PatchError(f"The patch makes copies of more than {MAX_COPIED_BYTES // 1_000_000} MB.")


def _check_folders(changes: Iterable[Change], after: Mapping[str, bytes]) -> None:
    """Files that the patch does not touch are not there when it is applied, so this is not seen by git."""
    new = {change.new for change in changes if change.new and change.new in after}
    both = [name for name in new if any(folder in after for folder in _folders(name))]
    both += [folder for path in after for folder in _folders(path) if folder in new]
    if both:
        raise PatchError(f"The patch does not apply: '{both[0]}' would be a file and a folder.")


def _folders(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def read_below(root: Path, path: str, most: int = -1) -> File | None:
    """A regular file, or so many of its first bytes; None when there is nothing.

    Raises: PatchError when the path leaves the folder, goes through a symlink, or is not a regular file.
    """
    try:
        with _parent(root, path) as (folder, name):
            opened = os.open(name, _READ, dir_fd=folder)
            try:
                status = os.fstat(opened)
                if not stat.S_ISREG(status.st_mode):
                    raise PatchError(f"'{path}' is not a regular file.")
                with os.fdopen(opened, "rb", closefd=False) as file:
                    return File(_mode(status), file.read(most))
            finally:
                os.close(opened)
    except FileNotFoundError:
        return None


def write_below(root: Path, path: str, file: File) -> None:
    """Put a new file in the place of whatever file or symlink is there; makes its folders.

    Raises: PatchError as `read_below` does.
    """
    with _parent(root, path, create=True) as (folder, name):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        _make(name, file, folder)


def lay_out(root: Path, files: Mapping[str, File]) -> None:
    """Make all files of a tree, links too, in an empty folder that nobody else knows of yet. All folders come first, so
    no link can stand for one although nothing is looked at on the way.

    Raises: PatchError when a path leaves the folder or cannot be made.
    """
    path = ""
    try:
        for path in {path.rpartition("/")[0] for path in files} - {""}:
            os.makedirs(root / check_name(path), exist_ok=True)
        for path, file in files.items():
            _make(f"{root}/{check_name(path)}", file)
    except (OSError, ValueError) as error:
        raise PatchError(f"'{path}' cannot be made: {getattr(error, 'strerror', '') or error}.") from error


def _make(path: str, file: File, folder: int | None = None) -> None:
    if file.mode == git.SYMLINK:
        os.symlink(os.fsdecode(file.content), path, dir_fd=folder)
        return
    opened = os.open(path, _CREATE, 0o777 if file.mode == git.EXECUTABLE else 0o666, dir_fd=folder)
    with os.fdopen(opened, "wb") as new:
        new.write(file.content)


def remove_below(root: Path, path: str) -> None:
    """Remove a file, and the folders that it leaves empty, as git does.

    Raises: PatchError as `read_below` does.
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
def passing_over_changes() -> Iterator[None]:
    """Pass over what is no longer what it was a moment ago: an agent that asks for tests goes on with its work."""
    try:
        yield
    except OSError as error:
        if error.errno not in _GONE:
            raise
