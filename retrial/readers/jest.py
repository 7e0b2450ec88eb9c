"""What `jest --json` writes: the test files, and the tests of each that ran or did not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from retrial.readers import _lines
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


class Jest:
    def read(self, execution: Execution) -> Mapping[str, Status] | str:
        if REPORT not in execution.reports:
            return "the test runner left no report"
        results: dict[str, Status] = {}
        try:
            report = json.loads(execution.reports[REPORT])
            for suite in report["testResults"]:
                for test, status in _tests(suite):
                    results[_unused(test, results)] = status
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
            return f"the report {REPORT} cannot be read: {error!r}"
        return results

    def asserted(self, execution: Execution) -> frozenset[str]:
        found = self.read(execution)
        return frozenset() if isinstance(found, str) else frozenset(t for t in found if found[t] is Status.FAILED)

    def text(self, stdout: str) -> str:
        return stdout

    def without(self, text: str, test: str) -> str:
        return _lines.without(text, test)


def make() -> Jest:
    return Jest()


def _tests(suite: Mapping[str, Any]) -> Iterator[tuple[str, Status]]:
    file = JOB.sub("", suite["name"])
    statuses = []
    for test in suite["assertionResults"]:
        statuses.append(STATUSES.get(test["status"], Status.ERROR))
        yield f"{file}::{test['fullName']}", statuses[-1]
    if suite["status"] == "failed" and Status.FAILED not in statuses:
        # The file could not be loaded, or something between its tests went wrong.
        yield file, Status.ERROR
    elif not statuses:
        yield file, Status.SKIPPED


def _unused(test: str, results: Mapping[str, Status]) -> str:
    """Two tests may have one name: the second becomes `name #2`."""
    number, name = 1, test
    while name in results:
        number += 1
        name = f"{test} #{number}"
    return name
