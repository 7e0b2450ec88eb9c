"""The map as a model reads it: likely files with the heads of their likely definitions, then further paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from retrial.agents.edit.repo_map.outlines import Definition, Outline, terms
from retrial.agents.edit.repo_map.ranking import Ranking
from retrial.agents.edit.repo_map.tokens import weight

_OUTLINED = 0.6
"""Of the budget: the share for outlines. The rest is for paths, for a file must be there before its outline helps."""
_DEFINITIONS = 6
"""Shown of one file, beside those that they lie in."""
_LEFT_OUT = "..."
_FURTHER = "\nFurther files:\n"
_INDENT = "  "


def draw(ranking: Ranking, outlines: Mapping[str, Outline], budget: int) -> str:
    """The likeliest files first, as many as the budget holds."""
    order = sorted(ranking.scores, key=lambda path: (-ranking.scores[path], path))
    blocks = (_block(path, outlines[path], ranking.telling) for path in order)
    outlined = _filled(blocks, _OUTLINED * budget)
    further = [f"{path}\n" for path in order[len(outlined) :]]
    text = "".join(outlined) + (_FURTHER if outlined and further else "")
    return text + "".join(_filled(further, budget - weight(text)))


def _filled(blocks: Iterable[str], room: float) -> list[str]:
    """The first of them, as many as fit."""
    taken: list[str] = []
    for block in blocks:
        room -= weight(block)
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
