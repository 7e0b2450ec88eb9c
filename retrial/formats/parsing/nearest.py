"""The lines of a file that are most like lines that are not in it, for a model to look at."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import accumulate

from retrial.formats.parsing.refused import shown

NEAREST = "\n\nNearest to them are lines {first} to {last} of the file ({percent} % alike):\n{lines}"

ALIKE = 0.5
"""Less than this and the lines would only mislead."""
COMPARED = 200
"""Words that are compared one by one: that takes time as their square."""
QUOTED = 30
AROUND = 2
CANDIDATES = 3


def nearest(lines: Sequence[str], wanted: Sequence[str]) -> str:
    """The best place by words in common, quoted with its line numbers and a share; empty where nothing is alike."""
    size = min(len(wanted), len(lines))
    sought = _words(wanted)[:COMPARED]
    best = max(((_alike(lines[at : at + size], sought), -at) for at in _candidates(lines, wanted, size)), default=None)
    if best is None or best[0] < ALIKE:
        return ""
    first = max(0, -best[1] - AROUND)
    last = min(-best[1] + size + AROUND, first + QUOTED, len(lines))
    percent = int(100 * best[0])
    return NEAREST.format(first=first + 1, last=last, percent=percent, lines=quoted(lines[first:last], QUOTED))


def quoted(lines: Sequence[str], most: int) -> str:
    """Lines for a model to read, no more than it needs to know which are meant."""
    few = [shown(line) for line in lines[:most]]
    return "\n".join([*few, "[…]"] if len(lines) > most else few)


def _candidates(lines: Sequence[str], wanted: Sequence[str], size: int) -> list[int]:
    """Where the windows begin that share most with what is wanted; rare words of the file weigh most."""
    sought = set(_words(wanted))
    shared = [[word for word in _words([line]) if word in sought] for line in lines]
    counts = Counter(word for words in shared for word in words)
    sums = [0.0, *accumulate(sum(1 / counts[word] for word in words) for words in shared)]
    scores = [sums[at + size] - sums[at] for at in range(len(lines) - size + 1)]
    ranked = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    return [at for at in ranked[:CANDIDATES] if scores[at]]


def _alike(lines: Sequence[str], sought: list[str]) -> float:
    return SequenceMatcher(None, _words(lines)[:COMPARED], sought, autojunk=False).ratio()


def _words(lines: Sequence[str]) -> list[str]:
    return re.findall(r"\w+", "\n".join(lines))
