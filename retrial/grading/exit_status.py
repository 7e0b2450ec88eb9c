"""The exit status of a task's own command, where that leaves no report: one test, which passed or did not."""

from __future__ import annotations

from collections.abc import Mapping

from retrial.types import Execution, Status

TEST = "test_command"


def read(execution: Execution) -> Mapping[str, Status] | str:
    return {TEST: Status.PASSED if execution.exit_code == 0 else Status.FAILED}


def asserted(execution: Execution, results: Mapping[str, Status]) -> frozenset[str]:
    return frozenset()


def text(stdout: str) -> str:
    return stdout


def without(text: str, test: str) -> str:
    """Return the lines that do not name the test."""
    return "".join(line for line in text.splitlines(keepends=True) if test not in line)
