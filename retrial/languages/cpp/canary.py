"""C++: tests that must fail, out of Catch's test cases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from retrial.languages.canaries.candidates import MOST, NAME, TestFile, candidates
from retrial.languages.canaries.expected import Draft, Expected, Sureness, line, ranked
from retrial.languages.canaries.syntax import parse, walk
from retrial.types import Canary, Naming

if TYPE_CHECKING:
    from tree_sitter import Node

TEST = "TEST_CASE"
LITERALS = frozenset({"number_literal", "string_literal", "raw_string_literal", "char_literal", "true", "false"})
LOOPS = frozenset({"for_statement", "for_range_loop", "while_statement", "do_statement"})
WAITS = re.compile(rb"thread|sleep|async")
# Tests that are hidden, or that may or should fail.
SPECIAL = re.compile(rb"\[[.!]")

ASSERTS = re.compile(r"(?:REQUIRE|CHECK)(?P<kind>_FALSE|_THAT)?")
ASSERTION = re.compile(rb"\b(?:REQUIRE|CHECK)")
# What makes a value out of others; any other function may be the solution's.
MAKERS = re.compile(r"(?:std::)?(?:string|string_view|make_\w+|vector\b.*|optional\b.*)|(?:\w+::)*Approx")
# What a constant may be part of, where it is a value.
VALUES = frozenset(
    {"binary_expression", "initializer_list", "argument_list", "init_declarator", "assignment_expression"}
)
# What has tests in it, side by side.
BLOCKS = ("translation_unit", "preproc_if", "preproc_el", "declaration_list")

WEAK = f'TEST_CASE("{NAME}") {{\n    REQUIRE(1 == 2);\n}}\n\n'


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    found = [_candidates(path, source) for path, source in sorted(files.items()) if path.endswith("_test.cpp")]
    strong = [canary for canary in chain.from_iterable(found) if canary.strong]
    weak = [canary for canary in chain.from_iterable(found) if not canary.strong]
    return (*strong[:MOST], *weak[:1])


def _candidates(path: str, source: bytes) -> tuple[Canary, ...]:
    file = _File.of(parse("cpp", source))
    drafts = [file.draft(source, test) for test in file.tests]
    names = [source[slice(*draft.name)] for draft in drafts]
    naming = Naming.SNAKE if names and all(b" " not in name for name in names) else Naming.WORDS
    tests = TestFile(path=path, source=source, tests=ranked(drafts), naming=naming)
    return candidates(tests, WEAK)


@dataclass(frozen=True, slots=True)
class _Test:
    start: Node
    """The statement that begins it."""
    name: Node
    body: Node
    scope: int = 0
    """Where the last thing ends, of those before it in the same block, that is no test: tests may lean on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """What is looked up while its tests are read."""

    tests: tuple[_Test, ...]
    helpers: frozenset[str]
    """Functions that assert, to be called by tests."""
    constants: Mapping[str, tuple[str, ...]]
    """Scope → those of its names that are used as values."""

    @classmethod
    def of(cls, root: Node) -> _File:
        tests, helpers = list[_Test](), set[str]()
        constants: dict[str, dict[str, None]] = {}
        for node in walk(root):
            if node.type.startswith(BLOCKS):
                tests += _tests(node)
            elif node.type == "function_definition" and ASSERTION.search(_bytes(node.child_by_field_name("body"))):
                helpers.add(_function(node.child_by_field_name("declarator")))
            elif constant := _constant(node):
                constants.setdefault(constant[0], {})[constant[1]] = None
        return cls(
            tests=tuple(tests),
            helpers=frozenset(helpers),
            constants={scope: tuple(names) for scope, names in constants.items()},
        )

    def draft(self, source: bytes, test: _Test) -> Draft:
        nodes = tuple(walk(test.body))
        return Draft(
            whole=(line(source, test.start.start_byte), test.body.end_byte),
            name=test.name.byte_range,
            expected=tuple(self._expected(nodes)),
            scope=test.scope,
            unsteady=any(node.type in LOOPS for node in nodes) or bool(WAITS.search(_bytes(test.body))),
        )

    def _expected(self, nodes: tuple[Node, ...]) -> Iterator[Expected]:
        variables = _variables(nodes)
        for name, values in variables.items():
            if name.startswith("expect"):
                yield from _all((node for value in values for node in walk(value)), Sureness.VARIABLE)
                yield from self._other_constants(values)
        for node in nodes:
            if node.type == "call_expression":
                yield from self._asserted(node, variables)

    def _asserted(self, call: Node, variables: Mapping[str, list[Node]]) -> Iterator[Expected]:
        name, arguments = _function(call), _arguments(call)
        if name in self.helpers:
            yield from _all(_values(*reversed(arguments)), Sureness.ARGUMENT)
        macro = ASSERTS.fullmatch(name)
        if macro is None or not arguments:
            return
        if macro["kind"] == "_THAT":
            matched = _arguments(arguments[-1])[:1]
            yield from _all(_values(*matched), Sureness.VALUE)
        elif macro["kind"] is None and (sides := _sides(arguments)):
            for side in sides:
                yield from _all(_values(side), Sureness.VALUE)
                yield from self._other_constants([side])
                yield from _all(_values(*variables.get(_text(side), ())), Sureness.VARIABLE)
        elif len(arguments) == 1 and _bare(arguments[0]).type not in ("binary_expression", "unary_expression"):
            yield _other_truth(call, name)

    def _other_constants(self, nodes: Iterable[Node]) -> Iterator[Expected]:
        for part in _values(*nodes):
            scope, name = _constant(part) or ("", "")
            others = [other for other in self.constants.get(scope, ()) if other != name]
            if others:
                yield Expected(span=part.byte_range, sureness=Sureness.CONSTANT, other=f"{scope}::{others[0]}")


def _tests(block: Node) -> Iterator[_Test]:
    scope = block.start_byte
    for node in block.named_children:
        found = _test(node)
        if found:
            yield replace(found, scope=scope)
        elif node.type not in ("comment", "compound_statement"):
            scope = node.end_byte


def _test(statement: Node) -> _Test | None:
    call, body = statement.named_children[:1], statement.next_named_sibling
    if not call or _function(call[0]) != TEST or body is None or body.type != "compound_statement":
        return None
    given = _arguments(call[0])
    name = given[0].named_children if given and given[0].type == "string_literal" else []
    plain = len(name) == 1 and name[0].type == "string_content" and not SPECIAL.search(_bytes(call[0]))
    return _Test(statement, name[0], body) if plain else None


def _sides(arguments: tuple[Node, ...]) -> tuple[Node, ...]:
    """Of an equality."""
    found = _bare(arguments[0])
    left, operator, right = (found.child_by_field_name(field) for field in ("left", "operator", "right"))
    if len(arguments) != 1 or left is None or right is None or _text(operator) != "==":
        return ()
    return left, right


def _bare(node: Node) -> Node:
    while node.type == "parenthesized_expression" and node.named_children:
        node = node.named_children[0]
    return node


def _other_truth(call: Node, macro: str) -> Expected:
    """Of something that is true or false by itself. Never of a comparison: a negated one fails as it must for a value
    that is equal to anything."""
    bare = macro.removesuffix("_FALSE")
    span = call.start_byte, call.start_byte + len(macro)
    return Expected(span=span, sureness=Sureness.CONSTANT, other=bare if bare != macro else f"{macro}_FALSE")


def _all(nodes: Iterable[Node], sureness: Sureness) -> Iterator[Expected]:
    return (Expected(span=node.byte_range, sureness=sureness) for node in nodes if _literal(node))


def _values(*nodes: Node) -> Iterator[Node]:
    """Those that are compared with; what a function gets or an index is may be put in."""
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        yield node
        called = node.type == "call_expression" and not MAKERS.fullmatch(_text(node.child_by_field_name("function")))
        if not called and node.type not in ("subscript_expression", "lambda_expression", "template_argument_list"):
            waiting += reversed(node.children)


def _literal(node: Node) -> bool:
    text = _bytes(node)
    if node.type == "char_literal":
        return b"\\" not in text
    # Of a raw text with a delimiter of its own, the last letter would be that one's.
    return node.type in LITERALS and (node.type != "raw_string_literal" or text.endswith(b')"'))


def _variables(nodes: Iterable[Node]) -> Mapping[str, list[Node]]:
    """Name → what is put into it, at first and later."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if node.type in ("init_declarator", "assignment_expression"):
            first = node.type == "init_declarator"
            name = node.child_by_field_name("declarator" if first else "left")
            value = node.child_by_field_name("value" if first else "right")
            if value is not None:
                found.setdefault(_text(name).lstrip("&* "), []).append(value)
    return found


def _constant(node: Node) -> tuple[str, str] | None:
    """Scope and name of what may be a value of an enumeration."""
    if node.type != "qualified_identifier" or node.parent is None or node.parent.type not in VALUES:
        return None
    scope, _, name = _text(node).rpartition("::")
    plain = re.fullmatch(r"\w+(?:::\w+)*", scope) and re.fullmatch(r"\w+", name) and not scope.startswith("std")
    return (scope, name) if plain else None


def _function(node: Node | None) -> str:
    """Its name, of a call or a declaration: without what its template is for."""
    while node is not None and (inner := node.child_by_field_name("function") or _declared(node)):
        node = inner
    return _text(node)


def _declared(node: Node) -> Node | None:
    return node.child_by_field_name("declarator") or (
        node.child_by_field_name("name") if node.type == "template_function" else None
    )


def _arguments(call: Node) -> tuple[Node, ...]:
    found = call.child_by_field_name("arguments")
    return tuple(node for node in found.named_children if node.type != "comment") if found else ()


def _bytes(node: Node | None) -> bytes:
    return (node.text or b"") if node else b""


def _text(node: Node | None) -> str:
    return _bytes(node).decode("utf-8", "surrogateescape")
