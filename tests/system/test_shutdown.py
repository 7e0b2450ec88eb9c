"""What ends a run early."""

from __future__ import annotations

from retrial.system.shutdown import Stop


def test_what_is_watched_is_looked_at_once_for_many_who_ask() -> None:
    looks = list[str]()

    def look() -> str:
        looks.append("at the disk")
        return ""

    stop = Stop()
    stop.watch(look)
    assert not any(stop.requested for _ in range(1000))
    assert 1 <= len(looks) < 100


def test_a_reason_that_is_there_at_the_start_stops_at_once() -> None:
    stop = Stop()
    stop.watch(lambda: "the disk is full")
    assert stop.requested
    assert stop.reason == "the disk is full"
