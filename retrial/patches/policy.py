"""Which part of a patch counts: what a task lets a patch change, and what is dropped."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from pathlib import PurePosixPath

from retrial.errors import PatchError
from retrial.patches.apply import diff, git_apply, patched
from retrial.patches.hunks import CHOPPED
from retrial.patches.parser import Change, joined, parse, paths_of
from retrial.system.files import scratch_folder
from retrial.types import Task


@dataclass(frozen=True, slots=True)
class Selection:
    patch: str
    """The part that counts, written anew; empty when nothing does."""
    dropped: tuple[str, ...]
    """Paths that the patch touches and that do not count."""


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
    return Selection(joined(kept), tuple(dropped))


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
    with scratch_folder() as folder:
        for missing in range(CHOPPED + 1):
            try:
                git_apply("--numstat", "-z", changes=changes, cwd=folder, text=patch + "\n" * missing)
            except PatchError as error:
                problems.append(error)
            else:
                return
    raise problems[0]


def changed_paths(patch: str) -> list[str]:
    return paths_of(parse(patch))


def keep_allowed_parts(
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


def allowed_changes(task: Task, base: Collection[str]) -> Callable[[Change], bool]:
    """The rule of a task whose tree has the files `base`."""

    def rule(change: Change) -> bool:
        # A copy may be of any file that the agent saw.
        sources = base if change.copied else task.editable
        return (change.old is None or change.old in sources) and (
            change.new is None or writable(task, change.new, base)
        )

    return rule


def writable(task: Task, path: str, base: Collection[str]) -> bool:
    """A patch may change this file, or add it."""
    if task.whole_repository:
        return not matches(path, task.protected_globs)
    if path in task.editable:
        return True
    file = PurePosixPath(path)
    return (
        path not in base
        and file.parent in {PurePosixPath(editable).parent for editable in task.editable}
        and any(fnmatchcase(file.name, glob) for glob in task.new_file_globs)
        and not matches(path, task.protected_globs)
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
