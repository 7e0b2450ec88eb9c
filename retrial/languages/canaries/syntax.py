"""Test files as trees, by tree-sitter: positions are in bytes, and what cannot be parsed is marked, never refused."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language, Node


def parse(language: str, source: bytes) -> Node:
    """The root; `language` is the name of a grammar's package without `tree_sitter_`."""
    from tree_sitter import Parser

    return Parser(_grammar(language)).parse(source).root_node


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text. Not by recursion: a text may be as deep as it likes."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(found.children)


@functools.cache
def _grammar(language: str) -> Language:
    from tree_sitter import Language

    return Language(importlib.import_module(f"tree_sitter_{language}").language())
