"""Values of ours as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrial.store.json_io import decode, from_json, to_json, to_jsonl
from retrial.types import Outcome

FINITE = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | st.integers() | FINITE | st.text() | st.sampled_from(["", "\ud800", 'é\n"'])
KEYS = st.text() | st.integers() | st.booleans() | st.none()
VALUES = st.recursive(
    LEAVES, lambda each: st.lists(each) | st.lists(each).map(tuple) | st.dictionaries(KEYS, each), max_leaves=20
)


@given(VALUES)
def test_it_is_what_json_dumps_writes(value: Any) -> None:
    assert to_json(value) == (json.dumps(value, indent=2) + "\n").encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_never_written(number: float) -> None:
    for write in (to_json, to_jsonl):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write({"cost": [number]})


def test_a_cost_that_an_older_version_wrote_as_infinity_is_unknown() -> None:
    assert from_json(b'{"cost": Infinity, "more": [NaN, -Infinity, 1.5]}') == {"cost": None, "more": [None, None, 1.5]}


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


def test_a_value_of_ours_is_read_back_without_the_fields_of_other_versions() -> None:
    value = Value(outcome=Outcome.RESOLVED, places=(), names=frozenset("b"), nothing={"a": 1})
    assert decode({**json.loads(to_json(value)), "more": 1}, Value) == value


def test_a_field_that_is_wrong_is_named_by_its_path() -> None:
    with pytest.raises(ValueError, match=r"Expected `int`, got `str` - at `\$.nothing\[...\]`"):
        decode({"outcome": "resolved", "places": [], "names": [], "nothing": {"a": "1"}}, Value)
    with pytest.raises(ValueError, match="missing required field `places`"):
        decode({"outcome": "resolved"}, Value)
