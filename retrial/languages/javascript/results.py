"""What `jest --json` writes, and our reporter for Node's own runner: the files, and the tests of each with statuses.

Also what both print for people, without one of the tests that failed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from retrial.types import Execution, Status

REPORT = "jest.json"
JOB = re.compile(r"^/tmp/job/[^/]+/")
"""Where a job's own files lie: Jest knows no relative paths."""
STATUSES = {
    "passed": Status.PASSED,
    "failed": Status.FAILED,
    "pending": Status.SKIPPED,
    "skipped": Status.SKIPPED,
    "disabled": Status.SKIPPED,
    "todo": Status.SKIPPED,
}
BETWEEN = " › "
"""Names of suites and tests, as Jest writes them too: no name of a test can be found across two of them."""
ASSERTION = re.compile(r"assert(\.\w+)?\(")
"""How Jest begins what it makes of an error of `node:assert`."""

# What Jest and Node's own runner print for people.
FAILED = re.compile(r"( *)[●✕✖] ")
"""Begins what is said of a test that failed; what is further in belongs to it."""
COUNTS = re.compile(r"(Test Suites|Tests): |ℹ (tests|pass|fail) \d")
HEADERS = re.compile(r"FAIL |✖ failing tests:")
CLOSED = re.compile(r" *✖ (.*) \([\d.]+ms\)")
"""Also the end of a suite, which failed for what is in it."""
OPENED = re.compile(r" *▶ (.*)")
WHERE = "test at "


def read(execution: Execution) -> Mapping[str, Status] | str:
    if REPORT not in execution.reports:
        return "the test runner left no report"
    try:
        return {test: status for test, status, _ in _rows(execution.reports[REPORT])}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        return f"the report {REPORT} cannot be read: {error!r}"


def asserted(execution: Execution, results: Mapping[str, Status]) -> frozenset[str]:
    return frozenset(test for test, _, asserted in _rows(execution.reports[REPORT]) if asserted)


def text(stdout: str) -> str:
    return stdout


def _rows(report: bytes) -> Iterator[tuple[str, Status, bool]]:
    """Tests with status, and whether an assertion failed. Two may have one name: the second becomes `name #2`."""
    known: set[str] = set()
    numbers: Counter[str] = Counter()
    for suite in json.loads(report)["testResults"]:
        for test, status, asserted in _tests(suite):
            name = test
            while name in known:
                numbers[test] += 1
                name = f"{test} #{numbers[test] + 1}"
            known.add(name)
            yield name, status, asserted


def _tests(suite: Mapping[str, Any]) -> Iterator[tuple[str, Status, bool]]:
    file = JOB.sub("", suite["name"])
    statuses = []
    for test in suite["assertionResults"]:
        statuses.append(STATUSES.get(test["status"], Status.ERROR))
        name = BETWEEN.join((*test["ancestorTitles"], test["title"]))
        yield f"{file}::{name}", statuses[-1], statuses[-1] is Status.FAILED and _asserted(test)
    # Jest gives an empty coverage to a file in which something went wrong beside its tests.
    if suite["status"] == "failed" and (Status.FAILED not in statuses or suite.get("coverage") == {}):
        yield file, Status.ERROR, False
    elif not statuses:
        yield file, Status.SKIPPED, False


def _asserted(test: Mapping[str, Any]) -> bool:
    """All that went wrong in it is that something was not as expected."""
    details = test.get("failureDetails") or [{}]
    return all(
        "matcherResult" in detail
        or detail.get("code") == "ERR_ASSERTION"
        or ASSERTION.match(str(detail.get("message", "")))
        for detail in details
    )


def without(text: str, test: str) -> str:
    """Remove a test that failed, and all counts; a sign that something failed stays only where something else did."""
    if test not in text:
        return text
    lines = [line for line in _cut(text.splitlines(keepends=True), test) if not COUNTS.match(line)]
    suites = {found[1] for line in lines if (found := OPENED.match(line))}
    rest = [line for line in lines if not (HEADERS.match(line) or _closes(line, suites))]
    return "".join(lines if any(FAILED.match(line) for line in rest) else rest)


def _cut(lines: list[str], test: str) -> Iterator[str]:
    """The lines but those that name the test, and what is further in than one that says that it failed."""
    indent: int | None = None
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        header = FAILED.match(line)
        if indent is not None and line.strip() and (header or len(line) - len(line.lstrip(" ")) <= indent):
            indent = None
        if test in line and header:
            indent = len(header[1])
        if indent is None and test not in line and not (line.startswith(WHERE) and test in after):
            yield line


def _closes(line: str, suites: set[str]) -> bool:
    found = CLOSED.match(line)
    return found is not None and found[1] in suites
