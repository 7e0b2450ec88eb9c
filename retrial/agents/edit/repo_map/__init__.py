"""Repository map, from which a model finds the files to change.

It outlines those that the problem seems to be about, within a number of tokens.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from retrial.agents.edit.repo_map import grammars, outline_cache, render
from retrial.agents.edit.repo_map import ranking as file_ranking
from retrial.agents.edit.repo_map.render import count_tokens

__all__ = ["count_tokens", "draw"]

_FEW = 0.1
"""Of all sources: a language that has fewer is not what the repository is written in."""
_FOREIGN = 0.5
"""What a file in such a language weighs."""
_LONG_LINES = 300
"""Bytes in a line, on average, of what no person wrote."""
_NOT_WRITTEN_HERE = re.compile(r"(?:^|/)(?:dist|node_modules|vendor)/|\.min\.\w+$|_pb2\.py$|\.pb\.(?:go|cc|h)$")


def draw(problem: str, files: Mapping[str, bytes], budget: int, cache: Path) -> str:
    """Of `files`, which may be changed; at most so many tokens, as `count_tokens` counts them.

    The same for the same problem and files, whatever the cache holds.
    """
    sources = {path: files[path] for path in sorted(files) if _is_source(path, files[path])}
    outlines = outline_cache.outlines(sources or {path: files[path] for path in sorted(files)}, cache)
    ranking = file_ranking.rank(problem, outlines)
    foreign = _foreign(outlines)
    scores = {path: score * (_FOREIGN if path in foreign else 1.0) for path, score in ranking.scores.items()}
    return render.draw(replace(ranking, scores=scores), outlines, budget)


def _is_source(path: str, content: bytes) -> bool:
    if grammars.of(path) is None or _NOT_WRITTEN_HERE.search(path):
        return False
    return len(content) <= _LONG_LINES * (1 + content.count(b"\n"))


def _foreign(paths: Collection[str]) -> set[str]:
    """In languages of which there are few files."""
    spoken = {path: grammar.package if (grammar := grammars.of(path)) else "" for path in paths}
    files = Counter(spoken.values())
    return {path for path, language in spoken.items() if files[language] < _FEW * len(spoken)}
