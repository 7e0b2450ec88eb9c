"""How a reference's files stand for the solution's, where no language has anything special."""

from __future__ import annotations

from collections.abc import Mapping

from retrial.errors import TreeError


def in_order(solution: tuple[str, ...], example: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """The first for the first, and so on."""
    if len(solution) != len(example):
        raise TreeError(f"{len(example)} reference files cannot stand for {len(solution)} solution files.")
    return dict(zip(solution, example.values(), strict=True))
