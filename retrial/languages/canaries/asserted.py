"""Find tests and what they expect by a tree-sitter query. Its captures are all that a language has to say:

    @test @name @body                   a test: where it begins, what names it, where it ends
    @assertion with @value              what the solution's result is compared with
    @assertion with @message            text of an error that is expected
    @assertion with @argument           a value that is expected or put in: used only where there is nothing better
    @assertion with @truth @tested      an assertion that something is true or false, and what that is
    @assertion with @called @arguments  a call that may be one of a helper
    @helper                             name of a function that asserts
    @comparison                         never negated as @tested: what is equal to anything would rightly fail then
    @variable @assigned                 a variable and a value of it
    @constant                           what may be a member of an enumeration, with the path to it
    @literal                            a literal that can be changed
    @opaque                             what is in it is put in, or an index, and not expected
    @unsteady                           a loop, or something that waits

Names that begin with an underscore are for the predicates of the query itself.

What is expected comes first: every solution that passes the test has that value.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from retrial.languages.canaries.candidates import Expected, Test, surest
from retrial.languages.canaries.syntax import Captures, Span, line, matches, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node


class Sureness(IntEnum):
    """How sure it is that a test fails when it expects something else here."""

    VALUE = 0
    """What is compared with, as it stands."""
    VARIABLE = 1
    """The same, by a variable's name."""
    CONSTANT = 2
    """Of an enumeration, or a truth that is asserted."""
    MESSAGE = 3
    ARGUMENT = 4
    """Of a function of the test file that asserts; it may be something that is put in."""


def parent_scope(test: Node, scopes: Mapping[int, int]) -> int:
    return test.parent.start_byte if test.parent else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How tests of a language are found, and how they are copied."""

    grammar: str
    query: str
    negations: Mapping[str, str]
    """Text of one node of `@truth` → what is put in place of all of them."""
    scope: Callable[[Node, Mapping[int, int]], int] = parent_scope
    """(Test, start of each test before it → its scope) → the same number for tests that copies can stand between."""


def find_tests(rules: Rules, source: bytes) -> tuple[Test, ...]:
    """The best to copy first."""
    file = _File(rules, matches(rules.grammar, rules.query, source))
    scopes: dict[int, int] = {}
    steady: list[Test] = []
    unsteady: list[Test] = []
    for test in file.tests:
        begin, name, body = (test[part][0] for part in ("test", "name", "body"))
        scopes[begin.start_byte] = rules.scope(begin, scopes)
        whole = line(source, begin.start_byte), body.end_byte
        found = Test(
            whole=whole,
            name=name.byte_range,
            expected=surest(file.expected(whole)),
            scope=scopes[begin.start_byte],
        )
        (unsteady if _inside(file.unsteady, "unsteady", whole) else steady).append(found)
    return _ranked(steady, unsteady)


def _ranked(steady: list[Test], unsteady: list[Test]) -> tuple[Test, ...]:
    """The surest first; of the same kind those of the largest scope, where a copy has most places to be in. Only where
    there is nothing else is that changed which may be something that is put in, for honest solutions may differ then,
    and are tests copied that loop or wait."""
    found = [*steady, *unsteady]
    if any(each.sureness < Sureness.ARGUMENT for test in found for each in test.expected):
        found = [replace(test, expected=_without_arguments(test)) for test in found]
    if any(test.expected for test in found[: len(steady)]):
        found[len(steady) :] = [replace(test, expected=()) for test in unsteady]
    sizes = Counter(test.scope for test in found)
    return tuple(sorted(found, key=lambda test: (_sureness(test), -sizes[test.scope], test.whole)))


def _sureness(test: Test) -> int:
    return test.expected[0].sureness if test.expected else len(Sureness)


def _without_arguments(test: Test) -> tuple[Expected, ...]:
    return tuple(each for each in test.expected if each.sureness < Sureness.ARGUMENT)


class _File:
    """What the query found; lists are in the order of the text."""

    def __init__(self, rules: Rules, found: list[Captures]) -> None:
        def having(name: str) -> list[Captures]:
            return [captures for captures in found if name in captures]

        self.rules = rules
        # One that is marked as a test twice is one all the same.
        self.tests = list({captures["test"][0].start_byte: captures for captures in having("test")}.values())
        self.assertions, self.variables = having("assertion"), having("variable")
        self.unsteady = having("unsteady")
        self.helpers = frozenset(text_of(captures["helper"][0]) for captures in having("helper"))
        # Path → the constants there.
        self.constants: dict[str, list[str]] = defaultdict(list)
        for captures in having("constant"):
            text = text_of(captures["constant"][0])
            self.constants[_path(text)].append(text)
        # Capture → its nodes.
        marks = ("literal", "opaque", "comparison", "constant")
        self.marked = {name: frozenset(captures[name][0].id for captures in having(name)) for name in marks}

    def expected(self, test: Span) -> Iterator[Expected]:
        variables: dict[str, list[Node]] = defaultdict(list)
        for captures in _inside(self.variables, "variable", test):
            variables[text_of(captures["variable"][0])] += captures["assigned"]
        for name, values in variables.items():
            if name.startswith("expect"):
                yield from self._literals((node for value in values for node in walk(value)), Sureness.VARIABLE)
        for captures in _inside(self.assertions, "assertion", test):
            yield from self._asserted(captures, variables)

    def _asserted(self, captures: Captures, variables: Mapping[str, list[Node]]) -> Iterator[Expected]:
        match captures:
            case {"truth": nodes, "tested": tested}:
                yield from self._negated(nodes, tested)
            case {"called": [name], "arguments": [arguments]}:
                if text_of(name) in self.helpers:
                    yield from self._literals(self._parts(reversed(arguments.children)), Sureness.ARGUMENT)
            case {"value": values}:
                for value in values:
                    meant = variables.get(text_of(value), [])
                    yield from self._literals(self._parts([value]), Sureness.VALUE)
                    yield from self._literals(self._parts(meant), Sureness.VARIABLE)
                    yield from self._other_constants(self._parts([value, *meant]))
            case {"message": nodes}:
                yield from self._literals(self._parts(nodes), Sureness.MESSAGE)
            case {"argument": nodes}:
                yield from self._literals(self._parts(nodes), Sureness.ARGUMENT)

    def _negated(self, nodes: list[Node], tested: list[Node]) -> Iterator[Expected]:
        other = next(filter(None, (self.rules.negations.get(text_of(node)) for node in nodes)), "")
        if other and not any(node.id in self.marked["comparison"] for node in tested):
            span = nodes[0].start_byte, nodes[-1].end_byte
            yield Expected(span=span, sureness=Sureness.CONSTANT, other=other)

    def _literals(self, nodes: Iterable[Node], sureness: Sureness) -> Iterator[Expected]:
        for node in nodes:
            if node.id in self.marked["literal"]:
                yield Expected(span=node.byte_range, sureness=sureness)

    def _other_constants(self, nodes: Iterable[Node]) -> Iterator[Expected]:
        for node in nodes:
            constant = text_of(node) if node.id in self.marked["constant"] else ""
            others = (other for other in self.constants.get(_path(constant), ()) if other != constant)
            if constant and (other := next(others, "")):
                yield Expected(span=node.byte_range, sureness=Sureness.CONSTANT, other=other)

    def _parts(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """Return the nodes and all below them that is not in something opaque."""
        waiting = list(nodes)[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            if node.id not in self.marked["opaque"]:
                waiting += reversed(node.children)


def _inside(found: list[Captures], name: str, span: Span) -> list[Captures]:
    def start(captures: Captures) -> int:
        return captures[name][0].start_byte

    return found[bisect_left(found, span[0], key=start) : bisect_left(found, span[1], key=start)]


def _path(constant: str) -> str:
    return re.sub(r"\w+$", "", constant)
