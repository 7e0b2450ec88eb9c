"""What tests of JavaScript expect: the literals of it, and how much each is worth as the one that is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from retrial.languages.canaries import syntax
from retrial.languages.canaries.candidates import Span

if TYPE_CHECKING:
    from tree_sitter import Node

# A value that equals everything can deceive the first of these, so a canary is best made of them.
EQUAL, SAME, THROWN = 0, 1, 10
MATCHERS = {
    "toEqual": EQUAL,
    "toStrictEqual": EQUAL,
    "toBe": SAME,
    "toBeCloseTo": SAME,
    "toHaveLength": SAME,
    "toThrow": THROWN,
    "toThrowError": THROWN,
}
ASSERTIONS = {
    "deepEqual": EQUAL,
    "deepStrictEqual": EQUAL,
    "equal": EQUAL,
    "strictEqual": SAME,
    "throws": THROWN,
    "rejects": THROWN,
}
TRUTHS = ("assert", "ok")

DECLARATIONS = ("lexical_declaration", "variable_declaration")
CALLS = ("call_expression", "new_expression", "await_expression")
LITERALS = ("number", "string", "template_string", "true", "false")
FILLED = {"array": "[0]", "object": "{ x: 0 }"}
"""For empty ones."""
WITHIN = ("array", "object", "unary_expression", "parenthesized_expression", "binary_expression")
EMPTY, OFTEN, MADE, DERIVED = 1, 3, 3, 6
"""How much worse a literal is that holds nothing, one that may be put in as well as expected, one that a call makes
something of, and one that is not compared with what the solution gave, but with what was made of that."""


def literals(body: Node, table: Node | None) -> list[tuple[int, Span, str]]:
    """The best (the least rank) first, with what is to be in its place where that does not go without saying.

    `table` is what `test.each` was given.
    """
    found: dict[Span, tuple[int, str]] = {}
    for rank, expected in _expected(body):
        for worse, literal in _values(expected, body, table):
            this = (rank + worse, FILLED.get(literal.type, ""))
            found[literal.byte_range] = min(this, found.get(literal.byte_range, this))
    return sorted((rank, span, other) for span, (rank, other) in found.items())


def failures(root: Node) -> Iterator[str]:
    """Assertions in the manner of the file's own that nothing can make true."""
    for call in _calls(root):
        if matcher := _matcher(call):
            if MATCHERS[matcher] in (EQUAL, SAME):
                yield f"expect(1).{'toBe' if matcher == 'toHaveLength' else matcher}(2)"
        elif (name := _last(call)) in ASSERTIONS and ASSERTIONS[name] in (EQUAL, SAME):
            yield f"{_callee(call)}(1, 2)"
        elif name in TRUTHS:
            yield f"{_callee(call)}(1 === 2)"


def filled(template: Node) -> bool:
    """Something is put into it when it runs."""
    return any(child.type == "template_substitution" for child in template.named_children)


def changeable(declaration: Node) -> Iterator[bytes]:
    """Names that it declares of what is no plain value: whoever uses it may change it."""
    constant = (declaration.text or b"").startswith(b"const")
    for declarator in declaration.named_children if declaration.type in DECLARATIONS else ():
        name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
        plain = value is not None and ((constant and value.type in LITERALS) or _text(value).startswith("require("))
        if name is not None and not plain:
            yield name.text or b""


def assigned(statement: Node) -> Iterator[bytes]:
    for node in syntax.walk(statement):
        left = node.child_by_field_name("left") if node.type == "assignment_expression" else None
        if left is not None:
            yield left.text or b""


def _expected(body: Node) -> Iterator[tuple[int, Node]]:
    for call in _calls(body):
        arguments = _arguments(call)
        if matcher := _matcher(call):
            worse = DERIVED * any(not _given(node, body) for node in _actual(call))
            yield from ((MATCHERS[matcher] + worse, node) for node in arguments[:1])
        elif (name := _last(call)) in ASSERTIONS:
            # What is expected comes second, but not everybody knows.
            pair = arguments[1::-1] if arguments and arguments[0].type in LITERALS else arguments[:2]
            worse = DERIVED * any(not _given(node, body) for node in pair[:1])
            yield from ((ASSERTIONS[name] + worse, node) for node in pair[1:])
        elif name in TRUTHS and arguments and _compares(arguments[0]):
            sides = reversed(arguments[0].named_children)
            yield from ((SAME + DERIVED, node) for node in sides if node.type not in CALLS)


def _given(actual: Node, body: Node) -> bool:
    """It is what the solution gave: not a comparison of that, nor something that the test itself made."""
    if actual.type in ("binary_expression", "unary_expression"):
        return False
    declared = [value for _, value in _declared(actual.text or b"", body)] if actual.type == "identifier" else []
    return not declared or any(node.type in CALLS for value in declared for node in syntax.walk(value))


def _values(expected: Node, body: Node, table: Node | None) -> Iterator[tuple[int, Node]]:
    """The literals that an expected value is made of."""
    waiting, known = [(0, expected)], set()
    while waiting:
        worse, node = waiting.pop()
        if node.id in known:
            continue
        known.add(node.id)
        if node.type in LITERALS and not filled(node):
            yield worse, node
        if node.type in FILLED and not node.named_children:
            yield worse + EMPTY, node
        waiting += reversed(list(_parts(node, worse, body, table)))


def _parts(node: Node, worse: int, body: Node, table: Node | None) -> Iterator[tuple[int, Node]]:
    if node.type in WITHIN:
        yield from ((worse, child) for child in node.named_children)
    elif node.type == "pair" and (value := node.child_by_field_name("value")):
        yield worse, value
    elif node.type == "new_expression":
        yield from ((worse, child) for child in _arguments(node))
    elif node.type == "member_expression" and (owner := node.child_by_field_name("object")):
        yield worse, owner
    elif node.type == "call_expression":
        function = node.child_by_field_name("function")
        if function and function.type == "member_expression":
            yield worse, function
        yield from ((worse + MADE, child) for child in _arguments(node))
    elif node.type == "identifier":
        yield from ((worse + more, child) for more, child in _named(node.text or b"", body, table))


def _named(name: bytes, body: Node, table: Node | None) -> Iterator[tuple[int, Node]]:
    """What the test says that name stands for: a declaration, or a column of its table."""
    yield from _declared(name, body)
    parameters = body.child_by_field_name("parameters")
    names = [node.text for node in parameters.named_children] if parameters else []
    if table is not None and name in names:
        arrays = (node for node in table.named_children[:1] if node.type == "array")
        for row in (row for array in arrays for row in array.named_children if row.type == "array"):
            yield from ((0, cell) for cell in row.named_children[names.index(name) :][:1])


def _declared(name: bytes, body: Node) -> Iterator[tuple[int, Node]]:
    uses = sum(node.type == "identifier" and node.text == name for node in syntax.walk(body))
    for node in syntax.walk(body):
        declared = node.child_by_field_name("name") if node.type == "variable_declarator" else None
        value = node.child_by_field_name("value")
        if declared is not None and declared.text == name and value is not None:
            yield OFTEN * (uses > 2), value


def _calls(node: Node) -> Iterator[Node]:
    return (found for found in syntax.walk(node) if found.type == "call_expression")


def _matcher(call: Node) -> str:
    """The name of the matcher, if this is `expect(…)` with one that is known, not negated."""
    members = []
    node = call.child_by_field_name("function")
    while node is not None and node.type == "member_expression":
        members.append(_text(node.child_by_field_name("property")))
        node = node.child_by_field_name("object")
    expects = node is not None and node.type == "call_expression" and _callee(node) == "expect"
    return members[0] if expects and members and members[0] in MATCHERS and "not" not in members else ""


def _actual(matcher: Node) -> list[Node]:
    """What `expect` was given."""
    node: Node | None = matcher.child_by_field_name("function")
    while node is not None and node.type == "member_expression":
        node = node.child_by_field_name("object")
    return _arguments(node) if node is not None else []


def _last(call: Node) -> str:
    return _callee(call).rpartition(".")[2]


def _callee(call: Node) -> str:
    function = call.child_by_field_name("function")
    return _text(function) if function is not None and function.type in ("identifier", "member_expression") else ""


def _text(node: Node | None) -> str:
    return (node.text or b"").decode(errors="replace") if node is not None else ""


def _arguments(call: Node) -> list[Node]:
    arguments = call.child_by_field_name("arguments")
    return [node for node in arguments.named_children if node.type != "comment"] if arguments else []


def _compares(node: Node) -> bool:
    operator = node.child_by_field_name("operator")
    return node.type == "binary_expression" and operator is not None and operator.text in (b"===", b"==")
