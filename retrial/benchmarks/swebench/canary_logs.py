"""What a log of Python tests says of canaries, and the same log without it: as if they had never been there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrial.benchmarks.swebench.official_grader import END, STATUS
from retrial.types import Check, Required, Status

COLOUR = re.compile(r"\x1b\[[\d;]*m")
HEADING = re.compile(r"_+ (?!_).* _+$|(?:FAIL|ERROR): ")
"""Of what pytest, sympy's or Django's runner prints about one failure."""
ENDING = re.compile(r"={5,}|Ran \d+ tests? ")
"""What comes behind the last of them."""
ASSERTION = re.compile(
    r"E +(?:AssertionError|assert |Failed: DID NOT RAISE)|.*:\d+: AssertionError$|FAILED .* - [Aa]ss"
)
"""Lines of pytest's that name an assertion; other runners tell failures from errors."""
FAILING = {Status.FAILED, Status.ERROR}
TELLING_APART = ("parse_log_django", "parse_log_sympy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """A log, taken apart."""

    rest: str
    """All that is not about a canary."""
    about: Mapping[str, Sequence[str]]
    """Name of a canary → the lines about it, without colours."""


def apart(log: str, names: Sequence[str]) -> Apart:
    """Lines that name a canary, and what is printed below a heading that does."""
    rest: list[str] = []
    about: dict[str, list[str]] = {name: [] for name in names}
    current = ""
    for line in log.split("\n"):
        named = next((name for name in names if name in line), "")
        plain = COLOUR.sub("", line)
        if HEADING.match(plain):
            current = named
        elif ENDING.match(plain):
            current = ""
        if taken := named or current:
            about[taken].append(plain)
        else:
            rest.append(line)
    return Apart(rest="\n".join(rest), about=about)


def failed(required: Required, tests: Mapping[str, Status], found: Apart) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of the canaries that failed as they must, and those that failed in another way.

    The first can fail in one way only; others must fail by an assertion, not by an exception on the way there.
    """
    proved, erred = [], []
    for number, (name, lines) in enumerate(found.about.items()):
        statuses = {status for test, status in tests.items() if name in test}
        told = number == 0 or required.parser in TELLING_APART or any(map(ASSERTION.match, lines))
        # One that passed under any id did not fail, whatever else has its name in it and is said to have failed.
        if told and statuses == {Status.FAILED}:
            proved.append(name)
        elif statuses & FAILING and Status.PASSED not in statuses:
            erred.append(name)
    return tuple(proved), tuple(erred)


def own_status(log: str, tests: Mapping[str, Status], check: Check) -> str:
    """The log with the status that the task's own tests would have given: none of them failed, but a canary did."""
    failing = {test for test, status in tests.items() if status in FAILING}
    canaries = {test for test in failing if any(name in test for name in check.planted)}
    if not canaries or failing - canaries:
        return log
    head, mark, tail = log.rpartition(END)
    for status in check.failing:
        # Only behind its end, where our own script has written it.
        tail = re.sub(rf"{re.escape(STATUS)}: {status}(?!\d)", f"{STATUS}: 0", tail)
    return head + mark + tail
