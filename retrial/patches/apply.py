"""Apply a patch, and make one: what a tree looks like afterwards, and what differs between two trees."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from retrial.errors import NotMeasured, PatchError
from retrial.patches import git, untrusted_files
from retrial.patches.git import decode, encode
from retrial.patches.parser import Change, ChangeKind, joined, parse, paths_of
from retrial.patches.untrusted_files import File
from retrial.system.files import scratch_folder

MAX_COPIED_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Patched:
    files: dict[str, bytes]
    executable: frozenset[str]


def patched(files: Mapping[str, bytes], patch: str, executable: Collection[str] = ()) -> Patched:
    """The files after the patch: all of it or nothing, exactly where it says.

    Raises: PatchError when it does not apply, or makes symlinks or submodules.
    """
    changes = parse(patch)
    after = dict(files)
    modes = set(executable)
    before = {path: File(files[path], path in modes) for path in paths_of(changes) if path in files}
    for path, file in _results(changes, before).items():
        after.pop(path, None)
        modes.discard(path)
        if file is not None:
            after[path] = file.content
            modes |= {path} if file.executable else set()
    _check_folders(changes, after)
    return Patched(after, frozenset(modes))


def apply(folder: Path, patch: str) -> None:
    """Patch a folder, which may be or lie below a repository. Git never runs in it.

    Raises: PatchError when it does not apply or would go through a symlink; then nothing has changed.
    """
    changes = parse(patch)
    found = {path: untrusted_files.read(folder, path) for path in paths_of(changes)}
    results = _results(changes, {path: file for path, file in found.items() if file is not None})
    for path, file in results.items():
        if file is not None:
            untrusted_files.write(folder, path, file)
        elif found[path] is not None:
            untrusted_files.remove(folder, path)


def diff(
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    modes: Mapping[str, str] | None = None,
    *,
    before_modes: Mapping[str, str] | None = None,
) -> str:
    """A git patch from one set of files to another; modes are given of those that are not plain files."""
    old, new = _with_modes(before, before_modes or {}), _with_modes(after, modes or {})
    changed = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    if not changed:
        return ""
    old, new = ({path: files[path] for path in changed if path in files} for files in (old, new))
    with scratch_folder(_size(old) + _size(new)) as folder:
        git_dir = folder / "git"
        git.init_repository(git_dir)
        git.commit(git_dir, "old", old)
        git.commit(git_dir, "new", new)
        return _diff_of_branches(git_dir)


def _with_modes(files: Mapping[str, bytes], modes: Mapping[str, str]) -> dict[str, tuple[str, bytes]]:
    return {path: (modes.get(path, git.REGULAR), content) for path, content in files.items()}


def _size(files: Mapping[str, tuple[str, bytes]]) -> int:
    return sum(len(content) for _, content in files.values())


def _diff_of_branches(git_dir: Path) -> str:
    how = ("-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
    done = git.run("diff-tree", *how, "refs/heads/old", "refs/heads/new", git_dir=git_dir, cwd=git_dir)
    if done.returncode:
        raise NotMeasured(f"git could not compare the files: {done.complaint}.")
    return decode(done.stdout)


def _results(changes: Collection[Change], before: Mapping[str, File]) -> dict[str, File | None]:
    """What becomes of the files that a patch touches; None is a file that is not there."""
    if not changes:
        return {}
    for change in changes:
        if not change.regular:
            raise PatchError(f"The patch makes or changes something that is no file: '{change.name}'.")
    _check_copies(changes, before)
    with scratch_folder(sum(len(file.content) for file in before.values())) as folder:
        # Only what is touched is laid out, so no .gitattributes of the tree can change a byte on its way.
        work, git_dir = folder / "work", folder / "git"
        work.mkdir()
        git.init_repository(git_dir)
        for path, file in before.items():
            untrusted_files.write(work, path, file)
        git_apply("--apply", "--numstat", "-z", changes=changes, cwd=work, git_dir=git_dir)
        return {path: _file(work / path) for path in paths_of(changes)}


def _file(path: Path) -> File | None:
    return File(path.read_bytes(), bool(path.stat().st_mode & 0o100)) if path.is_file() else None


def git_apply(
    *options: str, changes: Collection[Change], cwd: Path, git_dir: Path | None = None, text: str = ""
) -> None:
    """Run `git apply`, which lists what it does: that must be what we think the patch does."""
    done = git.run(
        "apply", "--whitespace=nowarn", *options,
        stdin=encode(text or joined(changes)), cwd=cwd, git_dir=git_dir, work_tree=git_dir and cwd,
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
    sources = [before.get(change.old or "") for change in changes if change.kind is ChangeKind.COPIED]
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
