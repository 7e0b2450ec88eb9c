"""How predictions look on disk; the names are those of the aider SWE-bench harness."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from retrial.attempts import AgentResult, Attempt, Prediction
from retrial.chat import Usage
from retrial.errors import PatchError
from retrial.patches.parser import Change, ChangeKind, parse
from retrial.types import Outcome, Status, Verdict

# What the original harness leaves out before a patch is submitted: acceptance tests are put there afterwards.
TEST_PATHS = ("/test/", "/tests/", "/testing/", "/test_", "/tox.ini")

# What a record has under the name that our values have.
_COUNTS = (
    "cost", "calls", "prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens",
)  # fmt: skip
_KEPT = (
    "round", "model", "edit_format", "seed", "temperature", "edit_outcome", "lint_outcome", "test_outcome", "seconds",
    "error",
)  # fmt: skip
_EFFORTS = ("reflections", "lazy_comments", "syntax_errors", "indentation_errors", "test_timeouts")


def prediction_record(prediction: Prediction) -> dict[str, object]:
    chosen = prediction.chosen
    return {
        "instance_id": prediction.instance_id,
        "model_name_or_path": prediction.model_name_or_path,
        "model_patch": chosen.patch,
        **_common(chosen),
        "plausible": chosen.plausible,
        "unverified": chosen.unverified,
        "try": chosen.number,
        "tries": len(prediction.attempts),
        "rounds": prediction.tries,
        "all_results": [attempt_record(attempt) for attempt in prediction.attempts],
    }


def attempt_record(attempt: Attempt) -> dict[str, object]:
    effort, verdict = attempt.effort, attempt.verdict
    return {
        "try": attempt.number,
        "round": attempt.round,
        "model_patch": attempt.patch,
        **_common(attempt),
        "plausible": attempt.plausible,
        "unverified": attempt.unverified,
        "error": attempt.error,
        "tests_outcomes": list(effort.tests_outcomes) if effort else [],
        "num_malformed_responses": effort.malformed if effort else 0,
        "reflections": effort.reflections if effort else 0,
        "lazy_comments": effort.lazy_comments if effort else 0,
        "syntax_errors": effort.syntax_errors if effort else 0,
        "indentation_errors": effort.indentation_errors if effort else 0,
        "test_timeouts": effort.test_timeouts if effort else 0,
        "num_exhausted_context_windows": effort.exhausted if effort else 0,
        "num_error_outputs": _error_outputs(attempt),
        "num_user_asks": effort.user_asks if effort else 0,
        "faults": dict(Counter(effort.faults)) if effort else {},
        "notes": list(effort.notes) if effort else [],
        # Only where there is one, so that records of earlier versions can be read back unchanged.
        **({"agent_error": effort.error} if effort and effort.error else {}),
        "lint_errors": list(verdict.lint) if verdict else [],
        "visible": {
            "outcome": verdict.outcome if verdict else None,
            "reason": verdict.reason if verdict else attempt.error,
            "tests": dict(verdict.tests) if verdict else {},
            "seconds": round(verdict.seconds, 3) if verdict else 0,
            "cpu_seconds": verdict.cpu_seconds and round(verdict.cpu_seconds, 3) if verdict else None,
            "files": list(verdict.chosen) if verdict else [],
            "fallbacks": list(verdict.fallbacks) if verdict else [],
        },
    }


def attempt_of(record: Mapping[str, Any], counted: str) -> Attempt:
    """The attempt that has this record; `counted` is the part of its patch that does.

    Raises: KeyError, TypeError or ValueError when it was something else.
    """
    said = record["reflections"] + record["num_exhausted_context_windows"] + bool(record["error"])
    usage = Usage(
        **{name: record[name] for name in _COUNTS},
        seconds=record["model_seconds"],
        retries=record["num_error_outputs"] - said,
    )
    return Attempt(
        number=record["try"],
        **{name: record[name] for name in _KEPT},
        patch=record["model_patch"],
        counted=counted,
        dropped=tuple(record["dropped_paths"]),
        usage=usage,
        effort=_effort(record),
        verdict=_verdict(record),
        served=tuple(record["served"]),
        left_out=tuple(record["left_out"]),
    )


def _effort(record: Mapping[str, Any]) -> AgentResult:
    return AgentResult(
        edit_outcome=record["edit_outcome"],
        tests_outcomes=tuple(record["tests_outcomes"]),
        malformed=record["num_malformed_responses"],
        exhausted=record["num_exhausted_context_windows"],
        user_asks=record["num_user_asks"],
        faults=tuple(Counter(record["faults"]).elements()),
        notes=tuple(record["notes"]),
        error=record.get("agent_error", ""),
        **{name: record[name] for name in _EFFORTS},
    )


def _verdict(record: Mapping[str, Any]) -> Verdict:
    visible = record["visible"]
    return Verdict(
        outcome=Outcome(visible["outcome"]),
        reason=visible["reason"],
        tests={test: Status(status) for test, status in visible["tests"].items()},
        seconds=visible["seconds"],
        cpu_seconds=visible.get("cpu_seconds"),
        chosen=tuple(visible.get("files", ())),
        fallbacks=tuple(visible.get("fallbacks", ())),
        lint=tuple(record["lint_errors"]),
        dropped=tuple(record["dropped_paths"]),
    )


def _error_outputs(attempt: Attempt) -> int:
    """Everything that went wrong on the way and was said: malformed and cut-off replies, lint, failed calls."""
    effort = attempt.effort
    said = effort.reflections + effort.exhausted if effort else 0
    return said + attempt.usage.retries + bool(attempt.error)


def _common(attempt: Attempt) -> dict[str, object]:
    added, edited = _files(attempt.counted)
    return {
        "model": attempt.model,
        "edit_format": attempt.edit_format,
        "temperature": attempt.temperature,
        "seed": attempt.seed,
        "cost": attempt.usage.cost,
        "prompt_tokens": attempt.usage.prompt_tokens,
        "completion_tokens": attempt.usage.completion_tokens,
        "calls": attempt.usage.calls,
        "cached_tokens": attempt.usage.cached_tokens,
        "cache_write_tokens": attempt.usage.cache_write_tokens,
        "reasoning_tokens": attempt.usage.reasoning_tokens,
        "served": list(attempt.served),
        "left_out": list(attempt.left_out),
        "model_seconds": round(attempt.usage.seconds, 3),
        "duration": round(attempt.usage.seconds, 3),
        "seconds": round(attempt.seconds, 3),
        "added_files": list(added),
        "edited_files": list(edited),
        "dropped_paths": list(attempt.dropped),
        "edit_outcome": attempt.edit_outcome,
        "lint_outcome": attempt.lint_outcome,
        "test_outcome": attempt.test_outcome,
    }


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
