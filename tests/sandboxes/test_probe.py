"""Versions, as tools say them."""

from __future__ import annotations

import pytest

from retrial.sandboxes.probe import numbers


@pytest.mark.parametrize(
    ("older", "newer"),
    [("Python 3.7.16", "3.8"), ("go version go1.9.2 linux/amd64", "1.21"), ("cargo 1.79.0", "1.80"), ("v18.0.0", "20")],
)
def test_versions_are_compared_by_their_numbers(older: str, newer: str) -> None:
    assert numbers(older) < numbers(newer)
    assert not numbers(newer) < numbers(newer)
