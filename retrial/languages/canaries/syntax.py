"""Test files as trees, by tree-sitter: positions are in bytes, and what cannot be parsed is marked, never refused."""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Query

Span = tuple[int, int]
"""First byte, and the one behind the last."""
Captures = Mapping[str, list["Node"]]
"""Name of a capture → nodes."""


def parse(language: str, source: bytes) -> Node:
    """The root; `language` is the name of a grammar's package without `tree_sitter_`."""
    from tree_sitter import Parser

    return Parser(_grammar(language)).parse(source).root_node


def walk(node: Node, besides: Collection[str] = ()) -> Iterator[Node]:
    """The node and all below it, in the order of the text, but for nodes of these types and what is in them.

    Not by recursion: a text may be as deep as it likes.
    """
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += [child for child in reversed(found.children) if child.type not in besides]


def walk_types(node: Node, kind: str) -> Iterator[Node]:
    return (each for each in walk(node) if each.type == kind)


def bytes_of(node: Node | None) -> bytes:
    return (node.text if node else None) or b""


def text_of(node: Node | None) -> str:
    return bytes_of(node).decode(errors="replace")


def field(node: Node | None, name: str) -> Node | None:
    return node.child_by_field_name(name) if node else None


def line(source: bytes, start: int) -> int:
    """Where the line begins, if there is nothing but blanks before."""
    begin = source.rfind(b"\n", 0, start) + 1
    return start if source[begin:start].strip() else begin


def spliced(source: bytes, whole: Span, changes: Iterable[tuple[Span, bytes]]) -> bytes:
    """Return a part of the source, with these parts of it replaced."""
    parts, position = [], whole[0]
    for (start, end), new in sorted(changes):
        parts += [source[position:start], new]
        position = end
    return b"".join([*parts, source[position : whole[1]]])


def nodes_of_type(language: str, node: Node, kind: str) -> list[Node]:
    """Return the nodes of that type at or below this one, in the order of the text, the outer before the inner."""
    from tree_sitter import QueryCursor

    found = QueryCursor(_query(language, f"({kind}) @node")).captures(node).get("node", [])
    return sorted(found, key=lambda each: (each.start_byte, -each.end_byte))


def within(node: Node | None, name: str) -> list[Node]:
    """What stands in that field of the node, without comments."""
    found = field(node, name)
    return [child for child in found.named_children if not child.type.endswith("comment")] if found else []


def matches(language: str, query: str, source: bytes) -> list[Captures]:
    """What each match of a query captures; in the order of the text, the outer before the inner."""
    from tree_sitter import QueryCursor

    # Predicates of a query refuse what is no UTF-8. Positions stay the same.
    readable = re.sub("[\udc80-\udcff]", "?", source.decode("utf-8", "surrogateescape")).encode()
    found = QueryCursor(_query(language, query)).matches(parse(language, readable))
    return sorted((captures for _, captures in found), key=_position)


def _position(captures: Captures) -> list[int]:
    nodes = [node for each in captures.values() for node in each]
    outer = min(nodes, key=lambda node: (node.start_byte, -node.end_byte))
    return [outer.start_byte, -outer.end_byte, *sorted(node.start_byte for node in nodes)]


@functools.cache
def _query(language: str, text: str) -> Query:
    from tree_sitter import Query

    return Query(_grammar(language), text)


@functools.cache
def _grammar(language: str) -> Language:
    from tree_sitter import Language

    return Language(importlib.import_module(f"tree_sitter_{language}").language())
