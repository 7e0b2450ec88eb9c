"""How many tokens a text is likely to be, without a tokenizer: rather a few too many than too few.

Fitted on real maps to the tokenizer of the embedded model (49,152 tokens; larger ones mostly make fewer of a text).
"""

from __future__ import annotations

import math
import re

_PIECE = re.compile(r"(?m)^ +| ?(?:[A-Z]?[a-z]+|[A-Z]+)|[0-9]|\.{3}|\n|\S")
_SHORT, _MIDDLE, _LETTERS = 5, 8, 5.5
"""A word of so many letters is one token, is sometimes two, or has so many letters in each."""
_CAUTION = 1.05
"""Names such as `sympy` are cut into more tokens than words are."""


def tokens(text: str) -> int:
    return math.ceil(weight(text))


def weight(text: str) -> float:
    """The same before it is rounded: of lines together it is the sum of theirs."""
    return _CAUTION * sum(map(_cost, _PIECE.findall(text)))


def _cost(piece: str) -> float:
    letters = len(piece.lstrip(" "))
    if letters <= _SHORT:
        # Signs that are not ASCII are cut into bytes.
        return 1.0 if piece.isascii() else float(len(piece.encode("utf-8", "replace")))
    return 1.2 if letters <= _MIDDLE else letters / _LETTERS
