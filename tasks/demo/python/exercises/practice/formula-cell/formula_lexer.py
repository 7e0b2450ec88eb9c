"""Cuts a formula into tokens. Finished: import it, do not change it."""

import re
from typing import NamedTuple

PATTERN = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<symbol>[-+*/^(),])")


class FormulaError(Exception):
    """A mistake in a formula; str() of it is like "unexpected ')' at 6"."""

    def __init__(self, message, position):
        super().__init__(f"{message} at {position}")
        self.message = message
        self.position = position


class Token(NamedTuple):
    kind: str  # "number", "name", "symbol" or "end"
    text: str  # as written in the formula; "" for the end
    position: int  # of its first character, from 0; the formula's length for the end


def tokenize(formula):
    """The list of tokens of a formula, white space left out, with an "end" token at its end."""
    tokens = []
    position = 0
    while position < len(formula):
        if formula[position].isspace():
            position += 1
            continue
        match = PATTERN.match(formula, position)
        if match is None:
            raise FormulaError(f"unexpected '{formula[position]}'", position)
        tokens.append(Token(match.lastgroup, match.group(), position))
        position = match.end()
    tokens.append(Token("end", "", position))
    return tokens
