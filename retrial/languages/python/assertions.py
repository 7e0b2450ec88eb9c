"""What a Python test claims: the literals of what it expects, of unittest, pytest and their kin.

Also what the names in it stand for: assignments, loops over rows, columns of parameters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from retrial.languages.canaries.candidates import Expected, surest
from retrial.languages.canaries.syntax import field, text_of, walk, within

if TYPE_CHECKING:
    from tree_sitter import Node

Names = Mapping[str, list["Node"]]
"""What each name of a test stands for."""


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
NESTED = frozenset({"function_definition", "class_definition", "lambda", "decorated_definition"})
DEPTH = 3
"""Names that stand for names that stand for names."""


def claims(test: Node, decorators: Iterable[Node], helpers: frozenset[str]) -> tuple[Expected, ...]:
    """Of a function, the best first; `helpers` are functions of the file that assert something."""
    body = field(test, "body")
    if body is None:
        return ()
    names = _names(body, decorators)
    return surest(claim for expression in _assertions(body) for claim in _claimed(expression, names, helpers))


def _assertions(body: Node) -> Iterator[Node]:
    """Asserted expressions and bare calls that are reached whenever the test runs to its end."""
    for statement in body.named_children:
        match statement.type:
            case "assert_statement":
                yield statement.named_children[0]
            case "expression_statement" if [child.type for child in statement.named_children] == ["call"]:
                yield statement.named_children[0]
            case "for_statement" | "with_statement":
                inner = field(statement, "body")
                if inner is not None and not _expects_exception(statement):
                    yield from _assertions(inner)


def _expects_exception(statement: Node) -> bool:
    items = [child for child in statement.named_children if child.type == "with_clause"]
    return any(re.search(r"raises|warns", text_of(item), re.IGNORECASE) for item in items)


def _claimed(expression: Node, names: Names, helpers: frozenset[str]) -> Iterator[Expected]:
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


def _of_call(call: Node, names: Names, helpers: frozenset[str]) -> Iterator[Expected]:
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
        for part in reversed(within(call, "arguments")):
            yield from _of(Rank.HELPER, _literals(part))
        yield from _put_in(call, names)


def _of_comparison(comparison: Node, names: Names) -> Iterator[Expected]:
    operators = [child.type for child in comparison.children if not child.is_named]
    if len(comparison.named_children) != 2:
        return
    left, right = comparison.named_children
    if operators in (["=="], ["is"]):
        yield from _equal(left, right, names)
    elif operators == ["in"]:
        yield from _inside(left)


def _equal(first: Node, second: Node, names: Names) -> Iterator[Expected]:
    """One side is what is expected: the one that is written down, else the second."""
    plain = [_plain(side, names) for side in (first, second)]
    actual, expected = (second, first) if plain == [True, False] else (first, second)
    if all(plain) and first.type != "identifier":
        actual, expected = second, first
    if CONSTANT.fullmatch(text_of(expected)):
        yield from _of(Rank.NAMED, [expected])
    rank = max(_between(actual, names), Rank.VALUE if any(plain) else Rank.MIXED)
    yield from _of(rank, (each for value in _meant(expected, names) for each in _literals(value)))
    yield from _put_in(actual, names)


def _inside(looked_for: Node) -> Iterator[Expected]:
    if looked_for.type == "string" and len(text_of(looked_for)) >= LEAST + len("''"):
        yield from _of(Rank.LOOSE, [looked_for])


def _put_in(actual: Node, names: Names) -> Iterator[Expected]:
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


def _of(rank: Rank, literals: Iterable[Node]) -> Iterator[Expected]:
    return (Expected(span=literal.byte_range, sureness=rank) for literal in literals)


def _meant(node: Node, names: Names) -> list[Node]:
    return names.get(text_of(node), []) or [node] if node.type == "identifier" else [node]


def _plain(side: Node, names: Names) -> bool:
    """Nothing but literals."""
    values = _meant(side, names)
    return bool(values) and all(_made_of_literals(value) for value in values)


def _made_of_literals(value: Node) -> bool:
    return all(
        not node.is_named or node.type in LITERALS | MADE_OF or node.type.startswith(("string_", "escape_"))
        for node in walk(value)
    )


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


def _aside(argument: Node) -> bool:
    return argument.type == "keyword_argument" and text_of(field(argument, "name")) in ASIDE


def _names(body: Node, decorators: Iterable[Node]) -> Names:
    found: dict[str, list[Node]] = defaultdict(list)
    for decorator in decorators:
        for call in walk(decorator):
            if call.type == "call" and called(call) == "parametrize":
                _bind_parameters(arguments(call), found)
    for node in walk(body, besides=NESTED):
        left, right = field(node, "left"), field(node, "right")
        if node.type == "assignment" and right is not None:
            _bind(left, [right] if right.type != "identifier" else [], found)
        elif node.type == "for_statement" and right is not None:
            _bind(left, [item for row in _meant(right, found) for item in _items(row)], found)
    return found


def _bind_parameters(given: list[Node], names: dict[str, list[Node]]) -> None:
    """`@parametrize("a, b", [(1, 2), …])`: each name stands for its column."""
    if len(given) < 2:
        return
    listed = [name for part in walk(given[0]) if part.type == "string_content" for name in text_of(part).split(",")]
    for row in _items(given[1]):
        # `pytest.param(1, 2, id="…")`
        cells = arguments(row) if row.type == "call" else _items(row) if len(listed) > 1 else [row]
        for name, cell in zip(listed, cells, strict=False):
            names[name.strip()].append(cell)


def _bind(target: Node | None, values: list[Node], names: dict[str, list[Node]]) -> None:
    if target is None:
        return
    if target.type == "identifier":
        names[text_of(target)] += values
        return
    for place, part in enumerate(target.named_children if target.type in ("pattern_list", "tuple_pattern") else ()):
        columns = [_items(value) for value in values]
        _bind(part, [items[place] for items in columns if place < len(items)], names)


def _items(node: Node) -> list[Node]:
    if node.type not in ("list", "tuple", "set", "expression_list"):
        return []
    return [child for child in node.named_children if child.type != "comment"]


def arguments(call: Node) -> list[Node]:
    """By position."""
    unnamed = ("keyword_argument", "list_splat", "dictionary_splat")
    return [child for child in within(call, "arguments") if child.type not in unnamed]


def called(call: Node) -> str:
    """The last part of the name of what is called."""
    function = field(call, "function")
    if function is not None and function.type == "attribute":
        function = field(function, "attribute")
    return text_of(function) if function is not None and function.type == "identifier" else ""
