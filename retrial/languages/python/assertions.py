"""What a Python test claims: the literals of what it expects, of unittest, pytest and their kin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from retrial.languages.canaries.syntax import walk
from retrial.languages.python import bindings
from retrial.languages.python.bindings import NESTED, Names, arguments, called, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class Rank(IntEnum):
    """How sure it is that everything right fails, and that everything that forces success does not."""

    VALUE = 0
    """The whole of what the solution's own value must equal is written down."""
    MIXED = 1
    """It is made of more than literals."""
    NAMED = 2
    """It is a constant: another one stands for it."""
    CONVERTED = 3
    """Something that is not the solution's stands between its value and what that must equal, such as `len`."""
    HELPER = 4
    """Given to a helper of the tests that asserts something."""
    MESSAGE = 5
    """Of an exception: a solution that forces success need not return anything for it."""
    LOOSE = 6
    """Part of what comes out."""
    INPUT = 7
    """Put in: what comes out is another, unless it is not part of what the task speaks of."""


@dataclass(frozen=True, slots=True)
class Claim:
    rank: Rank
    literal: Node
    """Or a constant's name."""

    @property
    def text(self) -> str:
        return text_of(self.literal)

    @property
    def span(self) -> tuple[int, int]:
        return self.literal.byte_range


LITERALS = frozenset({"string", "integer", "float", "true", "false"})
MADE_OF = frozenset(
    {"list", "tuple", "set", "dictionary", "pair", "expression_list", "concatenated_string", "none", "ellipsis"}
    | {"parenthesized_expression", "unary_operator", "binary_operator", "comment"}
)
EQUAL = re.compile(r"assert_?(?!.*not)\w*(equals?|close|is)|eq_", re.IGNORECASE)
INSIDE = re.compile(r"assert_?in", re.IGNORECASE)
TRUTH = re.compile(r"assert_?(true|false|isnone|is_none)_?", re.IGNORECASE)
OTHER = re.compile(
    r"assert_?(not|is_?(not|instance)|raises|warns|logs|regex|greater|less|num)|fail|skip", re.IGNORECASE
)
CONVERTERS = frozenset({"len", "str", "repr", "type", "int", "float", "bool", "sum", "round", "hash", "any", "all"})
CAUGHT = frozenset({"exception", "excinfo", "exc_info"})
CONSTANT = re.compile(r"(\w+\.)*[A-Z][A-Z\d_]+")
LEAST = 4
"""Characters of a text that is looked for in another, so that it is not in there by chance."""
ASIDE = frozenset({"msg", "err_msg", "places", "delta", "rel", "abs", "rtol", "atol", "id"})
"""Arguments that are neither put in nor expected."""
DEPTH = 3
"""Names that stand for names that stand for names."""


def claims(test: Node, decorators: Iterable[Node], helpers: frozenset[str]) -> list[Claim]:
    """Of a function, the best first; `helpers` are functions of the file that assert something."""
    body = test.child_by_field_name("body")
    if body is None:
        return []
    names = bindings.names(body, decorators)
    found = [claim for expression in _assertions(body) for claim in _claimed(expression, names, helpers)]
    seen: dict[tuple[int, int], Claim] = {}
    for claim in sorted(found, key=lambda claim: claim.rank):
        seen.setdefault(claim.span, claim)
    return list(seen.values())


def _assertions(body: Node) -> Iterator[Node]:
    """Asserted expressions and bare calls that are reached whenever the test runs to its end."""
    for statement in body.named_children:
        match statement.type:
            case "assert_statement":
                yield statement.named_children[0]
            case "expression_statement" if [child.type for child in statement.named_children] == ["call"]:
                yield statement.named_children[0]
            case "for_statement" | "with_statement":
                inner = statement.child_by_field_name("body")
                if inner is not None and not _expects_exception(statement):
                    yield from _assertions(inner)


def _expects_exception(statement: Node) -> bool:
    items = [child for child in statement.named_children if child.type == "with_clause"]
    return any(re.search(r"raises|warns", text_of(item), re.IGNORECASE) for item in items)


def _claimed(expression: Node, names: Names, helpers: frozenset[str]) -> Iterator[Claim]:
    """Of one asserted expression, or of one call that may assert something."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        match part.type:
            case "call":
                yield from _of_call(part, names, helpers)
            case "comparison_operator":
                yield from _of_comparison(part, names)
            case "not_operator":
                yield from _put_in(part, names)
            case "parenthesized_expression":
                waiting += part.named_children
            case "boolean_operator" if any(child.type == "and" for child in part.children):
                waiting += reversed(part.named_children)


def _of_call(call: Node, names: Names, helpers: frozenset[str]) -> Iterator[Claim]:
    name, given = called(call), arguments(call)
    if EQUAL.fullmatch(name) and len(given) > 1:
        yield from _equal(given[0], given[1], names)
    elif INSIDE.fullmatch(name) and len(given) > 1:
        yield from _inside(given[0])
    elif TRUTH.fullmatch(name) and given:
        # Asked of a comparison, it claims what that does.
        compared = given[0].type == "comparison_operator" and name.lower().endswith("true")
        yield from _of_comparison(given[0], names) if compared else _put_in(given[0], names)
    elif (name.startswith("assert") or name in helpers) and not OTHER.match(name):
        listed = call.child_by_field_name("arguments")
        for part in reversed(listed.named_children if listed is not None else ()):
            yield from _of(Rank.HELPER, _literals(part))
        yield from _put_in(call, names)


def _of_comparison(comparison: Node, names: Names) -> Iterator[Claim]:
    operators = [child.type for child in comparison.children if not child.is_named]
    if len(comparison.named_children) != 2:
        return
    left, right = comparison.named_children
    if operators in (["=="], ["is"]):
        yield from _equal(left, right, names)
    elif operators == ["in"]:
        yield from _inside(left)


def _equal(first: Node, second: Node, names: Names) -> Iterator[Claim]:
    """One side is what is expected: the one that is written down, else the second."""
    plain = [_plain(side, names) for side in (first, second)]
    actual, expected = (second, first) if plain == [True, False] else (first, second)
    if all(plain) and first.type != "identifier":
        actual, expected = second, first
    if CONSTANT.fullmatch(text_of(expected)):
        yield Claim(Rank.NAMED, expected)
    rank = max(_between(actual, names), Rank.VALUE if any(plain) else Rank.MIXED)
    yield from _of(rank, (each for value in _meant(expected, names) for each in _literals(value)))
    yield from _put_in(actual, names)


def _inside(looked_for: Node) -> Iterator[Claim]:
    if looked_for.type == "string" and len(text_of(looked_for)) >= LEAST + len("''"):
        yield Claim(Rank.LOOSE, looked_for)


def _put_in(actual: Node, names: Names) -> Iterator[Claim]:
    """What the solution is given, there or under a name."""
    waiting, known = [(actual, DEPTH)], {actual.id}
    while waiting:
        node, depth = waiting.pop()
        yield from _of(Rank.INPUT, _literals(node))
        for part in walk(node):
            if part.type == "identifier" and depth:
                meant = [value for value in names.get(text_of(part), []) if value.id not in known]
                known |= {value.id for value in meant}
                waiting += [(value, depth - 1) for value in meant]


def _of(rank: Rank, literals: Iterable[Node]) -> Iterator[Claim]:
    return (Claim(rank, literal) for literal in literals)


def _meant(node: Node, names: Names) -> list[Node]:
    return names.get(text_of(node), []) or [node] if node.type == "identifier" else [node]


def _plain(side: Node, names: Names) -> bool:
    """Nothing but literals."""
    values = _meant(side, names)
    return bool(values) and all(_made_of_literals(value) for value in values)


def _made_of_literals(value: Node) -> bool:
    for node in walk(value):
        if node.type in LITERALS or node.type in MADE_OF:
            continue
        if node.is_named and not node.type.startswith(("string_", "escape_")):
            return False
    return True


def _between(actual: Node, names: Names) -> Rank:
    """What stands between the solution's value and the assertion."""
    values = _meant(actual, names)
    if any(node.type == "identifier" and text_of(node) in CAUGHT for value in values for node in walk(value)):
        return Rank.MESSAGE
    converted = any(value.type == "call" and called(value) in CONVERTERS for value in values)
    return Rank.CONVERTED if converted else Rank.VALUE


def _literals(value: Node) -> Iterator[Node]:
    """Those that are all of a value somewhere in it: no index, no part of a text that is put together when it runs."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if node.type in LITERALS:
            if not any(child.type == "interpolation" for child in node.children):
                yield node
        elif node.type == "pair":
            # A value before its key.
            waiting += node.named_children
        elif node.type not in NESTED and node.type != "subscript" and not _aside(node):
            waiting += [child for child in reversed(node.named_children) if child.type != "comment"]


def _aside(node: Node) -> bool:
    name = node.child_by_field_name("name") if node.type == "keyword_argument" else None
    return name is not None and text_of(name) in ASIDE
