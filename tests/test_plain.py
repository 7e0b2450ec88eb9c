"""Values of ours as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.plain import to_json
from retrial.types import Outcome

LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["", "\ud800", 'é\n"'])
KEYS = st.text() | st.integers() | st.booleans() | st.none()
VALUES = st.recursive(
    LEAVES, lambda each: st.lists(each) | st.lists(each).map(tuple) | st.dictionaries(KEYS, each), max_leaves=20
)


@given(VALUES)
def test_it_is_what_json_dumps_writes(value: Any) -> None:
    assert to_json(value) == (json.dumps(value, indent=2) + "\n").encode()


@dataclass(frozen=True)
class Value:
    outcome: Outcome
    places: tuple[Path, ...]
    names: frozenset[str]
    nothing: dict[str, int]
    secret: str = field(default="s", repr=False)


def test_values_of_ours_become_plain() -> None:
    value = Value(outcome=Outcome.RESOLVED, places=(Path("a/b"),), names=frozenset("ba"), nothing={})
    expected = {"outcome": "resolved", "places": ["a/b"], "names": ["a", "b"], "nothing": {}}
    assert json.loads(to_json({"value": [value]})) == {"value": [expected]}


def test_what_does_not_belong_in_a_file_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes does not belong in a file"):
        to_json({"value": b""})
