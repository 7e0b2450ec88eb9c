"""Canaries for tests of Jest and of Node's own runner: calls of `test` and `it`, in any `describe`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from retrial.checks import Canary, Naming
from retrial.languages.canaries import candidates as canary_candidates
from retrial.languages.canaries import syntax
from retrial.languages.canaries.candidates import NAME, Span, Test, TestFile
from retrial.languages.canaries.expected import line
from retrial.languages.javascript import assertions

if TYPE_CHECKING:
    from tree_sitter import Node

RUNS = re.compile(rb"(test|it)(\.only|\.concurrent)?")
SUITES = re.compile(rb"(describe|suite)(\.only)?")
FUNCTIONS = ("arrow_function", "function_expression")

LOOPS = re.compile(rb"\b(for|while|forEach)\b")
WAITS = re.compile(rb"\b(setTimeout|setInterval|useFakeTimers|spyOn|mock)\b")
LOOPING, LEANING, WAITING, NOTHING = 2, 4, 16, 32
"""How much worse a test is that may take long, that leans on what is made once for several, that waits or that changes
more than its own; and one without any literal to change."""


@dataclass(frozen=True, slots=True)
class Found:
    """A test that a copy can be made of, with what can be changed in it, the best first."""

    test: Test
    rank: int
    callee: str


def candidates(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    """Strong ones of each test file in turn, then one weak one."""
    of_each = (iter(_of_file(path, source)) for path, source in sorted(files.items()))
    return canary_candidates.best(canary_candidates.in_turn(of_each))


def _of_file(path: str, source: bytes) -> tuple[Canary, ...]:
    """Only a weak one where its tests are made in a way that is not known here."""
    root = syntax.parse("javascript", source)
    found = sorted(_tests(root, source), key=lambda each: (each.rank, each.test.whole))
    if not found:
        return _at_the_end(path, root, source)
    file = TestFile(path=path, source=source, tests=[each.test for each in found], naming=Naming.WORDS)
    return canary_candidates.candidates(file, _weak(root, found[0].callee, _indent(source, found[0].test.whole)))


def _tests(root: Node, source: bytes) -> Iterator[Found]:
    shared: dict[int, frozenset[bytes]] = {}
    for node in syntax.walk(root):
        scope = node.parent
        if node.type != "expression_statement" or scope is None or not _is_scope(scope):
            continue
        call = next((child for child in node.named_children if child.type == "call_expression"), None)
        if call is not None and (name := _name(call)) and (body := _function(call)):
            if scope.id not in shared:
                shared[scope.id] = _made_around(scope)
            test = Test(
                whole=(line(source, node.start_byte), node.end_byte), name=name, literals=(), scope=scope.start_byte
            )
            yield _found(test, call, body, shared[scope.id])


def _found(test: Test, call: Node, body: Node, around: frozenset[bytes]) -> Found:
    callee = call.child_by_field_name("function")
    table = callee.child_by_field_name("arguments") if callee and callee.type == "call_expression" else None
    text = body.text or b""
    worse = LOOPING * bool(LOOPS.search(text))
    worse += WAITING * bool(WAITS.search(text) or (_parameters(body) and table is None))
    worse += LEANING * bool(around & {node.text for node in syntax.walk(body) if node.type == "identifier"})
    literals = assertions.literals(body, table)
    rank = literals[0][0] if literals else NOTHING
    others = {span: other for _, span, other in literals if other}
    test = replace(test, literals=tuple(span for _, span, _ in literals), others=others)
    called = _callee(call).decode(errors="replace") if table is None else "test"
    return Found(test, worse + rank, called)


def _is_scope(node: Node) -> bool:
    """The file itself, or the body of a suite in such a one."""
    while node.type == "statement_block":
        function = node.parent
        call = function.parent.parent if function and function.parent else None
        if not call or call.type != "call_expression" or not SUITES.fullmatch(_callee(call)):
            return False
        statement = call.parent
        if not statement or statement.type != "expression_statement" or not statement.parent:
            return False
        node = statement.parent
    return node.type == "program"


def _callee(call: Node) -> bytes:
    function = call.child_by_field_name("function")
    return (function.text or b"") if function else b""


def _name(call: Node) -> Span | None:
    """What stands between the quotes of the first argument, if this makes a test."""
    callee = call.child_by_field_name("function")
    arguments = call.child_by_field_name("arguments")
    if callee is None or arguments is None or not arguments.named_children:
        return None
    run = _callee(callee).removesuffix(b".each") if callee.type == "call_expression" else _callee(call)
    first = arguments.named_children[0]
    plain = first.type == "string" or (first.type == "template_string" and not assertions.filled(first))
    return (first.start_byte + 1, first.end_byte - 1) if plain and RUNS.fullmatch(run) else None


def _function(call: Node) -> Node | None:
    arguments = call.child_by_field_name("arguments")
    return next((node for node in arguments.named_children if node.type in FUNCTIONS), None) if arguments else None


def _parameters(function: Node) -> bool:
    parameters = function.child_by_field_name("parameters") or function.child_by_field_name("parameter")
    return bool(parameters and (parameters.type == "identifier" or parameters.named_children))


def _made_around(scope: Node) -> frozenset[bytes]:
    """Names of what is made once, outside of tests, and may not be the same after each of them."""
    names: set[bytes] = set()
    anew: set[bytes] = set()
    node: Node | None = scope
    while node:
        for statement in node.named_children if node.type in ("program", "statement_block") else ():
            names.update(assertions.changeable(statement))
            if (statement.text or b"").startswith(b"beforeEach"):
                anew.update(assertions.assigned(statement))
        node = node.parent
    return frozenset(names - anew)


def _indent(source: bytes, whole: Span) -> str:
    return (re.match(rb"[ \t]*", source[whole[0] :]) or [b""])[0].decode()


def _weak(root: Node, test: str, indent: str) -> str:
    failure = next(assertions.failures(root), "expect(1).toBe(2)")
    return f"{indent}{test}('{NAME}', () => {{\n{indent}  {failure};\n{indent}}});\n\n"


def _at_the_end(path: str, root: Node, source: bytes) -> tuple[Canary, ...]:
    """For tests that are made by a loop or by a function of the file's own."""
    makes = (node for node in syntax.walk(root) if node.type == "call_expression")
    run = next((name for name in map(_callee, makes) if RUNS.fullmatch(name)), b"")
    if not run or root.has_error:
        return ()
    return (
        Canary(
            path=path,
            text="\n" + _weak(root, run.decode(), ""),
            places=(len(source),),
            strong=False,
            naming=Naming.WORDS,
            of="a failure through the same assertion",
        ),
    )
