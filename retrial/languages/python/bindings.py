"""What the names in a Python test stand for: assignments, loops over rows, columns of parameters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from retrial.languages.canaries.syntax import walk

if TYPE_CHECKING:
    from tree_sitter import Node

Names = Mapping[str, list["Node"]]
"""What each name of a test stands for."""
NESTED = frozenset({"function_definition", "class_definition", "lambda", "decorated_definition"})


def names(body: Node, decorators: Iterable[Node]) -> Names:
    found: dict[str, list[Node]] = defaultdict(list)
    for decorator in decorators:
        for call in walk(decorator):
            if call.type == "call" and called(call) == "parametrize":
                _bind_parameters(arguments(call), found)
    for node in _own(body):
        match node.type:
            case "assignment":
                _bind(node.child_by_field_name("left"), _values(node.child_by_field_name("right"), {}), found)
            case "for_statement":
                rows = _values(node.child_by_field_name("right"), found)
                _bind(node.child_by_field_name("left"), [item for row in rows for item in _items(row)], found)
    return found


def _bind_parameters(given: list[Node], names: dict[str, list[Node]]) -> None:
    """`@parametrize("a, b", [(1, 2), …])`: each name stands for its column."""
    if len(given) < 2:
        return
    listed = [name for part in walk(given[0]) if part.type == "string_content" for name in text_of(part).split(",")]
    for row in _items(given[1]):
        # `pytest.param(1, 2, id="…")`
        cells = arguments(row) if row.type == "call" else _items(row) if len(listed) > 1 else [row]
        for name, cell in zip(listed, cells, strict=False):
            names[name.strip()].append(cell)


def _bind(target: Node | None, values: list[Node], names: dict[str, list[Node]]) -> None:
    if target is None:
        return
    if target.type == "identifier":
        names[text_of(target)] += values
        return
    for place, part in enumerate(target.named_children if target.type in ("pattern_list", "tuple_pattern") else ()):
        columns = [_items(value) for value in values]
        _bind(part, [items[place] for items in columns if place < len(items)], names)


def _values(node: Node | None, names: Names) -> list[Node]:
    if node is None:
        return []
    if node.type == "identifier":
        return names.get(text_of(node), [])
    return [node]


def _items(node: Node) -> list[Node]:
    if node.type not in ("list", "tuple", "set", "expression_list"):
        return []
    return [child for child in node.named_children if child.type != "comment"]


def arguments(call: Node) -> list[Node]:
    """By position."""
    listed = call.child_by_field_name("arguments")
    unnamed = ("keyword_argument", "comment", "list_splat", "dictionary_splat")
    return [child for child in listed.named_children if child.type not in unnamed] if listed is not None else []


def _own(body: Node) -> Iterator[Node]:
    """All of a function, without the functions inside of it."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in reversed(node.children) if child.type not in NESTED]


def called(call: Node) -> str:
    """The last part of the name of what is called."""
    function = call.child_by_field_name("function")
    if function is not None and function.type == "attribute":
        function = function.child_by_field_name("attribute")
    return text_of(function) if function is not None and function.type == "identifier" else ""


def text_of(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")
