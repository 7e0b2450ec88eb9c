"""What is to be said of a run, whichever way it was judged."""

from __future__ import annotations

from dataclasses import dataclass

from retrial.types import Check, Execution, Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    outcome: Outcome
    reason: str = ""
    rule: str = ""
    """That was broken, where something was tampered with."""


def overtime(check: Check, execution: Execution) -> Finding:
    """Return what a test run that was ended by one of its limits says of the patch, and which limit that was."""
    limit, wall, used = check.timeout, check.patience * check.timeout, execution.cpu_seconds
    if execution.starved:
        said = f"the machine is overloaded: in {wall:g} s the tests got {used:.1f} s of their {limit:g} s of CPU time"
        return Finding(Outcome.NOT_MEASURED, f"{said}; run the same command again when the load is lower")
    if check.patience > 1 and used is None:
        return Finding(Outcome.TIMED_OUT, f"the tests did not end within {limit:g} s")
    if check.patience > 1 and used is not None and used >= limit:
        return Finding(Outcome.TIMED_OUT, f"the tests did not end within {limit:g} s of CPU time")
    if check.patience > 1 and execution.seconds < wall:
        return Finding(Outcome.TIMED_OUT, f"the tests hung: they waited for {limit:g} s and used almost no CPU time")
    return Finding(Outcome.TIMED_OUT, f"the tests did not end within {wall:g} s")
