"""Whether a JSON value holds what its readers look for."""

from __future__ import annotations

from typing import Any

Shape = Any
"""Types, a list with the shape of its items, or names with theirs: `*` for any, a `?` after one that may be missing."""


def fits(value: object, shape: Shape) -> bool:
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
    if not isinstance(shape, dict):
        return isinstance(value, shape)
    if not isinstance(value, dict):
        return False
    if "*" in shape:
        return all(fits(each, shape["*"]) for each in value.values())
    wanted = {name.removesuffix("?"): each for name, each in shape.items()}
    there = all(name in value for name in shape if not name.endswith("?"))
    return there and all(fits(value[name], each) for name, each in wanted.items() if name in value)
