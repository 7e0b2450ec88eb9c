"""How long a job may run: limits in CPU time do not count the time that other processes take."""

from __future__ import annotations

from dataclasses import dataclass

from retrial.sandboxes.job_session import PAUSE, TimeAllowance
from retrial.types import Limits

LIMITS = Limits(seconds=800, cpu_seconds=100, cpus=2)


@dataclass
class Reading:
    """A meter that shows what it was set to."""

    used: float | None
    running: bool = True

    def cpu_seconds(self) -> float | None:
        return self.used

    def wants_cpu(self) -> bool:
        return self.running


def ended(share: float | None, *, running: bool = True, limits: Limits = LIMITS) -> tuple[float, TimeAllowance]:
    """When a job that gets this share of one core is ended, and its allowance."""
    allowance = TimeAllowance(limits, 0.0)
    while allowance.extend(now := allowance.deadline, Reading(None if share is None else share * now, running=running)):
        assert allowance.deadline >= min(now + PAUSE, limits.seconds)
    return now, allowance


def test_without_a_limit_in_cpu_time_the_wall_time_is_the_limit() -> None:
    for share in (None, 0.0, 2.0):
        now, allowance = ended(share, limits=Limits(seconds=60))
        assert (now, allowance.starved) == (60, False)


def test_a_job_is_ended_when_its_cpu_time_is_used_up_however_much_wall_time_that_took() -> None:
    for share in (2.0, 1.0, 0.5, 0.2):
        now, allowance = ended(share)
        assert 100 <= share * now <= 100 + 2 * PAUSE
        assert not allowance.starved


def test_a_job_that_only_waits_is_ended_after_its_limit_in_wall_time() -> None:
    for share in (0.0, 0.01, 0.04):
        now, allowance = ended(share, running=False)
        assert 100 <= now <= 100 + PAUSE
        assert not allowance.starved


def test_a_job_that_waits_after_some_work_is_ended_within_twice_its_limit() -> None:
    allowance = TimeAllowance(LIMITS, 0.0)
    while allowance.extend(now := allowance.deadline, Reading(20.0, running=False)):
        pass
    assert now <= 200


def test_a_job_that_wants_more_cpu_time_than_it_gets_is_starved_not_idle() -> None:
    for share in (0.01, 0.1):
        now, allowance = ended(share)
        assert (now, allowance.starved) == (800, True)


def test_a_job_that_mostly_waits_is_not_starved() -> None:
    now, allowance = ended(0.1, running=False)
    assert (now, allowance.starved) == (800, False)


def test_where_cpu_time_cannot_be_measured_the_same_limit_counts_in_wall_time() -> None:
    now, allowance = ended(None)
    assert (now, allowance.starved, allowance.cpu_seconds) == (100, False, None)


def test_a_meter_that_fails_to_answer_once_ends_nothing() -> None:
    allowance = TimeAllowance(LIMITS, 0.0)
    assert allowance.extend(60.0, Reading(10.0))
    assert allowance.extend(150.0, Reading(None, running=False))
    assert allowance.cpu_seconds == 10.0
    assert not allowance.extend(400.0, Reading(100.0))
