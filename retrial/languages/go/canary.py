"""Canaries for Go: copies of `Test` functions in which what is expected is another, in their body or in their table.

Where the table is a variable of the package, the copy has one of its own under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

from retrial.checks import Canary, Naming
from retrial.languages.canaries.candidates import MOST, NAME, Span, changed, in_turn, spliced, words
from retrial.languages.canaries.syntax import walk
from retrial.languages.go.package import (  # fmt: skip
    BUILT_IN,
    LITERALS,
    WANTED,
    GoFile,
    Package,
    Table,
    field,
    last,
    packages,
    text,
    walk_types,
)

if TYPE_CHECKING:
    from tree_sitter import Node

FAILS = re.compile(rb"\.(?:Fatal|Error|Fail)")
DECLARATIONS = ("short_var_declaration", "range_clause", "var_spec", "parameter_declaration")
ROWS = 4
"""Of a table, that are tried."""
WEAK = f"""\
func {NAME}(t *testing.T) {{
	if got, want := 1, 2; got != want {{
		t.FAIL("got %d, want %d", got, want)
	}}
}}

"""


@dataclass(frozen=True, slots=True)
class Replacement:
    """Another text for a part of a test, or a declaration to begin with."""

    of: str
    at: Span | None
    new: bytes


def canaries(files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    found = packages(files)
    tests = [(package, source, test) for package in found for source in package.sources for test in source.tests]
    strong = islice(in_turn(_copies(*each) for each in tests), MOST)
    fullest = max((source for _, source, _ in tests), key=lambda source: len(source.tests), default=None)
    return (*strong, *([_weak(fullest)] if fullest else []))


def _copies(package: Package, source: GoFile, test: Node) -> Iterator[Canary]:
    if _leans_on_state(package, test):
        return
    name = text(field(test, "name")).decode()
    for change in chain(_tables(package, source, test), _values(package, test), _comparisons(test)):
        yield _canary(source, _changed(source, test, change), strong=True, of=f"{name}: {change.of}", test=name)


def _weak(source: GoFile) -> Canary:
    fail = "Fatalf" if source.text.count(b".Fatalf(") >= source.text.count(b".Errorf(") else "Errorf"
    return _canary(source, WEAK.replace("FAIL", fail), strong=False, of="a failure through the same assertion")


def _canary(source: GoFile, copy: str, *, strong: bool, of: str, test: str = "") -> Canary:
    return Canary(
        path=source.path,
        text=copy,
        places=tuple(map(_beginning, source.tests)),
        strong=strong,
        naming=Naming.PASCAL,
        prefix="Test",
        words=words(text(field(test, "name")).decode(errors="replace") for test in source.tests),
        test=test,
        of=of,
    )


def _beginning(test: Node) -> int:
    """With the comments right above it, which are its own."""
    first = test
    while (above := first.prev_sibling) and above.type == "comment":
        if above.end_point[0] + 1 != first.start_point[0]:
            break
        first = above
    return first.start_byte


def _changed(source: GoFile, test: Node, change: Replacement) -> str:
    name, body = field(test, "name"), field(test, "body")
    inside = (body or test).start_byte + 1
    changes = ((name or test).byte_range, NAME.encode()), (change.at or (inside, inside), change.new)
    return spliced(source.text, test.byte_range, changes).decode("utf-8", "surrogateescape") + "\n\n"


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


def _tables(package: Package, source: GoFile, test: Node) -> Iterator[Replacement]:
    """Those in the test itself, then those of the package that it names."""
    for node in walk_types(test, "composite_literal"):
        listed = text(field(node, "type")).startswith((b"[", b"map["))
        if listed and node.parent and node.parent.type in ("expression_list", "range_clause"):
            for of, new in _rows(package, node, source, alone=_only_ranged_over(test, node)):
                yield Replacement(of, node.byte_range, new)
    own = _declared(test)
    names = dict.fromkeys(text(node) for node in walk_types(test, "identifier"))
    for name in names:
        table = package.tables.get(name)
        if table and name not in own and _imports(table) <= source.imports:
            ranged = _ranged(test, name)
            rank = package.rank(name) if not package.row(field(table.value, "type")) else None
            for of, new in _rows(package, table.value, table.source, alone=ranged, rank=rank):
                yield Replacement(of, None, b"\n\t" + name + b" := " + new)


def _rows(
    package: Package, table: Node, source: GoFile, *, alone: bool, rank: int | None = None
) -> Iterator[tuple[str, bytes]]:
    """The table with another literal in one of its rows: with that row `alone`, or with all of them."""
    kind, body = field(table, "type"), field(table, "body")
    rows = [row for row in (body.named_children if body else ()) if row.type != "comment"]
    found = ((row, spans) for row in rows if (spans := package.literals(row, kind, rank)))
    for row, spans in islice(found, ROWS):
        for start, end in spans[:2]:
            literal = source.text[start:end]
            other = _other(literal)
            if other is not None:
                before, behind = row.byte_range if alone else table.byte_range
                new = source.text[before:start] + other + source.text[end:behind]
                said = f"{literal.decode(errors='replace')} is {other.decode(errors='replace')}"
                yield said, (text(kind) + b"{\n\t\t" + new + b",\n\t}") if alone else new


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


def _values(package: Package, test: Node) -> Iterator[Replacement]:
    """Variables that are called so, and what is handed to functions that are told what to expect."""
    for node in walk(test):
        if node.type in ("short_var_declaration", "var_spec"):
            names, values = field(node, "left") or field(node, "name"), field(node, "right") or field(node, "value")
            value = values.named_children[0] if values and len(values.named_children) == 1 else None
            # What a call gives is what it was given.
            if value and value.type != "call_expression" and WANTED.search(text(names)):
                yield from _each(package, value)
        elif node.type == "call_expression" and text(field(node, "function")) in package.told:
            arguments = node.named_children[-1].named_children
            for argument in arguments[package.told[text(field(node, "function"))] :][:1]:
                yield from _each(package, argument)


def _each(package: Package, value: Node) -> Iterator[Replacement]:
    for start, end in package.literals(value, None, rank=0)[:2]:
        literal = text(value)[start - value.start_byte : end - value.start_byte]
        yield from _instead(literal, (start, end))


def _comparisons(test: Node) -> Iterator[Replacement]:
    """`got != 3`, where the test fails then."""
    for node in walk_types(test, "binary_expression"):
        sides = [side for side in (field(node, "left"), field(node, "right")) if side]
        literals = [side for side in sides if side.type in LITERALS or _negative(side)]
        equality = text(field(node, "operator")) in (b"==", b"!=")
        if equality and len(literals) == 1 and any(map(_got, sides)) and _fails(node):
            yield from _instead(text(literals[0]), literals[0].byte_range)


def _got(side: Node) -> bool:
    """A field in small letters is a row's: what a test goes by, not what it got."""
    own_field = side.type == "selector_expression" and last(side)[:1].islower()
    return side.type in ("identifier", "call_expression", "selector_expression") and not own_field


def _negative(node: Node) -> bool:
    return node.type == "unary_expression" and node.named_children[0].type in LITERALS


def _fails(condition: Node) -> bool:
    node: Node | None = condition
    while node and node.type in (
        "binary_expression",
        "unary_expression",
        "parenthesized_expression",
        "expression_list",
    ):
        node = node.parent
    if node is None or node.type not in ("if_statement", "expression_case"):
        return False
    return FAILS.search(text(field(node, "consequence") or node)) is not None


def _instead(literal: bytes, at: Span) -> Iterator[Replacement]:
    other = _other(literal)
    if other is not None:
        yield Replacement(f"{literal.decode(errors='replace')} is {other.decode(errors='replace')}", at, other)


def _other(literal: bytes) -> bytes | None:
    if literal.startswith(b"'\\"):
        # An escape stays a single character only as it is.
        return None
    other = changed(literal.decode("utf-8", "surrogateescape"))
    return None if other is None else other.encode("utf-8", "surrogateescape")
