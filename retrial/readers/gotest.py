"""What `go test -json` writes: one event a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from retrial.readers import _lines
from retrial.types import Execution, Status

REPORT = "go.json"
# What `go test` says only when asked to be verbose, which its JSON always is.
TALK = ("=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS")
STATUSES = {"pass": Status.PASSED, "fail": Status.FAILED, "skip": Status.SKIPPED}


class GoTest:
    def read(self, execution: Execution) -> Mapping[str, Status] | str:
        if REPORT not in execution.reports:
            return "the test runner left no report"
        started: dict[str, Status] = {}
        for event in _events(execution.reports[REPORT].decode(errors="replace")):
            test = "::".join(str(event[key]) for key in ("Package", "Test") if key in event)
            if "Test" in event and event.get("Action") == "run":
                # One that never ends is one that the process took with it.
                started[test] = Status.ERROR
            elif "Test" in event and event.get("Action") in STATUSES:
                started[test] = STATUSES[str(event["Action"])]
        return started

    def asserted(self, execution: Execution) -> frozenset[str]:
        found = self.read(execution)
        return frozenset() if isinstance(found, str) else frozenset(t for t in found if found[t] is Status.FAILED)

    def text(self, stdout: str) -> str:
        return "".join(_told(stdout))

    def without(self, text: str, test: str) -> str:
        return _lines.without(text, test)


def make() -> GoTest:
    return GoTest()


def _told(stdout: str) -> Iterator[str]:
    """The text in the events, and whatever else was printed."""
    running = False
    for line in stdout.splitlines(keepends=True):
        event = _event(line)
        if event is None:
            yield line
            continue
        if event.get("Action") == "run" and not running:
            running = True
            yield "== test\n"
        said = str(event.get("Output", ""))
        if not said.lstrip().startswith(TALK):
            yield said


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    for line in text.splitlines():
        event = _event(line)
        if event is not None:
            yield event


def _event(line: str) -> Mapping[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and "Action" in value else None
