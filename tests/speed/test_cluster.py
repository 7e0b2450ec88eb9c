"""The simulation of a cluster (`speed/cluster.py`): nothing is lost in it, and it answers as a cluster would."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from speed.cluster import Setting, World

SMALL = Setting(nodes=4, slots=2, seats=8, attempts=200, calls=4, checks=2, lost_an_hour=0.0, stragglers=0.0)
"""Sandboxes are what there is too little of."""


def test_every_attempt_is_finished_and_every_question_asked_once() -> None:
    told = World(SMALL).run()
    assert (told.finished, told.asked, told.begun_again) == (200, 800, 0)
    assert 0 < told.nearly <= told.seconds


def test_the_same_seed_is_the_same_world() -> None:
    assert World(SMALL).run() == World(SMALL).run()
    assert World(SMALL).run() != World(replace(SMALL, seed=1)).run()


def test_lost_nodes_cost_time_and_at_most_the_question_under_way() -> None:
    told = World(replace(SMALL, lost_an_hour=4.0)).run()
    assert told.finished == 200
    assert told.begun_again > 0
    assert 800 <= told.asked <= 800 + told.begun_again
    assert told.seconds > World(SMALL).run().seconds


@pytest.mark.parametrize(
    ("scarce", "name", "more"),
    [
        (SMALL, "sandboxes", {"slots": 4}),
        (replace(SMALL, at_once=3), "questions at once", {"at_once": 6}),
        (replace(SMALL, requests_a_minute=10), "provider's limits", {"requests_a_minute": 20}),
        (replace(SMALL, tokens_a_minute=120_000), "provider's limits", {"tokens_a_minute": 240_000}),
        (replace(SMALL, call_cost=10.0), "driver", {"call_cost": 5.0}),
    ],
)
def test_who_is_busiest_is_who_twice_as_much_of_helps_most(scarce: Setting, name: str, more: dict[str, Any]) -> None:
    told = World(scarce).run()
    assert told.busiest == name
    assert told.shares[name] > 0.9
    assert World(replace(scarce, **more)).run().seconds < 0.7 * told.seconds
