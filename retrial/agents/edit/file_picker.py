"""Which files of a repository to edit: the model names them, out of those that the problem seems to be about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from retrial import registry
from retrial.patches import git, policy
from retrial.types import Task

LISTED = 400
"""Paths shown to the model where there is no map."""
LONGEST_PATH = 200
"""Longer ones are not listed."""
ADDED = 5
"""Files taken from its reply."""
SHOWN = 200_000
"""Bytes of them all that can still be edited in a chat."""

ASK = """\
{problem}

####

The above is an issue of a repository. {what}

{listed}

Which of its files must be changed to resolve the issue? Name at most {most}, the most important first,
each by its path on a line of its own. You need not keep to the files above, but test files cannot be changed.
Change nothing yet: you will be shown the files first."""
SOME_FILES = "Some of its files:"
SOME_OUTLINES = "Some of its files, each with some of what it defines, as far as that may matter here:"
NONE_NAMED = "Your reply names no file of the repository. Name files by their paths as listed, each on its own line."
TOO_LARGE = "\nThere is no room to show you {files}: nothing can be changed there. Change other files.\n"
NOT_SEEN = (
    "\n\nNothing was changed. You had not seen these files before; look at them, and write all your edits again:\n"
)

PROMPTS = (ASK, SOME_FILES, SOME_OUTLINES, NONE_NAMED, TOO_LARGE, NOT_SEEN)

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{2,}")


@dataclass(frozen=True, slots=True)
class Named:
    """What a reply asks to see."""

    taken: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """There is no room for them."""


def editable(task: Task) -> dict[str, bytes]:
    """Text files of a repository that a patch may change and a model can name."""
    links = {path for path, mode in task.tree.modes().items() if mode == git.SYMLINK}
    return {
        path: content
        for path, content in task.tree.files().items()
        if path not in links
        and path.isprintable()
        and b"\0" not in content
        and not policy.matches(path, task.protected_globs)
    }


def asked(task: Task, files: Mapping[str, bytes], map_tokens: int, cache: Path) -> str:
    """Which files to change; with a map of so many tokens, or without one a list of paths."""
    files = {path: content for path, content in files.items() if len(content) <= SHOWN}
    if map_tokens:
        from retrial.agents.edit import repo_map

        what, listed = SOME_OUTLINES, repo_map.draw(task.problem_statement, files, map_tokens, cache).rstrip("\n")
    else:
        short = [path for path in candidates(task, files) if len(path) < LONGEST_PATH]
        what, listed = SOME_FILES, "\n".join(short[:LISTED])
    return ASK.format(problem=task.problem_statement, what=what, listed=listed, most=ADDED)


def candidates(task: Task, files: Collection[str]) -> list[str]:
    """Sources, those first whose paths have rare words of the problem."""
    source = [path for path in files if PurePosixPath(path).suffix in _suffixes(task)] or list(files)
    wanted = {word.lower() for word in _WORD.findall(task.problem_statement)}
    named = {path: wanted & {word.lower() for word in _WORD.findall(path)} for path in source}
    common = {word: sum(word in words for words in named.values()) for word in wanted}
    mentioned = _mentioned(task.problem_statement, source)

    def score(path: str) -> float:
        rare = sum(1 / common[word] for word in sorted(named[path]))
        return rare + 10 * (path in mentioned)

    return sorted(source, key=lambda path: (-score(path), path))


def named(reply: str, sizes: Mapping[str, int]) -> Named:
    """The files that a reply names, in its order; by the ends of their paths if it names none in full."""
    said = paths(reply)
    found = [path for path in said if path in sizes]
    if not found:
        ends = _ends(sizes)
        found = [ends[path] for path in said if "." in path and ends.get(path)]
    return fitting(found, sizes)


def paths(*texts: str) -> list[str]:
    """What may be paths in a reply: whole lines, for a path may have any sign in it, and words."""
    lines = [line for text in texts for line in text.splitlines()]
    words = (word for line in lines for word in (line.strip(" \t`*:-"), *re.findall(r"[\w./+@-]+", line)))
    return [word.removeprefix("./").rstrip(".") for word in words]


def no_room(refused: Collection[str]) -> str:
    return TOO_LARGE.format(files=", ".join(refused)) if refused else ""


def fitting(paths: Iterable[str], sizes: Mapping[str, int], shown: Collection[str] = ()) -> Named:
    """Those that can be shown beside what was shown."""
    taken: list[str] = []
    refused: list[str] = []
    for path in dict.fromkeys(paths):
        if sum(sizes.get(each, 0) for each in (*shown, *taken, path)) > SHOWN:
            refused.append(path)
        elif len(taken) < ADDED:
            taken.append(path)
    return Named(tuple(taken), tuple(refused))


def _ends(paths: Iterable[str]) -> dict[str, str]:
    """Every end of a path → the path; empty if several end so."""
    ends: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for start in range(1, len(parts)):
            end = "/".join(parts[start:])
            ends[end] = "" if end in ends else path
    return ends


def _mentioned(problem: str, paths: Iterable[str]) -> set[str]:
    """Files that the problem names by path, or as a module."""
    text = problem.replace(".", "/")
    return {path for path in paths if path in problem or path.rpartition(".")[0].removesuffix("/__init__") in text}


def _suffixes(task: Task) -> tuple[str, ...]:
    if task.language not in registry.names("languages"):
        return ()
    suffixes: tuple[str, ...] = registry.module("languages", task.language).make().suffixes
    return suffixes
