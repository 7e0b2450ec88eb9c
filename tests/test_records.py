"""Values have types: mappings to `Any` or `object` stay at the edges, where files and wires of others are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_layers import MODULES, named_imports

MAPPINGS = {"Mapping", "MutableMapping", "dict", "Dict"}
UNTYPED = {"Any", "object"}
MOST_FUNCTIONS = 48
"""That take or return such a mapping. This number may only shrink."""


def aliases() -> dict[str, set[str]]:
    """Return the names that stand for a mapping to `Any` or `object`, by the module that knows them."""
    names: dict[str, set[str]] = {module: set() for module in MODULES}
    while True:
        before = sum(map(len, names.values()))
        for module, path in MODULES.items():
            names[module] |= {name for name, value in assigned(path) if is_untyped(value, names[module])}
            names[module] |= {name for base, name in named_imports(path) if name in names.get(base, ())}
        if sum(map(len, names.values())) == before:
            return names


def assigned(path: Path) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names at the top of a module that are given a value, and that value."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            yield from ((target.id, node.value) for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            yield node.target.id, node.value


def is_untyped(annotation: ast.expr, names: set[str]) -> bool:
    """Return whether such a mapping is anywhere in this annotation."""
    for node in ast.walk(annotation):
        if last_name(node) in names:
            return True
        if isinstance(node, ast.Subscript) and last_name(node.value) in MAPPINGS and is_to_untyped(node.slice):
            return True
    return False


def is_to_untyped(parameters: ast.expr) -> bool:
    values = parameters.elts[-1] if isinstance(parameters, ast.Tuple) else parameters
    return any(last_name(node) in UNTYPED for node in ast.walk(values))


def last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def functions() -> Iterator[str]:
    """Yield each function that takes or returns a mapping to `Any` or `object`."""
    names = aliases()
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                given = [argument.annotation for argument in every]
                if any(is_untyped(annotation, names[module]) for annotation in [*given, node.returns] if annotation):
                    yield f"{module}.{node.name}:{node.lineno}"


def test_few_functions_pass_mappings_without_types() -> None:
    found = list(functions())
    assert len(found) <= MOST_FUNCTIONS, "\n".join(found)
