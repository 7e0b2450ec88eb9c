"""Java: tests that must fail, out of JUnit's test methods."""

from __future__ import annotations

import re
from collections.abc import Mapping

from retrial.checks import Canary, Naming
from retrial.languages.canaries.asserted import Rules, find_tests
from retrial.languages.canaries.candidates import NAME, TestFile, candidates

JUNIT = "org.junit.jupiter.api.Assertions"
ASSERTJ = re.compile(rb"import\s+static\s+org\.assertj\.core\.api\.Assertions\.(?:assertThat|\*)\s*;")
WEAK = "    @org.junit.jupiter.api.Test\n    public void {name}() {{\n        {failure};\n    }}\n\n"
QUERY = r"""
(method_declaration
    (modifiers [(marker_annotation name: (_) @_mark) (annotation name: (_) @_mark)]) name: (_) @name body: (_) @body
    (#any-of? @_mark "Test" "ParameterizedTest")) @test
(modifiers (annotation name: (_) @_rows arguments: (_) @argument (#eq? @_rows "CsvSource")) @assertion)
(method_declaration name: (_) @helper body: (_) @_body (#match? @_body "assert"))
(method_invocation !object name: (_) @called arguments: (_) @arguments) @assertion

; JUnit: what is expected comes first.
(method_invocation name: (_) @_called arguments: (argument_list . (_) @value)
    (#match? @_called "^assert(|Array|Iterable)Equals$|^assertLinesMatch$")) @assertion
(method_invocation object: (_)? @truth name: (_) @_called @truth arguments: (argument_list "(" @truth . (_) @tested)
    (#any-of? @_called "assertTrue" "assertFalse")) @assertion

; AssertJ: how close something must be is no part of what is expected; something else may be in what contains it.
(method_invocation object: (_) @_chain name: (_) @_called arguments: (argument_list (_) @value)
    (#match? @_chain "^assertThat\\w*\\(")
    (#match? @_called "^(isEqualTo|hasSize|hasDimensions|hasToString|contains(Exactly|Only)\\w*)$")) @assertion
(method_invocation object: (_) @_chain name: (_) @_called arguments: (argument_list . (_) @value)
    (#match? @_chain "^assertThat\\w*\\(") (#eq? @_called "isCloseTo")) @assertion
(method_invocation object: (_) @_chain name: (_) @_called arguments: (argument_list (_) @argument)
    (#match? @_chain "^assertThat\\w*\\(")
    (#match? @_called "^(startsWith|endsWith|contains(?!Exactly|Only|IgnoringCase)\\w*)$")) @assertion
(method_invocation object: (_) @_chain name: (_) @_called arguments: (argument_list (_) @message)
    (#match? @_chain "^assertThat\\w*\\(") (#match? @_called "^(with|has)Message(Containing)?$")) @assertion
(method_invocation object: [
        (method_invocation !object name: (_) @_begin arguments: (argument_list (_)* @tested))
        (method_invocation
            object: (method_invocation !object name: (_) @_begin arguments: (argument_list (_)* @tested)))
    ] name: (_) @truth arguments: (argument_list . "(" . ")" .) @truth
    (#match? @_begin "^assertThat")) @assertion

[(binary_expression) (unary_expression) (lambda_expression) (method_reference)] @comparison
((method_invocation name: (_) @_called) @comparison (#eq? @_called "equals"))

(variable_declarator name: (_) @variable value: (_) @assigned)
(assignment_expression left: (_) @variable right: (_) @assigned)
(method_invocation object: (_) @variable arguments: (argument_list (_) @assigned))
((field_access) @constant (#match? @constant "^[A-Z]\\w*\\.[A-Z][A-Z\\d_]*$"))

[(decimal_integer_literal) (hex_integer_literal) (decimal_floating_point_literal)] @literal
[(string_literal) (true) (false)] @literal
((character_literal) @literal (#not-match? @literal "\\\\"))
[(lambda_expression) (array_access) (dimensions_expr)] @opaque
((method_invocation object: (_) @_of) @opaque (#not-match? @_of "^[A-Z]\\w*$"))

[(for_statement) (enhanced_for_statement) (while_statement) (do_statement)] @unsteady
([(identifier) (type_identifier)] @unsteady (#any-of? @unsteady "Thread" "sleep" "ExecutorService"))
"""
RULES = Rules(
    grammar="java",
    query=QUERY,
    negations={
        "isTrue": "isEqualTo(false)",
        "isFalse": "isEqualTo(true)",
        "isZero": "isEqualTo(1)",
        "isOne": "isEqualTo(2)",
        "assertTrue": f"{JUNIT}.assertEquals(false, ",
        "assertFalse": f"{JUNIT}.assertEquals(true, ",
    },
)


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    return candidates(_file(path, source) for path, source in sorted(files.items()) if path.endswith(".java"))


def _file(path: str, source: bytes) -> TestFile:
    tests = find_tests(RULES, source)
    prefix = "test" if tests and all(source.startswith(b"test", test.name[0]) for test in tests) else ""
    failure = "assertThat(1).isEqualTo(2)" if ASSERTJ.search(source) else f"{JUNIT}.assertEquals(1, 2)"
    weak = WEAK.format(name=NAME, failure=failure)
    return TestFile(path=path, source=source, tests=tests, naming=Naming.CAMEL, prefix=prefix, weak=weak)
