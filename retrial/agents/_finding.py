"""Which files of a repository to edit: the model names them, out of those that the problem seems to be about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from retrial import patches, registry
from retrial.types import Task

LISTED = 400
"""Paths shown to the model."""
LONGEST_PATH = 200
"""Longer ones are not listed."""
ADDED = 5
"""Files taken from its reply."""
SHOWN = 200_000
"""Bytes of them all that can still be edited in a chat."""

ASK = """\
{problem}

####

The above is an issue of a repository. Some of its files:

{paths}

Which of its files must be changed to resolve the issue? Name at most {most}, the most important first,
each by its path on a line of its own. Test files cannot be changed.
"""
NONE_NAMED = "Your reply names no file of the repository. Name files by their paths as listed, each on its own line."

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{2,}")


def candidates(task: Task, files: Mapping[str, bytes]) -> list[str]:
    """Paths that a patch may change, those first whose names have rare words of the problem."""
    open_ = [path for path in files if not patches.matches(path, task.reserved) and len(files[path]) <= SHOWN]
    source = [path for path in open_ if PurePosixPath(path).suffix in _suffixes(task)] or open_
    wanted = {word.lower() for word in _WORD.findall(task.problem_statement)}
    named = {path: wanted & {word.lower() for word in _WORD.findall(path)} for path in source}
    common = {word: sum(word in words for words in named.values()) for word in wanted}
    mentioned = _mentioned(task.problem_statement, source)

    def score(path: str) -> float:
        rare = sum(1 / common[word] for word in named[path])
        return rare + 10 * (path in mentioned)

    return sorted(source, key=lambda path: (-score(path), path))


def asked(task: Task, paths: Iterable[str]) -> str:
    listed = "\n".join([path for path in paths if len(path) < LONGEST_PATH][:LISTED])
    return ASK.format(problem=task.problem_statement, paths=listed, most=ADDED)


def named(reply: str, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """The files that a reply names, in its order, as many as can be shown; `sizes` are of those that may be edited."""
    words = re.findall(r"[\w./+-]+", reply)
    found = (word.removeprefix("./").rstrip(".") for word in words)
    taken: list[str] = []
    for path in dict.fromkeys(path for path in found if path in sizes):
        if len(taken) < ADDED and sum(sizes[each] for each in (*taken, path)) <= SHOWN:
            taken.append(path)
    return tuple(taken)


def _mentioned(problem: str, paths: Iterable[str]) -> set[str]:
    """Files that the problem names by path, or as a module."""
    text = problem.replace(".", "/")
    return {path for path in paths if path in problem or path.rpartition(".")[0].removesuffix("/__init__") in text}


def _suffixes(task: Task) -> tuple[str, ...]:
    if task.language not in registry.names("languages"):
        return ()
    suffixes: tuple[str, ...] = registry.module("languages", task.language).make().suffixes
    return suffixes
