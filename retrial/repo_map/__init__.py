"""A map of a repository for a model that is to find the files to change: outlines of those that the problem seems to be
about, within a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from retrial.repo_map import _drawing, _grammars, _keeping, _ranking
from retrial.repo_map._tokens import tokens

__all__ = ["draw", "tokens"]

_FOREIGN = 0.5
"""What a file in another language than the task's weighs."""
_LONG_LINES = 300
"""Bytes in a line, on average, of what no person wrote."""


def draw(problem: str, files: Mapping[str, bytes], suffixes: tuple[str, ...], budget: int, cache: Path) -> str:
    """Of `files`, which may be changed; `suffixes` are those of the task's language, ("",) if it is not known.

    The same for the same arguments, whatever the cache holds.
    """
    sources = {path: files[path] for path in sorted(files) if _is_source(path, files[path])} or dict(files)
    outlines = _keeping.outlines(sources, cache)
    ranking = _ranking.rank(problem, outlines)
    scores = {path: score if path.endswith(suffixes) else score * _FOREIGN for path, score in ranking.scores.items()}
    return _drawing.draw(replace(ranking, scores=scores), outlines, budget)


def _is_source(path: str, content: bytes) -> bool:
    return _grammars.of(path) is not None and len(content) <= _LONG_LINES * (1 + content.count(b"\n"))
