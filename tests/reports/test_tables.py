"""How a count of tests is told: never as a puzzle beside *resolved*."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from retrial.reports import terminal
from retrial.types import Outcome, Status
from tests.support.sides import content


def shown(**row: Any) -> str:
    found = content("it", "+")
    found.instances[0] = replace(found.instances[0], **row)
    return "\n".join(terminal.of_run(found))


def counts(**numbers: int) -> dict[str, Any]:
    found = {f"{status}-{number}": Status(status) for status, times in numbers.items() for number in range(times)}
    passed, failed = numbers.get("passed", 0), numbers.get("failed", 0)
    return {"tests": found, "tests_passed": passed, "tests_failed": failed}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (counts(passed=37), "37/37  "),
        (counts(passed=36, skipped=1), "36/37 (1 skipped)"),
        (counts(passed=34, skipped=2, xfailed=1), "34/37 (2 skipped, 1 expected to fail)"),
        (
            {**counts(passed=40, failed=1), "tests_required": 37, "tests_required_passed": 36},
            "36/37 (1 accepted: not passed by the reference either)",
        ),
        (
            {**counts(passed=36, failed=1), "resolved": False, "outcome": Outcome.TESTS_FAILED, "reason": "one failed"},
            "36/37  ",
        ),
    ],
)
def test_tests_that_did_not_pass_are_explained_where_the_task_is_resolved(row: dict[str, Any], words: str) -> None:
    assert words in shown(**row)
