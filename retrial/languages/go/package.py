"""What the test files of a Go package declare, as far as canaries are made of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from retrial.languages.canaries.syntax import Span, field, nodes_of_type, parse, walk, walk_types, within
from retrial.languages.canaries.syntax import bytes_of as text

if TYPE_CHECKING:
    from tree_sitter import Node

TEST = re.compile(rb"Test(?![a-z])\w*")
PARAMETERS = re.compile(rb"\(\s*\w+\s+\*testing\.T\s*\)")
EQUAL = re.compile(rb"\w*Equal\w*")
WANTED = re.compile(rb"expect|want", re.IGNORECASE)
OF_AN_ERROR = re.compile(rb"err", re.IGNORECASE)
TEXTS = ("int_literal", "float_literal", "interpreted_string_literal", "raw_string_literal", "rune_literal")
LITERALS = (*TEXTS, "true", "false")
BUILT_IN = frozenset(b"append byte cap close copy delete len make panic print println rune string".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class GoFile:
    path: str
    text: bytes
    root: Node

    @property
    def tests(self) -> list[Node]:
        return [node for node in self.root.children if node.type == "function_declaration" and _is_test(node)]

    @property
    def imports(self) -> frozenset[bytes]:
        """Names of packages in this file."""
        return frozenset(filter(None, map(_imported, walk_types(self.root, "import_spec"))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A variable of the package that holds a composite literal."""

    source: GoFile
    value: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    sources: Sequence[GoFile]
    tables: Mapping[bytes, Table]
    fields: Mapping[bytes, tuple[bytes, ...]]
    """Of struct types, in their order."""
    compared: frozenset[bytes]
    """Fields and variables that some test compares with what it got."""
    put_in: frozenset[bytes]
    """Those that some test hands to the solution."""
    told: Mapping[bytes, int]
    """Functions that are told what to expect, and as which of their arguments."""
    functions: frozenset[bytes]

    def rank(self, name: bytes) -> int | None:
        """How likely something of that name is what is expected; the least is the best, None is not at all."""
        wanted, compared = WANTED.search(name), name in self.compared - self.put_in
        if not wanted and not compared:
            return None
        return 3 if OF_AN_ERROR.search(name) else 0 if wanted and compared else 1 if wanted else 2

    def literals(self, node: Node, kind: Node | None, rank: int | None = None) -> list[Span]:
        """Of what is expected in a row of a table, a struct or a value; the best first."""
        found: list[tuple[int, Span]] = []
        waiting: list[tuple[Node, int | None, tuple[bytes, ...]]] = [(node, rank, self.row(kind))]
        while waiting:
            node, rank, names = waiting.pop()
            if node.type in LITERALS and rank is not None:
                found.append((rank + (node.type not in TEXTS), node.byte_range))
            elif not node.type.endswith("_type"):
                waiting += reversed(list(self._parts(node, rank, names)))
        return [each for _, each in sorted(found, key=lambda ranked: ranked[0])]

    def row(self, kind: Node | None) -> tuple[bytes, ...]:
        """Names of the fields of a type, or of what it is a list of."""
        while kind is not None and kind.type in ("slice_type", "array_type", "map_type", "pointer_type"):
            kind = kind.named_children[-1] if kind.named_children else None
        if kind is None or kind.type == "type_identifier":
            return self.fields.get(text(kind), ()) if kind else ()
        return _fields(kind)

    def _parts(
        self, node: Node, rank: int | None, names: tuple[bytes, ...]
    ) -> Iterator[tuple[Node, int | None, tuple[bytes, ...]]]:
        children = [child for child in node.named_children if child.type != "comment"]
        if node.type == "keyed_element" and children:
            # A key may be no other: there may be one like it.
            own = self.rank(text(children[0])) if rank is None else rank
            if own is not None or text(children[0]) not in self.put_in:
                yield children[-1], own, names
        elif node.type == "literal_value" and names and rank is None:
            for place, child in enumerate(children):
                named = child.type != "keyed_element" and place < len(names)
                yield child, self.rank(names[place]) if named else None, ()
        elif node.type == "composite_literal":
            yield children[-1], rank, self.row(children[0])
        else:
            yield from ((child, rank, names if node.type == "literal_element" else ()) for child in children)


def packages(files: Mapping[str, bytes]) -> list[Package]:
    return [_package(sources) for sources in sources_of_packages(files)]


def sources_of_packages(files: Mapping[str, bytes]) -> list[list[GoFile]]:
    """Return the test files of each package, but for those that cannot be parsed."""
    groups: dict[tuple[str, bytes], list[GoFile]] = defaultdict(list)
    for path, content in sorted(files.items()):
        if path.endswith("_test.go"):
            source = GoFile(path=path, text=content, root=parse("go", content))
            clause = next(iter(nodes_of_type("go", source.root, "package_clause")), None)
            if clause is not None and not source.root.has_error:
                groups[PurePosixPath(path).parent.as_posix(), text(clause)].append(source)
    return list(groups.values())


def _package(sources: Sequence[GoFile]) -> Package:
    functions = [node for source in sources for node in source.root.children if node.type == "function_declaration"]
    types = [spec for source in sources for spec in walk_types(source.root, "type_spec")]
    own = frozenset(text(field(function, "name")) for function in functions)
    return Package(
        sources=sources,
        tables={name: table for source in sources for name, table in _tables(source)},
        fields={text(spec.named_children[0]): _fields(spec.named_children[-1]) for spec in types},
        compared=frozenset(name for source in sources for name in _compared(source.root)),
        put_in=frozenset(name for source in sources for name in _put_in(source, own | BUILT_IN)),
        told=dict(told for function in functions for told in _told(function)),
        functions=own,
    )


def _is_test(function: Node) -> bool:
    named = TEST.fullmatch(text(field(function, "name")))
    return named is not None and PARAMETERS.fullmatch(text(field(function, "parameters"))) is not None


def _imported(spec: Node) -> bytes:
    name = field(spec, "name")
    return text(name) if name else text(field(spec, "path")).strip(b'"`').rpartition(b"/")[2]


def _tables(source: GoFile) -> Iterator[tuple[bytes, Table]]:
    for declaration in source.root.children:
        for spec in walk_types(declaration, "var_spec") if declaration.type == "var_declaration" else ():
            names = [child for child in spec.named_children if child.type == "identifier"]
            value = only_value(spec)
            if len(names) == 1 and value is not None and value.type == "composite_literal":
                yield text(names[0]), Table(source=source, value=value)


def _fields(kind: Node) -> tuple[bytes, ...]:
    if kind.type != "struct_type":
        return ()
    declared = [node for node in walk_types(kind, "field_declaration") if node.parent and node.parent.parent == kind]
    names: list[bytes] = []
    for declaration in declared:
        found = [text(child) for child in declaration.children if child.type == "field_identifier"]
        # An embedded type is a field of its own name.
        names += found or [text(declaration)]
    return tuple(names)


def _compared(root: Node) -> Iterator[bytes]:
    for node in walk(root):
        if node.type == "binary_expression" and text(field(node, "operator")) in (b"==", b"!="):
            left, right = field(node, "left"), field(node, "right")
            if left and right and not {left.type, right.type} & {*LITERALS, "nil"}:
                yield from _operands(left, right)
        elif node.type == "call_expression" and EQUAL.fullmatch(last(field(node, "function"))):
            yield from _operands(*node.named_children[-1].named_children)


def _put_in(source: GoFile, known: frozenset[bytes]) -> Iterator[bytes]:
    """What is handed to functions that are neither the tests' own nor those of a package that is imported."""
    known = known | source.imports | {b"t", b"b"}
    for node in walk_types(source.root, "call_expression"):
        if text(field(node, "function")).partition(b".")[0] not in known:
            yield from _operands(*node.named_children[-1].named_children)


def _operands(*sides: Node) -> Iterator[bytes]:
    """Names in them, but not of what is put into a call; formatting something is no such call."""
    waiting = [*sides]
    while waiting:
        node = waiting.pop()
        if node.type in ("identifier", "field_identifier"):
            yield text(node)
        elif node.type == "selector_expression":
            yield last(node)
        elif node.type != "call_expression" or text(node).startswith((b"fmt.", b"len(", b"string(")):
            waiting += node.named_children


def _told(function: Node) -> Iterator[tuple[bytes, int]]:
    declared = [child for declaration in within(function, "parameters") for child in declaration.children]
    names = [text(child) for child in declared if child.type == "identifier"]
    for place, name in enumerate(names):
        if WANTED.search(name):
            yield text(field(function, "name")), place


def only_value(declaration: Node) -> Node | None:
    values = field(declaration, "right") or field(declaration, "value")
    return values.named_children[0] if values and len(values.named_children) == 1 else None


def last(node: Node | None) -> bytes:
    """The last name of a path such as `reflect.DeepEqual`."""
    return text(node).rpartition(b".")[2]
