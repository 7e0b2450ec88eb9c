"""Predictions of phase 1 as records, and attempts back from theirs."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection
from dataclasses import fields

from retrial.attempts import AgentResult, Attempt, Prediction
from retrial.chat import Usage
from retrial.errors import PatchError
from retrial.patches.parser import Change, ChangeKind, parse
from retrial.store.records import AttemptRecord, PredictionRecord, VisibleRecord
from retrial.types import Outcome, Status, Verdict

# What the original harness leaves out before a patch is submitted: acceptance tests are put there afterwards.
TEST_PATHS = ("/test/", "/tests/", "/testing/", "/test_", "/tox.ini")


# What a record has under the name that our values have.
_OF_ATTEMPT = (
    *("round", "model", "edit_format", "temperature", "seed", "served", "left_out", "error"),
    *("edit_outcome", "lint_outcome", "test_outcome"),
)
_OF_USAGE = (
    *("cost", "calls", "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens"),
    "reasoning_tokens",
)
_OF_EFFORT = (
    *("tests_outcomes", "reflections", "lazy_comments", "syntax_errors", "indentation_errors", "test_timeouts"),
    "notes",
)
_SHARED = {each.name for each in fields(PredictionRecord)} & {each.name for each in fields(AttemptRecord)}
"""What a prediction's record has of the chosen attempt."""


def prediction_record(prediction: Prediction) -> PredictionRecord:
    records = tuple(map(attempt_record, prediction.attempts))
    chosen = records[prediction.attempts.index(prediction.chosen)]
    return PredictionRecord(
        instance_id=prediction.instance_id,
        model_name_or_path=prediction.model_name_or_path,
        **{name: getattr(chosen, name) for name in _SHARED},
        tries=len(records),
        rounds=prediction.tries,
        all_results=records,
    )


def attempt_record(attempt: Attempt) -> AttemptRecord:
    # Without an agent's result nothing of it is known.
    effort = attempt.effort or AgentResult(edit_outcome=False)
    added, edited = _files(attempt.counted)
    return AttemptRecord(
        number=attempt.number,
        **{name: getattr(attempt, name) for name in (*_OF_ATTEMPT, "plausible", "unverified")},
        **{name: getattr(attempt.usage, name) for name in _OF_USAGE},
        **{name: getattr(effort, name) for name in _OF_EFFORT},
        model_patch=attempt.patch,
        model_seconds=round(attempt.usage.seconds, 3),
        duration=round(attempt.usage.seconds, 3),
        seconds=round(attempt.seconds, 3),
        added_files=added,
        edited_files=edited,
        dropped_paths=attempt.dropped,
        num_malformed_responses=effort.malformed,
        num_exhausted_context_windows=effort.exhausted,
        # Everything that went wrong on the way and was said: malformed and cut-off replies, lint, failed calls.
        num_error_outputs=effort.reflections + effort.exhausted + attempt.usage.retries + bool(attempt.error),
        num_user_asks=effort.user_asks,
        faults=dict(Counter(effort.faults)),
        agent_error=effort.error,
        lint_errors=attempt.verdict.lint if attempt.verdict else (),
        visible=_visible(attempt.verdict) if attempt.verdict else VisibleRecord(reason=attempt.error),
    )


def _visible(verdict: Verdict) -> VisibleRecord:
    return VisibleRecord(
        outcome=verdict.outcome,
        reason=verdict.reason,
        tests=verdict.tests,
        seconds=round(verdict.seconds, 3),
        cpu_seconds=verdict.cpu_seconds and round(verdict.cpu_seconds, 3),
        files=verdict.chosen,
        fallbacks=verdict.fallbacks,
    )


def attempt_of(record: AttemptRecord, counted: str) -> Attempt:
    """The attempt that has this record; `counted` is the part of its patch that does.

    Raises: ValueError when it has none, or one of another version.
    """
    said = record.reflections + record.num_exhausted_context_windows + bool(record.error)
    return Attempt(
        number=record.number,
        **{name: getattr(record, name) for name in _OF_ATTEMPT},
        seconds=record.seconds,
        patch=record.model_patch,
        counted=counted,
        dropped=record.dropped_paths,
        usage=Usage(
            **{name: getattr(record, name) for name in _OF_USAGE},
            seconds=record.model_seconds,
            retries=record.num_error_outputs - said,
        ),
        effort=_effort(record),
        verdict=_verdict(record),
    )


def _effort(record: AttemptRecord) -> AgentResult:
    return AgentResult(
        edit_outcome=record.edit_outcome,
        **{name: getattr(record, name) for name in _OF_EFFORT},
        malformed=record.num_malformed_responses,
        exhausted=record.num_exhausted_context_windows,
        user_asks=record.num_user_asks,
        faults=tuple(Counter(record.faults).elements()),
        error=record.agent_error,
    )


def _verdict(record: AttemptRecord) -> Verdict:
    visible = record.visible
    return Verdict(
        outcome=Outcome(visible.outcome or ""),
        reason=visible.reason,
        tests={test: Status(status) for test, status in visible.tests.items()},
        seconds=visible.seconds,
        cpu_seconds=visible.cpu_seconds,
        chosen=visible.files,
        fallbacks=visible.fallbacks,
        lint=record.lint_errors,
        dropped=record.dropped_paths,
    )


@functools.lru_cache(maxsize=32)
def _files(patch: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Asked of every attempt when it ends, and again of the prediction."""
    changes = parse(patch) if patch else ()
    added = (change.new for change in changes if change.kind is ChangeKind.ADDED and change.new)
    edited = (change.new or change.old or "" for change in changes if change.kind is not ChangeKind.ADDED)
    return tuple(added), tuple(edited)


def without_tests(patch: str, editable: Collection[str]) -> str:
    """As leaderboards score it: without test paths (but for files that the task is about), empty for none."""
    try:
        changes = parse(patch)
    except PatchError:
        # Refused as a whole; whoever scores it will see that for themselves.
        return patch
    return "".join(change.text for change in changes if not _is_test(change) or change.new in editable)


def _is_test(change: Change) -> bool:
    name = f"/{change.new or change.old or ''}"
    return any(part in name for part in TEST_PATHS)
