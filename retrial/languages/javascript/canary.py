"""Canaries for tests of Jest and of Node's own runner: calls of `test` and `it`, in any `describe`.

Each literal of what they expect has a rank, which says how much it is worth as the one that is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from retrial.checks import Canary, Naming
from retrial.languages.canaries.candidates import NAME, Expected, Test, TestFile, candidates, surest
from retrial.languages.canaries.syntax import Span, bytes_of, field, line, parse, text_of, walk, walk_types, within
from retrial.languages.javascript import RUN
from retrial.patches import policy

if TYPE_CHECKING:
    from tree_sitter import Node

RUNS = re.compile(r"(test|it)(\.only|\.concurrent)?")
SUITES = re.compile(r"(describe|suite)(\.only)?")
FUNCTIONS = ("arrow_function", "function_expression")

LOOPS = re.compile(rb"\b(for|while|forEach)\b")
WAITS = re.compile(rb"\b(setTimeout|setInterval|useFakeTimers|spyOn|mock)\b")
LOOPING, LEANING, WAITING, NOTHING = 2, 4, 16, 32
"""How much worse a test is that may take long, that leans on what is made once for several, that waits or that changes
more than its own; and one without any literal to change."""

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
CALL = "call_expression"
CALLS = (CALL, "new_expression", "await_expression")
LITERALS = ("number", "string", "template_string", "true", "false")
FILLED = {"array": "[0]", "object": "{ x: 0 }"}
"""For empty ones."""
WITHIN = ("array", "object", "arguments", "unary_expression", "parenthesized_expression", "binary_expression")
FOLLOWED = {"pair": "value", "new_expression": "arguments", "member_expression": "object"}
"""What of a node its value is made of."""
EMPTY, OFTEN, MADE, DERIVED = 1, 3, 3, 6
"""How much worse a literal is that holds nothing, one that may be put in as well as expected, one that a call makes
something of, and one that is not compared with what the solution gave, but with what was made of that."""


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    return candidates(_file(path, source) for path, source in sorted(files.items()) if policy.matches(path, RUN))


def _file(path: str, source: bytes) -> TestFile:
    """Only a weak one, at the end, where its tests are made by a loop or by a function of the file's own."""
    root = parse("javascript", source)
    tests = [test for _, test in sorted(_tests(root, source), key=lambda ranked: (ranked[0], ranked[1].whole))]
    weak = ""
    if tests:
        weak = _weak(root, source[tests[0].whole[0] : tests[0].name[0] - 1].decode(errors="replace"))
    elif not root.has_error and (run := next(filter(RUNS.fullmatch, map(_callee, walk_types(root, CALL))), "")):
        end = len(source), len(source)
        tests = [Test(whole=end, name=end, expected=())]
        weak = "\n" + _weak(root, run)
    return TestFile(path=path, source=source, tests=tests, naming=Naming.WORDS, weak=weak)


def _tests(root: Node, source: bytes) -> Iterator[tuple[int, Test]]:
    """Of the file itself, and of the bodies of its suites; the least rank is the best to make a copy of."""
    scopes = [root] if root.type == "program" else []
    for scope in scopes:
        around = _made_around(scope)
        for statement in scope.named_children:
            calls = [child for child in statement.named_children if child.type == CALL]
            if statement.type != "expression_statement" or not calls:
                continue
            given = within(calls[0], "arguments")
            body = next((node for node in given if node.type in FUNCTIONS), None)
            if SUITES.fullmatch(_callee(calls[0])):
                scopes += [block for node in given for block in node.named_children if block.type == "statement_block"]
            elif body and (name := _name(calls[0])):
                # What `test.each` was given.
                table = field(field(calls[0], "function"), "arguments")
                whole, expected = (line(source, statement.start_byte), statement.end_byte), _expected(body, table)
                rank = expected[0].sureness if expected else NOTHING
                test = Test(whole=whole, name=name, expected=expected, scope=scope.start_byte)
                yield rank + _worse(body, table, around), test


def _worse(body: Node, table: Node | None, around: frozenset[bytes]) -> int:
    text = bytes_of(body)
    waits = WAITS.search(text) or (_parameters(body) and table is None)
    leans = any(node.text in around for node in walk_types(body, "identifier"))
    return LOOPING * bool(LOOPS.search(text)) + WAITING * bool(waits) + LEANING * leans


def _name(call: Node) -> Span | None:
    """What stands between the quotes of the first argument, if this makes a test."""
    given = field(call, "arguments")
    first = given.named_children[0] if given and given.named_children else None
    run = _callee(call) or _callee(field(call, "function")).removesuffix(".each")
    if first is None or not RUNS.fullmatch(run):
        return None
    plain = first.type == "string" or (first.type == "template_string" and not _filled(first))
    return (first.start_byte + 1, first.end_byte - 1) if plain else None


def _parameters(function: Node) -> bool:
    parameters = field(function, "parameters") or field(function, "parameter")
    return bool(parameters and (parameters.type == "identifier" or parameters.named_children))


def _made_around(scope: Node) -> frozenset[bytes]:
    """Names of what is made once, outside of tests, and may not be the same after each of them."""
    names: set[bytes] = set()
    anew: set[bytes] = set()
    node: Node | None = scope
    while node:
        for statement in node.named_children if node.type in ("program", "statement_block") else ():
            names.update(_changeable(statement))
            if bytes_of(statement).startswith(b"beforeEach"):
                assigned = (field(node, "left") for node in walk_types(statement, "assignment_expression"))
                anew.update(map(bytes_of, assigned))
        node = node.parent
    return frozenset(names - anew)


def _weak(root: Node, head: str) -> str:
    """Begun as another test is, whose text before its name `head` is."""
    indent = head[: len(head) - len(head.lstrip(" \t"))]
    run = head.strip().removesuffix("(").rstrip()
    test = run if RUNS.fullmatch(run) else "test"
    failure = next(_failures(root), "expect(1).toBe(2)")
    return f"{indent}{test}('{NAME}', () => {{\n{indent}  {failure};\n{indent}}});\n\n"


def _failures(root: Node) -> Iterator[str]:
    """Assertions in the manner of the file's own that nothing can make true."""
    for call in walk_types(root, CALL):
        matcher, _ = _matcher(call)
        name = _last(call)
        if matcher:
            if MATCHERS[matcher] in (EQUAL, SAME):
                yield f"expect(1).{'toBe' if matcher == 'toHaveLength' else matcher}(2)"
        elif ASSERTIONS.get(name) in (EQUAL, SAME):
            yield f"{_callee(call)}(1, 2)"
        elif name in TRUTHS:
            yield f"{_callee(call)}(1 === 2)"


def _filled(template: Node) -> bool:
    """Something is put into it when it runs."""
    return any(child.type == "template_substitution" for child in template.named_children)


def _changeable(declaration: Node) -> Iterator[bytes]:
    """Names that it declares of what is no plain value: whoever uses it may change it."""
    constant = bytes_of(declaration).startswith(b"const")
    for declarator in declaration.named_children if declaration.type in DECLARATIONS else ():
        value = field(declarator, "value")
        plain = value is not None and ((constant and value.type in LITERALS) or text_of(value).startswith("require("))
        if not plain:
            yield bytes_of(field(declarator, "name"))


def _expected(body: Node, table: Node | None) -> tuple[Expected, ...]:
    found = [
        Expected(span=literal.byte_range, sureness=rank + worse, other=FILLED.get(literal.type, ""))
        for rank, value in _compared(body)
        for worse, literal in _values(value, body, table)
    ]
    return surest(sorted(found, key=lambda each: each.span))


def _compared(body: Node) -> Iterator[tuple[int, Node]]:
    for call in walk_types(body, CALL):
        arguments = within(call, "arguments")
        matcher, actual = _matcher(call)
        if matcher:
            worse = DERIVED * any(not _given(node, body) for node in actual)
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
    declared = [value for _, value in _declared(bytes_of(actual), body)] if actual.type == "identifier" else []
    return not declared or any(node.type in CALLS for value in declared for node in walk(value))


def _values(expected: Node, body: Node, table: Node | None) -> Iterator[tuple[int, Node]]:
    """The literals that an expected value is made of."""
    waiting, known = [(0, expected)], set()
    while waiting:
        worse, node = waiting.pop()
        if node.id in known:
            continue
        known.add(node.id)
        if node.type in LITERALS and not _filled(node):
            yield worse, node
        if node.type in FILLED and not node.named_children:
            yield worse + EMPTY, node
        waiting += reversed(list(_parts(node, worse, body, table)))


def _parts(node: Node, worse: int, body: Node, table: Node | None) -> Iterator[tuple[int, Node]]:
    if node.type in WITHIN:
        yield from ((worse, child) for child in node.named_children)
    elif followed := field(node, FOLLOWED.get(node.type, "")):
        yield worse, followed
    elif node.type == CALL:
        function = field(node, "function")
        if function and function.type == "member_expression":
            yield worse, function
        yield from ((worse + MADE, child) for child in within(node, "arguments"))
    elif node.type == "identifier":
        yield from ((worse + more, child) for more, child in _named(bytes_of(node), body, table))


def _named(name: bytes, body: Node, table: Node | None) -> Iterator[tuple[int, Node]]:
    """What the test says that name stands for: a declaration, or a column of its table."""
    yield from _declared(name, body)
    parameters = field(body, "parameters")
    names = [node.text for node in parameters.named_children] if parameters else []
    if table is not None and name in names:
        arrays = (node for node in table.named_children[:1] if node.type == "array")
        for row in (row for array in arrays for row in array.named_children if row.type == "array"):
            yield from ((0, cell) for cell in row.named_children[names.index(name) :][:1])


def _declared(name: bytes, body: Node) -> Iterator[tuple[int, Node]]:
    uses = sum(node.text == name for node in walk_types(body, "identifier"))
    for node in walk_types(body, "variable_declarator"):
        value = field(node, "value")
        if value is not None and bytes_of(field(node, "name")) == name:
            yield OFTEN * (uses > 2), value


def _matcher(call: Node) -> tuple[str, list[Node]]:
    """The matcher, if this is `expect(…)` with one that is known, not negated; and what `expect` was given."""
    members = []
    node = field(call, "function")
    while node is not None and node.type == "member_expression":
        members.append(text_of(field(node, "property")))
        node = field(node, "object")
    if node is None or node.type != CALL or _callee(node) != "expect":
        return "", []
    known = members and members[0] in MATCHERS and "not" not in members
    return (members[0], within(node, "arguments")) if known else ("", [])


def _last(call: Node) -> str:
    return _callee(call).rpartition(".")[2]


def _callee(call: Node | None) -> str:
    function = field(call, "function")
    return text_of(function) if function and function.type in ("identifier", "member_expression") else ""


def _compares(node: Node) -> bool:
    return node.type == "binary_expression" and bytes_of(field(node, "operator")) in (b"===", b"==")
