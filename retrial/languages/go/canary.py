"""Canaries for Go: copies of `Test` functions in which what is expected is another, in their body or in their table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING

from retrial.checks import Canary, Naming
from retrial.languages.canaries.candidates import NAME, Expected, Test, TestFile, candidates, changed
from retrial.languages.canaries.syntax import Span, field, walk, walk_types, within
from retrial.languages.canaries.syntax import bytes_of as text
from retrial.languages.go.package import BUILT_IN, LITERALS, WANTED, GoFile, Package, Table, last, only_value, packages

if TYPE_CHECKING:
    from tree_sitter import Node

FAILS = re.compile(rb"\.(?:Fatal|Error|Fail)")
DECLARATIONS = ("short_var_declaration", "range_clause", "var_spec", "parameter_declaration")
CONDITIONS = ("binary_expression", "unary_expression", "parenthesized_expression", "expression_list")
ESCAPE = b"'\\"
"""Begins a character that stays a single one only as it is."""
ROWS = 4
"""Of a table, that are tried."""
WEAK = f"""\
func {NAME}(t *testing.T) {{
	if got, want := 1, 2; got != want {{
		t.FAIL("got %d, want %d", got, want)
	}}
}}

"""


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    """The fullest file first."""
    found = [_file(package, source) for package in packages(files) for source in package.sources]
    return candidates(sorted(found, key=lambda file: -len(file.tests)))


def _file(package: Package, source: GoFile) -> TestFile:
    tests = [_test(package, source, test) for test in source.tests]
    fail = "Fatalf" if source.text.count(b".Fatalf(") >= source.text.count(b".Errorf(") else "Errorf"
    weak = WEAK.replace("FAIL", fail)
    return TestFile(path=source.path, source=source.text, tests=tests, naming=Naming.PASCAL, prefix="Test", weak=weak)


def _test(package: Package, source: GoFile, test: Node) -> Test:
    spans = chain(_values(package, test), _comparisons(test))
    plain = (Expected(span=span, sureness=0) for span in spans if not source.text.startswith(ESCAPE, span[0]))
    changes = chain(_tables(package, source, test), plain)
    return Test(
        whole=(_beginning(test), test.end_byte),
        name=(field(test, "name") or test).byte_range,
        expected=() if _leans_on_state(package, test) else tuple(changes),
    )


def _beginning(test: Node) -> int:
    """With the comments right above it, which are its own."""
    first = test
    while (above := first.prev_sibling) and above.type == "comment":
        if above.end_point[0] + 1 != first.start_point[0]:
            break
        first = above
    return first.start_byte


def _leans_on_state(package: Package, test: Node) -> bool:
    """Calls that are made for what they do to a package, or its variables: then a copy would disturb other tests. So
    would what a copy has started and, when it fails, does not wait for."""
    local = {text(child) for node in walk_types(test, "expression_list") for child in node.named_children}
    known = local | package.functions | BUILT_IN
    for node in walk(test):
        if node.type == "go_statement":
            return True
        called = field(node, "function") if node.type == "call_expression" else None
        made_for_effect = called and node.parent and node.parent.type == "expression_statement"
        if called and made_for_effect and called.type == "identifier" and text(called) not in known:
            return True
        operand = field(node, "operand") if node.type == "selector_expression" else None
        if operand and operand.type == "identifier" and text(operand)[:1].isupper() and text(operand) not in local:
            return True
    return False


def _tables(package: Package, source: GoFile, test: Node) -> Iterator[Expected]:
    """Those in the test itself, then those of the package that it names: a copy has one of its own under that name."""
    for node in walk_types(test, "composite_literal"):
        listed = text(field(node, "type")).startswith((b"[", b"map["))
        if listed and node.parent and node.parent.type in ("expression_list", "range_clause"):
            for of, new in _rows(package, node, source, alone=_only_ranged_over(test, node)):
                yield Expected(span=node.byte_range, sureness=0, other=new, of=of)
    own = _declared(test)
    inside = (field(test, "body") or test).start_byte + 1
    names = dict.fromkeys(text(node) for node in walk_types(test, "identifier"))
    for name in names:
        table = package.tables.get(name)
        if table and name not in own and _imports(table) <= source.imports:
            ranged = _ranged(test, name)
            rank = package.rank(name) if not package.row(field(table.value, "type")) else None
            for of, new in _rows(package, table.value, table.source, alone=ranged, rank=rank):
                yield Expected(span=(inside, inside), sureness=0, other=f"\n\t{_decoded(name)} := {new}", of=of)


def _rows(
    package: Package, table: Node, source: GoFile, *, alone: bool, rank: int | None = None
) -> Iterator[tuple[str, str]]:
    """The table with another literal in one of its rows: with that row `alone`, or with all of them."""
    kind = field(table, "type")
    found = ((row, spans) for row in within(table, "body") if (spans := package.literals(row, kind, rank)))
    for row, spans in islice(found, ROWS):
        before, behind = row.byte_range if alone else table.byte_range
        for start, end in spans[:2]:
            literal = source.text[start:end]
            other = None if literal.startswith(ESCAPE) else changed(_decoded(literal))
            if other is not None:
                new = f"{_decoded(source.text[before:start])}{other}{_decoded(source.text[end:behind])}"
                of = f"{literal.decode(errors='replace')} is {other}"
                yield of, (f"{_decoded(text(kind))}{{\n\t\t{new},\n\t}}" if alone else new)


def _declared(test: Node) -> set[bytes]:
    """Names of its own."""
    declarations = [node for node in walk(test) if node.type in DECLARATIONS]
    names = [field(node, "left") or field(node, "name") for node in declarations]
    return {text(each) for name in names if name for each in walk_types(name, "identifier")}


def _only_ranged_over(test: Node, table: Node) -> bool:
    if table.parent is None or table.parent.type == "range_clause":
        return True
    declaration = table.parent.parent
    left = field(declaration, "left") or field(declaration, "name")
    return left is not None and _ranged(test, text(left))


def _ranged(test: Node, name: bytes) -> bool:
    """Nothing is done with it but to look at each of its rows."""
    whole = re.escape(name)
    uses = len(re.findall(rb"\b%s\b" % whole, text(test)))
    ranges = len(re.findall(rb"\brange %s\b" % whole, text(test)))
    declared = len(re.findall(rb"\b%s\s*:?=" % whole, text(test)))
    return ranges > 0 and uses == ranges + declared


def _imports(table: Table) -> frozenset[bytes]:
    names = {text(node) for node in walk(table.value) if node.type in ("identifier", "package_identifier")}
    return table.source.imports & names


def _values(package: Package, test: Node) -> Iterator[Span]:
    """Variables that are called so, and what is handed to functions that are told what to expect."""
    for node in walk(test):
        if node.type in ("short_var_declaration", "var_spec"):
            names, value = field(node, "left") or field(node, "name"), only_value(node)
            # What a call gives is what it was given.
            if value and value.type != "call_expression" and WANTED.search(text(names)):
                yield from package.literals(value, None, rank=0)[:2]
        elif node.type == "call_expression" and text(field(node, "function")) in package.told:
            arguments = node.named_children[-1].named_children
            for argument in arguments[package.told[text(field(node, "function"))] :][:1]:
                yield from package.literals(argument, None, rank=0)[:2]


def _comparisons(test: Node) -> Iterator[Span]:
    """`got != 3`, where the test fails then."""
    for node in walk_types(test, "binary_expression"):
        sides = [side for side in (field(node, "left"), field(node, "right")) if side]
        literals = [side for side in sides if side.type in LITERALS or _negative(side)]
        equality = text(field(node, "operator")) in (b"==", b"!=")
        if equality and len(literals) == 1 and any(map(_got, sides)) and _fails(node):
            yield literals[0].byte_range


def _got(side: Node) -> bool:
    """A field in small letters is a row's: what a test goes by, not what it got."""
    own_field = side.type == "selector_expression" and last(side)[:1].islower()
    return side.type in ("identifier", "call_expression", "selector_expression") and not own_field


def _negative(node: Node) -> bool:
    return node.type == "unary_expression" and node.named_children[0].type in LITERALS


def _fails(condition: Node) -> bool:
    node: Node | None = condition
    while node and node.type in CONDITIONS:
        node = node.parent
    if node is None or node.type not in ("if_statement", "expression_case"):
        return False
    return FAILS.search(text(field(node, "consequence") or node)) is not None


def _decoded(source: bytes) -> str:
    return source.decode("utf-8", "surrogateescape")
