"""What report.py prints at the end: short enough to be pasted, and coloured for people alone.

A count of tests is told so that it is never a puzzle beside *resolved*.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from retrial.reports import terminal
from retrial.reports.results import Report, results
from retrial.reports.terminal import render, summary
from retrial.score.predictions_file import Submission
from retrial.score.save import scored_row
from retrial.store.manifest import Manifest
from retrial.types import Outcome, Status
from tests.support.rows import attempt, record, row
from tests.support.rows import summary as brief
from tests.support.sides import content

PAINT = (
    "from retrial.reports import terminal; "
    "print(terminal.painted('a  resolved  1/1\\nb  tests_failed  0/1\\nrate  50 %'))"
)


def test_the_summary_to_paste_has_ten_lines_at_the_most_and_names_what_was_run() -> None:
    outcomes = (*Outcome,)
    rows = tuple(
        scored_row(row(f"task-{outcome}", outcome)) for outcome in outcomes if outcome is not Outcome.UNVERIFIED
    )
    report = Report(
        run="R",
        benchmark="bench",
        benchmark_size=20,
        visible_is_hidden=False,
        scored=rows,
        skipped={"x": "old"},
        records={each.task.instance_id: brief(record(each.task.instance_id, attempt())) for each in rows},
        manifest=Manifest(started="2026-01-02T03:04:05+00:00", identity={"visible_tests": "original"}),
    )
    lines = summary(report, results(report))
    assert len(lines) <= 10
    assert lines[0].startswith("bench, m, 2026-01-02, Retrial ")
    assert [line.split("  ")[0] for line in lines[1:6]] == ["resolved", "unresolved", "not measured", "skipped", "rate"]
    assert any(line.startswith("cost ") for line in lines)


def printed(*, terminal: bool, **environment: str) -> str:
    """What a program of its own prints, to a terminal or into a pipe."""
    known = {**os.environ, "TERM": "xterm", **environment}
    if not terminal:
        return subprocess.run(
            [sys.executable, "-c", PAINT], env=known, capture_output=True, text=True, check=True
        ).stdout
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", PAINT], env=known, stdout=theirs):
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                break
            if not part:
                break
            said += part
    os.close(ours)
    return said.decode()


def test_outcomes_have_colours_on_a_terminal() -> None:
    said = printed(terminal=True, NO_COLOR="")
    assert f"{terminal.GREEN}resolved{terminal.PLAIN}" in said
    assert f"{terminal.RED}tests_failed{terminal.PLAIN}" in said
    assert f"{terminal.BOLD}rate  50 %" in said


@pytest.mark.parametrize(
    ("terminal", "environment"), [(False, {}), (True, {"NO_COLOR": "1"}), (True, {"TERM": "dumb"})]
)
def test_and_nowhere_else(terminal: bool, environment: dict[str, str]) -> None:
    assert "\033[" not in printed(terminal=terminal, **environment)


def test_a_models_name_writes_no_line_of_its_own() -> None:
    scored = scored_row(
        replace(row("one", Outcome.RESOLVED), submission=submitted("a\nresolved 99\n::error::x \x1b[31m\u202e"))
    )
    report = Report(run="R", benchmark="b", benchmark_size=1, visible_is_hidden=False, scored=(scored,))
    told = render(report, results(report))
    assert "resolved 99" in told
    assert not any(line.startswith(("resolved 99", "::error")) for line in told.splitlines())
    assert "\x1b" not in told
    assert "\u202e" not in told


def submitted(name: str) -> Submission:
    return Submission(instance_id="one", model_name_or_path=name, patch="")


def test_nothing_measured_is_no_rate() -> None:
    report = Report(
        run="R",
        benchmark="b",
        benchmark_size=1,
        visible_is_hidden=False,
        scored=(scored_row(row("one", Outcome.NOT_MEASURED)),),
    )
    assert "rate          none: nothing was measured" in summary(report, results(report))


def test_what_a_terminal_cannot_write_ends_nothing() -> None:
    code = (
        "import sys; from retrial.system.secrets import MASKER\n"
        "print('a … \\ud800 b', file=MASKER.redacting_stream(sys.stdout))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "a \\u2026 \\ud800 b\n")


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
