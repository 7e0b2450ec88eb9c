"""Patches: what they touch, which part of it counts, and what a tree looks like afterwards."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from pathlib import Path, PurePosixPath

from retrial.errors import NotMeasured, PatchError
from retrial.patches import git, untrusted_files
from retrial.patches.hunks import CHOPPED
from retrial.patches.names import check_name, decode, encode
from retrial.patches.parser import Change, Kind, normalise, parse
from retrial.patches.untrusted_files import File
from retrial.system import scratch
from retrial.types import Task

__all__ = [
    "Change",
    "Kind",
    "Patched",
    "Selection",
    "normalise",
    "parse",
    "select",
    "counts",
    "writable",
    "select_anywhere",
]
__all__ += ["touched", "reduced", "matches", "patched", "apply", "diff"]

MAX_COPIED_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Selection:
    patch: str
    """The part that counts, written anew; empty when nothing does."""
    dropped: tuple[str, ...]
    """Paths that the patch touches and that do not count."""


@dataclass(frozen=True, slots=True)
class Patched:
    files: dict[str, bytes]
    executable: frozenset[str]


def select(patch: str, counts: Callable[[Change], bool]) -> Selection:
    """Keep the changes of regular files that count.

    Raises: PatchError when the patch as a whole is refused.
    """
    changes = parse(patch)
    kept: list[Change] = []
    dropped: dict[str, None] = {}
    for change in changes:
        if change.regular and counts(change):
            kept.append(change)
        else:
            dropped |= dict.fromkeys(change.paths)
    # Whether git reads it as we do is seen where it is applied.
    return Selection(_joined(kept), tuple(dropped))


def select_anywhere(patch: str, reserved: Collection[str], also: Collection[str]) -> Selection:
    """As `select`, for a task that is a whole repository: all but `reserved` files count, and those in `also`.

    Raises: PatchError, also when git cannot read the patch as it was written: then no other runner could apply it.
    """
    found = select(patch, lambda change: all(path in also or not matches(path, reserved) for path in change.paths))
    if patch.strip():
        _check_readable(patch)
    return found


def _check_readable(patch: str) -> None:
    changes, problems = parse(patch), list[PatchError]()
    with scratch.folder() as folder:
        for missing in range(CHOPPED + 1):
            try:
                _git_apply("--numstat", "-z", changes=changes, cwd=folder, text=patch + "\n" * missing)
            except PatchError as error:
                problems.append(error)
            else:
                return
    raise problems[0]


def touched(patch: str) -> list[str]:
    return _touched(parse(patch))


def reduced(
    found: Selection, base: Mapping[str, bytes], rules: Mapping[str, Callable[[bytes, bytes], bytes]]
) -> Selection:
    """The selection with files of which only a part counts cut down to that part.

    Raises: PatchError when it does not apply.
    """
    after = patched(base, found.patch).files
    kept = dict(after)
    for path, rule in rules.items():
        if path in base:
            # A file that was deleted is there again: it is no source.
            kept[path] = rule(base[path], after.get(path, base[path]))
    cut = tuple(path for path in rules if kept.get(path) != after.get(path))
    if not cut:
        return found
    return Selection(diff(base, kept), (*found.dropped, *cut))


def counts(task: Task, base: Collection[str]) -> Callable[[Change], bool]:
    """The rule of a task whose tree has the files `base`."""

    def rule(change: Change) -> bool:
        # A copy may be of any file that the agent saw.
        sources = base if change.kind is Kind.COPIED else task.editable
        return (change.old is None or change.old in sources) and (
            change.new is None or writable(task, change.new, base)
        )

    return rule


def writable(task: Task, path: str, base: Collection[str]) -> bool:
    """A patch may change this file, or add it."""
    if task.anywhere:
        return not matches(path, task.reserved)
    if path in task.editable:
        return True
    name = PurePosixPath(path).name
    return (
        path not in base
        and _folder(path) in {_folder(editable) for editable in task.editable}
        and any(fnmatchcase(name, glob) for glob in task.addable)
        and not matches(path, task.reserved)
    )


def matches(path: str, globs: Iterable[str]) -> bool:
    """By name, or by the whole path where the glob has a slash."""
    by_name, by_path = _compiled(tuple(globs))
    return bool(by_name.match(path.rpartition("/")[2]) or by_path.match(path))


@functools.lru_cache(maxsize=64)
def _compiled(globs: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Hundreds of globs may be asked about every path of every patch."""
    with_slash = [glob for glob in globs if "/" in glob]
    without = [glob for glob in globs if "/" not in glob]
    by_name, by_path = (re.compile("|".join(map(translate, each)) or "(?!)") for each in (without, with_slash))
    return by_name, by_path


def patched(files: Mapping[str, bytes], patch: str, executable: Collection[str] = ()) -> Patched:
    """The files after the patch: all of it or nothing, exactly where it says.

    Raises: PatchError when it does not apply, or makes symlinks or submodules.
    """
    changes = parse(patch)
    after = dict(files)
    modes = set(executable)
    before = {path: File(files[path], path in modes) for path in _touched(changes) if path in files}
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
    found = {path: untrusted_files.read(folder, path) for path in _touched(changes)}
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
    with scratch.folder(_size(old) + _size(new)) as folder:
        git_dir = folder / "git"
        git.lay(git_dir)
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
    with scratch.folder(sum(len(file.content) for file in before.values())) as folder:
        # Only what is touched is laid out, so no .gitattributes of the tree can change a byte on its way.
        work, git_dir = folder / "work", folder / "git"
        work.mkdir()
        git.lay(git_dir)
        for path, file in before.items():
            untrusted_files.write(work, path, file)
        _git_apply("--apply", "--numstat", "-z", changes=changes, cwd=work, git_dir=git_dir)
        return {path: _file(work / path) for path in _touched(changes)}


def _file(path: Path) -> File | None:
    return File(path.read_bytes(), bool(path.stat().st_mode & 0o100)) if path.is_file() else None


def _git_apply(
    *options: str, changes: Collection[Change], cwd: Path, git_dir: Path | None = None, text: str = ""
) -> None:
    """Run `git apply`, which lists what it does: that must be what we think the patch does."""
    done = git.run(
        "apply", "--whitespace=nowarn", *options,
        stdin=encode(text or _joined(changes)), cwd=cwd, git_dir=git_dir, work_tree=git_dir and cwd,
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
    sources = [before.get(change.old or "") for change in changes if change.kind is Kind.COPIED]
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


def _touched(changes: Iterable[Change]) -> list[str]:
    return list(dict.fromkeys(check_name(path) for change in changes for path in change.paths))


def _joined(changes: Iterable[Change]) -> str:
    return "".join(change.text for change in changes)


def _folder(path: str) -> PurePosixPath:
    return PurePosixPath(path).parent
