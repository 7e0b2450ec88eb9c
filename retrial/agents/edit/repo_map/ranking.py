"""Which files a problem is likely to be about: by what it says, and by what the files say of each other.

A file is likely if its text, the names it defines and its path have the problem's words (a word counts the more the
fewer files have it), if the problem names it, and if likely files refer to what it defines.
(`speed/repo_map.py` measures all this.)
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from posixpath import basename, splitext
from typing import TypeAlias

from retrial.agents.edit.repo_map.outlines import Outline, terms

Scores: TypeAlias = Mapping[str, float]
"""Path → how likely, or how much of something, it is; the best has 1 where it is not said otherwise."""

_DEFINED, _PATH, _NAMED, _REFERRED = 0.5, 0.5, 0.5, 0.2
"""What each weighs; the text itself weighs 1."""
_REPEATED = 3
"""A word that the problem says more often counts no more than so many times."""
_SATURATION, _LENGTH = 1.2, 0.75
"""The usual constants of BM25: how soon a repeated word stops counting, and how much a long text is discounted."""
_LONGEST = 300
"""Characters of a path that the problem names; of a longer one, the last so many."""
_AS_MODULE = 0.7
"""What a file's name as a module, or without its folders, weighs against its path."""
_FOLDER = 0.6
"""What the name of a folder weighs, against the name of what lies in it."""
_STEPS, _FOLLOWED = 6, 0.5
"""How far references are followed, and how much of a file's likelihood goes along at each step."""
_GIVERS = 200
"""So many of the likeliest files have their references followed: the others have next to nothing to give."""
_AMBIGUOUS = 5
"""A name that more files define says nothing about which is meant."""
_WHOLE = 60
"""What a name weighs, to be shared among the files that define it: can be divided by each number up to the above."""


@dataclass(frozen=True, slots=True)
class Ranking:
    scores: Scores
    """Of all files; the higher the likelier."""
    telling: Mapping[str, float]
    """The problem's words, with how much each tells."""


def rank(problem: str, outlines: Mapping[str, Outline]) -> Ranking:
    wanted = terms(problem)
    texts = {path: outline.words for path, outline in outlines.items()}
    names = {path: terms(" ".join(one.name for one in outline.definitions)) for path, outline in outlines.items()}
    paths = {path: _path_words(path) for path in outlines}
    telling = _telling(wanted, texts)
    signals = (
        (1.0, _alike(telling, texts)),
        (_DEFINED, _alike(_telling(wanted, names), names)),
        (_PATH, _alike(_telling(wanted, paths), paths)),
        (_NAMED, _named(problem, outlines)),
    )
    said = _normal({path: sum(weight * scores[path] for weight, scores in signals) for path in outlines})
    referred = _referred(said, outlines)
    return Ranking({path: said[path] + _REFERRED * referred[path] for path in outlines}, telling)


def _telling(wanted: Mapping[str, int], bags: Mapping[str, Mapping[str, float]]) -> Mapping[str, float]:
    """How much each of the wanted words tells: much if few files have it; those that none has are left out."""
    seen = Counter(word for bag in bags.values() for word in wanted if word in bag)
    return {
        word: min(wanted[word], _REPEATED) * math.log(1 + (len(bags) - count + 0.5) / (count + 0.5))
        for word, count in seen.items()
    }


def _alike(weights: Mapping[str, float], bags: Mapping[str, Mapping[str, float]]) -> Scores:
    """Which files have these words (BM25)."""
    lengths = {path: sum(bag.values()) for path, bag in bags.items()}
    usual = sum(lengths.values()) / max(1, len(lengths)) or 1.0

    def score(path: str) -> float:
        bag = bags[path]
        enough = _SATURATION * (1 - _LENGTH + _LENGTH * lengths[path] / usual)
        return sum(weight * bag[word] / (bag[word] + enough) for word, weight in weights.items() if word in bag)

    return _normal({path: score(path) for path in bags})


def _path_words(path: str) -> Mapping[str, float]:
    """The file's name weighs most, outer folders least."""
    bag: dict[str, float] = {}
    weight = 1.0
    for part in reversed(splitext(path)[0].split("/")):
        for word in _part_words(part):
            bag.setdefault(word, weight)
        weight *= _FOLDER
    return bag


@functools.lru_cache(maxsize=10_000)
def _part_words(part: str) -> tuple[str, ...]:
    return tuple(terms(part))


def _named(problem: str, paths: Collection[str]) -> Scores:
    """Files that the problem names: by path, as a module, or by a file name, which several may have."""
    said = [word.strip(".-/")[-_LONGEST:] for word in re.findall(r"[\w./-]+", problem)]
    whole = {"/".join(parts[start:]) for parts in (word.split("/") for word in said) for start in range(len(parts))}
    dotted = [re.split(r"[./]", word) for word in said]
    modules = {"/".join(parts[:end]) for parts in dotted for end in range(2, len(parts) + 1)}
    same = Counter(basename(path) for path in paths)

    def score(path: str) -> float:
        if path in whole:
            return 1.0
        if not modules.isdisjoint(_modules(path)):
            return _AS_MODULE
        name = basename(path)
        return _AS_MODULE / math.sqrt(same[name]) if name in whole and same[name] <= _AMBIGUOUS else 0.0

    return {path: score(path) for path in paths}


def _modules(path: str) -> list[str]:
    """Names that code may import it by, of two parts at least: where a package's folder begins is not known."""
    parts = splitext(path.removesuffix("/__init__.py"))[0].split("/")
    return ["/".join(parts[start:]) for start in range(len(parts) - 1)]


def _referred(said: Scores, outlines: Mapping[str, Outline]) -> Scores:
    """What references bring to each file, when each gives on a part of what it has (PageRank, begun at the problem)."""
    givers = sorted(said, key=lambda path: (-said[path], path))[:_GIVERS]
    edges = _references(givers, outlines)
    start = _shares({path: score**2 for path, score in said.items()})
    now = start
    for _ in range(_STEPS):
        coming = {path: (1 - _FOLLOWED) * share for path, share in start.items()}
        for path, others in edges.items():
            given = _FOLLOWED * now[path]
            for other, part in others.items():
                coming[other] += given * part
        now = coming
    return _normal(now)


def _references(givers: Iterable[str], outlines: Mapping[str, Outline]) -> Mapping[str, Scores]:
    """File → the files that define what it refers to, each with its share."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for path, outline in outlines.items():
        for one in outline.definitions:
            homes[one.name].add(path)
    telling = {name: found for name, found in homes.items() if len(found) <= _AMBIGUOUS}
    edges: dict[str, Scores] = {}
    for path in givers:
        # Whole numbers, for sums of fractions depend on the order, and that of a set on the process.
        weights: defaultdict[str, int] = defaultdict(int)
        for name in outlines[path].names.split():
            found = telling.get(name, ())
            if path not in found:
                for home in found:
                    weights[home] += _WHOLE // len(found)
        edges[path] = _shares(weights)
    return edges


def _shares(weights: Mapping[str, float]) -> Scores:
    total = sum(weights.values()) or 1.0
    return {path: weight / total for path, weight in weights.items()}


def _normal(scores: Mapping[str, float]) -> Scores:
    """The best has 1."""
    best = max(scores.values(), default=0.0) or 1.0
    return {path: score / best for path, score in scores.items()}
