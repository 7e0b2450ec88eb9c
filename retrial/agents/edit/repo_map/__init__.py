"""Repository map, from which a model finds the files to change: likely files with the heads of their likely
definitions, then further paths, within a number of tokens, which are estimated without a tokenizer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from retrial.agents.edit.repo_map import grammars
from retrial.agents.edit.repo_map.outlines import Definition, Outline, read_all, terms
from retrial.agents.edit.repo_map.ranking import rank

_FEW = 0.1
"""Of all sources: a language that has fewer is not what the repository is written in."""
_FOREIGN = 0.5
"""What a file in such a language weighs."""
_LONG_LINES = 300
"""Bytes in a line, on average, of what no person wrote."""
_NOT_WRITTEN_HERE = re.compile(r"(?:^|/)(?:dist|node_modules|vendor)/|\.min\.\w+$|_pb2\.py$|\.pb\.(?:go|cc|h)$")

_OUTLINED = 0.6
"""Of the budget: the share for outlines. The rest is for paths, for a file must be there before its outline helps."""
_DEFINITIONS = 6
"""Shown of one file, beside those that they lie in."""
_LEFT_OUT = "..."
_FURTHER = "\nFurther files:\n"
_INDENT = "  "

_PIECE = re.compile(r"(?m)^ +| ?(?:[A-Z]?[a-z]+|[A-Z]+)|[0-9]|\.{3}|\n|\S")
_SHORT, _MIDDLE, _LETTERS = 5, 8, 5.5
"""A word of so many letters is one token, is sometimes two, or has so many letters in each."""
_CAUTION = 1.05
"""Names such as `sympy` are cut into more tokens than words are."""


def draw(problem: str, files: Mapping[str, bytes], budget: int, cache: Path) -> str:
    """Of `files`, which may be changed, the likeliest first; at most so many tokens, as `weigh` counts them.

    The same for the same problem and files, whatever the cache holds.
    """
    sources = {path: files[path] for path in sorted(files) if _is_source(path, files[path])}
    outlines = read_all(sources or {path: files[path] for path in sorted(files)}, cache)
    ranking = rank(problem, outlines)
    foreign = _foreign(outlines)
    scores = {path: score * (_FOREIGN if path in foreign else 1.0) for path, score in ranking.scores.items()}
    order = sorted(scores, key=lambda path: (-scores[path], path))
    outlined = _filled((_block(path, outlines[path], ranking.telling) for path in order), _OUTLINED * budget)
    further = [f"{path}\n" for path in order[len(outlined) :]]
    text = "".join(outlined) + (_FURTHER if outlined and further else "")
    return text + "".join(_filled(further, budget - weigh(text)))


def _is_source(path: str, content: bytes) -> bool:
    if grammars.of(path) is None or _NOT_WRITTEN_HERE.search(path):
        return False
    return len(content) <= _LONG_LINES * (1 + content.count(b"\n"))


def _foreign(paths: Collection[str]) -> set[str]:
    """In languages of which there are few files."""
    spoken = {path: grammar.package if (grammar := grammars.of(path)) else "" for path in paths}
    files = Counter(spoken.values())
    return {path for path, language in spoken.items() if files[language] < _FEW * len(spoken)}


def _filled(blocks: Iterable[str], room: float) -> list[str]:
    """The first of them, as many as fit."""
    taken: list[str] = []
    for block in blocks:
        room -= weigh(block)
        if room < 0:
            break
        taken.append(block)
    return taken


def _block(path: str, outline: Outline, telling: Mapping[str, float]) -> str:
    lines = [f"{path}:\n"]
    before = -1
    for number in _chosen(outline.definitions, telling):
        one = outline.definitions[number]
        if number > before + 1:
            lines.append(f"{_INDENT * (one.depth + 1)}{_LEFT_OUT}\n")
        lines.append(f"{_INDENT * (one.depth + 1)}{one.head}\n")
        before = number
    return "".join(lines)


def _chosen(definitions: tuple[Definition, ...], telling: Mapping[str, float]) -> list[int]:
    def worth(number: int) -> float:
        return sum(telling.get(word, 0.0) for word in terms(definitions[number].name))

    best = sorted(range(len(definitions)), key=lambda number: (-worth(number), definitions[number].depth, number))
    return sorted({each for number in best[:_DEFINITIONS] for each in (number, *_around(number, definitions))})


def _around(number: int, definitions: tuple[Definition, ...]) -> Iterable[int]:
    """Those that it lies in."""
    depth = definitions[number].depth
    for earlier in range(number - 1, -1, -1):
        if definitions[earlier].depth < depth:
            depth = definitions[earlier].depth
            yield earlier


def weigh(text: str) -> float:
    """Return how many tokens a text is likely to be, without a tokenizer: rather a few too many than too few.

    Of lines together it is the sum of theirs. Fitted on real maps to the tokenizer of the embedded model (49,152
    tokens; larger ones mostly make fewer of a text).
    """
    return _CAUTION * sum(map(_cost, _PIECE.findall(text)))


def _cost(piece: str) -> float:
    letters = len(piece.lstrip(" "))
    if letters <= _SHORT:
        # Signs that are not ASCII are cut into bytes.
        return 1.0 if piece.isascii() else float(len(piece.encode("utf-8", "replace")))
    return 1.2 if letters <= _MIDDLE else letters / _LETTERS
