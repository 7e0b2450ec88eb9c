"""What `go test -json` writes: one event a line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import MsgspecError, Struct, json

from retrial.languages.shared import drop_parts
from retrial.types import Execution, Status

REPORT = "go.json"
# What `go test` says only when asked to be verbose, which its JSON always is.
TALK = ("=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS")
FELL = ("panic: ", "fatal error: ", "    testing.go:")
"""How it says that a test failed without having said so itself; the last is of one that ended itself."""
HEADING = re.compile(r"\s*--- FAIL: (\S+) \(")
"""What heads the output of a test that failed; what it logged is indented."""
INDENT = ("    ", "\t")
ENDED = re.compile(r"^FAIL\t", re.MULTILINE)
FAILED = re.compile(r"^(?:FAIL|exit status 1)\n", re.MULTILINE)
STATUSES = {"pass": Status.PASSED, "fail": Status.FAILED, "skip": Status.SKIPPED}


class Event(Struct, frozen=True, rename="pascal"):
    """One line of the report."""

    action: str
    package: str | None = None
    test: str | None = None
    output: str = ""

    @property
    def id(self) -> str:
        return "::".join(part for part in (self.package, self.test) if part is not None)

    @property
    def whole(self) -> str:
        """The test that it is about; of a subtest, the one that it is part of."""
        return f"{self.package}::{self.test}".partition("/")[0]


def read(execution: Execution) -> Mapping[str, Status] | str:
    if REPORT not in execution.reports:
        return "the test runner left no report"
    endings: dict[str, list[Status]] = defaultdict(list)
    for event in _events(execution.reports[REPORT].decode(errors="replace")):
        if event.test is not None and event.action == "run":
            endings[event.id] += []
        elif event.test is not None and event.action in STATUSES:
            endings[event.id].append(STATUSES[event.action])
    return {test: _became(statuses) for test, statuses in endings.items()}


def asserted(execution: Execution, results: Mapping[str, Status]) -> frozenset[str]:
    """Go has no assertions: it is whatever failed and did not fall, nor did a part of it."""
    fell = {event.whole for event in _events(execution.stdout) if event.output.startswith(FELL)}
    failed = [test for test, status in results.items() if status is Status.FAILED]
    return frozenset(test for test in failed if test.partition("/")[0] not in fell)


def text(stdout: str) -> str:
    return "".join(_told(stdout))


def without(text: str, test: str) -> str:
    def begins(line: str) -> bool | None:
        if heading := HEADING.match(line):
            return heading[1].partition("/")[0] == test
        return None if line.startswith(INDENT) else False

    lines = text.splitlines(keepends=True)
    failed, kept = any(map(begins, lines)), list(drop_parts(lines, begins))
    rest = "".join(kept)
    others = any(map(HEADING.match, kept)) or "panic: " in rest
    return FAILED.sub("", ENDED.sub("ok  \t", rest)) if failed and not others else rest


def _became(endings: list[Status]) -> Status:
    """One that never ends is one that the process took with it; one that ends twice, somebody else speaks of."""
    if Status.FAILED in endings:
        return Status.FAILED
    return endings[0] if len(endings) == 1 else Status.ERROR


def _told(stdout: str) -> Iterator[str]:
    """The text in the events, and whatever else was printed. What a test said goes behind the line that it failed, as
    where `go test` is not asked for JSON."""
    running = False
    held: dict[str, list[str]] = defaultdict(list)
    for line in stdout.splitlines(keepends=True):
        event = _event(line)
        if event is None:
            yield line
            continue
        if event.action == "run" and not running:
            running = True
            yield "== test\n"
        test = event.test or ""
        if not event.output.lstrip().startswith(TALK):
            held[test].append(event.output)
        if not test or event.action in STATUSES:
            yield from sorted(held.pop(test, ()), key=lambda text: not HEADING.match(text))
    for left in held.values():
        yield from left


def _events(text: str) -> Iterator[Event]:
    for line in text.splitlines():
        event = _event(line)
        if event is not None:
            yield event


def _event(line: str) -> Event | None:
    if not line.startswith("{"):
        return None
    try:
        return json.decode(line, type=Event)
    except (ValueError, MsgspecError, RecursionError):
        return None
