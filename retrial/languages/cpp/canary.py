"""C++: tests that must fail, out of Catch's test cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from retrial.checks import Canary, Naming
from retrial.languages.canaries.asserted import Rules, find_tests, parent_scope
from retrial.languages.canaries.candidates import NAME, TestFile, candidates

if TYPE_CHECKING:
    from tree_sitter import Node

WEAK = f'TEST_CASE("{NAME}") {{\n    REQUIRE(1 == 2);\n}}\n\n'
QUERY = r"""
; Not those that are hidden, or that may or should fail.
((_ . (call_expression function: (_) @_called
        arguments: (argument_list . (comment)* . (string_literal . (string_content) @name .)) @_tags)) @test
    . (comment)* . (compound_statement) @body
    (#eq? @_called "TEST_CASE") (#not-match? @_tags "\\[[.!]"))

(function_definition
    declarator: [(function_declarator declarator: (_) @helper) (_ (function_declarator declarator: (_) @helper))]
    body: (_) @_body (#match? @_body "\\b(REQUIRE|CHECK)"))
(call_expression
    function: [(identifier) @called (template_function name: (_) @called)] arguments: (_) @arguments) @assertion

(call_expression function: (_) @_called arguments: (argument_list . [
        (binary_expression left: (_) @value operator: "==" right: (_) @value)
        (parenthesized_expression (binary_expression left: (_) @value operator: "==" right: (_) @value))
    ] .) (#any-of? @_called "REQUIRE" "CHECK")) @assertion
(call_expression function: (_) @_called
    arguments: (argument_list (call_expression arguments: (argument_list . (_) @value)) .)
    (#any-of? @_called "REQUIRE_THAT" "CHECK_THAT")) @assertion
(call_expression function: (_) @truth arguments: (argument_list . (_) @tested .)) @assertion

[(binary_expression) (unary_expression)] @comparison
(parenthesized_expression [(binary_expression) (unary_expression)]) @comparison

(init_declarator declarator: [(identifier) @variable (_ (identifier) @variable)] value: (_) @assigned)
(assignment_expression left: (_) @variable right: (_) @assigned)
([(binary_expression (qualified_identifier) @constant) (initializer_list (qualified_identifier) @constant)
    (argument_list (qualified_identifier) @constant) (init_declarator (qualified_identifier) @constant)
    (assignment_expression (qualified_identifier) @constant)] (#match? @constant "^(?!std)\\w+(::\\w+)+$"))

[(number_literal) (string_literal) (true) (false)] @literal
((char_literal) @literal (#not-match? @literal "\\\\"))
; With a delimiter of its own, the last letter would be that one's.
((raw_string_literal) @literal (#match? @literal "\\)\"$"))
[(subscript_expression) (lambda_expression) (template_argument_list)] @opaque
; What makes a value out of others is none of the solution's functions.
((call_expression function: (_) @_called) @opaque
    (#not-match? @_called "^((std::)?(string|string_view|make_\\w+|vector\\b.*|optional\\b.*)|(\\w+::)*Approx)$"))

[(for_statement) (for_range_loop) (while_statement) (do_statement)] @unsteady
([(identifier) (field_identifier) (type_identifier) (namespace_identifier)] @unsteady
    (#match? @unsteady "thread|sleep|async"))
"""


def _scope(test: Node, scopes: Mapping[int, int]) -> int:
    """Return where the last thing before the test that is no test ends, in the same block: tests may lean on it."""
    before = test.prev_named_sibling
    while before is not None and before.type in ("comment", "compound_statement"):
        before = before.prev_named_sibling
    return scopes.get(before.start_byte, before.end_byte) if before else parent_scope(test, scopes)


RULES = Rules(
    grammar="cpp",
    query=QUERY,
    negations={"REQUIRE": "REQUIRE_FALSE", "CHECK": "CHECK_FALSE", "REQUIRE_FALSE": "REQUIRE", "CHECK_FALSE": "CHECK"},
    scope=_scope,
)


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    return candidates(_file(path, source) for path, source in sorted(files.items()) if path.endswith("_test.cpp"))


def _file(path: str, source: bytes) -> TestFile:
    tests = find_tests(RULES, source)
    plain = tests and all(b" " not in source[slice(*test.name)] for test in tests)
    naming = Naming.SNAKE if plain else Naming.WORDS
    return TestFile(path=path, source=source, tests=tests, naming=naming, weak=WEAK)
