"""`aider.yaml`: a record as the data of aider's polyglot leaderboard has it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from contextlib import suppress

from retrial.reports.analysis.aider_summary import AiderSummary
from retrial.reports.exports import Export, entry, line
from retrial.reports.records import Results
from retrial.store.json_io import to_fields
from retrial.store.runs import Run

FIRST = (
    "dirname", "test_cases", "model", "edit_format", "editor_model", "editor_edit_format", "commit_hash",
    "reasoning_effort", "thinking_tokens", "pass_rate_1", "pass_rate_2", "pass_num_1", "pass_num_2",
    "percent_cases_well_formed", "error_outputs", "num_malformed_responses", "num_with_malformed_responses",
    "user_asks", "lazy_comments", "syntax_errors", "indentation_errors", "exhausted_context_windows",
    "prompt_tokens", "completion_tokens", "test_timeouts", "total_tests", "command", "date", "versions",
    "seconds_per_case", "total_cost",
)  # fmt: skip
"""In the order of the leaderboard."""
LONGEST = 2_000
SECOND = {"pass_rate_2": "pass_rate_1", "pass_num_2": "pass_num_1"}


def render(run: Run, results: Results) -> bytes | None:
    """None for predictions whose chats nobody knows, and where no turn was ever checked: nothing passed or failed."""
    found = results.aider
    if found is None or not found.quality.turns:
        return None
    known = to_fields(found)
    whole = {**{name: known[other] for name, other in SECOND.items()}, **known}
    # What is unknown is left out.
    names = [name for name in dict.fromkeys((*FIRST, *whole)) if whole.get(name) is not None]
    record = {name: _value(name, whole[name]) for name in names}
    return entry(_remarks(found), record, LONGEST)


def _value(name: str, value: object) -> object:
    if name == "date":
        with suppress(ValueError):
            return datetime.date.fromisoformat(str(value))
    return line(value, LONGEST) if isinstance(value, str) else value


def _remarks(found: AiderSummary) -> Iterator[str]:
    """What a reader of the record could take for something else."""
    yield "Made by Retrial: commit_hash and versions are its own, not aider's."
    if found.quality.pass_rate(2) is None:
        yield _no_second_turn(found)
    if found.total_cost is None:
        yield "total_cost is left out: a price is unknown."


def _no_second_turn(found: AiderSummary) -> str:
    if found.quality.turns["pass_num_1"] == found.test_cases:
        return "No task needed a second turn: pass_rate_2 is pass_rate_1."
    return (
        "No task was given a second turn (as with --turns 1): pass_rate_2 repeats pass_rate_1, "
        "and cannot be compared with that of others."
    )


def make() -> Export:
    return render
