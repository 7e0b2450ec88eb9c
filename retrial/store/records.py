"""What predictions look like on disk, field by field; the names are those of the aider SWE-bench harness.

Attempts and predictions of phase 1 as such records, and attempts back from theirs.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from retrial.attempts import UNVERIFIED, AgentResult, Attempt, Prediction, rank
from retrial.chat import Usage
from retrial.patches.parser import parse
from retrial.store.json_io import FIRST, IF_GIVEN, NAMED_TRY, decode
from retrial.types import Outcome, Status, Verdict, fingerprint

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


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleRecord:
    """What the visible check said of an attempt."""

    outcome: str | None = None
    """None where it was not made."""
    reason: str = ""
    tests: Mapping[str, str] = field(default_factory=dict)
    seconds: int | float = 0
    cpu_seconds: float | None = None
    files: tuple[str, ...] = ()
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeEdit:
    """What the records of an attempt and of a prediction share. Earlier versions did not write all of it."""

    model_patch: str | None = None
    model: str = ""
    edit_format: str = ""
    temperature: int | float = 0.0
    seed: int = 0
    cost: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    served: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    model_seconds: float = 0.0
    duration: float = 0.0
    seconds: float = 0.0
    added_files: tuple[str, ...] | None = None
    edited_files: tuple[str, ...] | None = None
    dropped_paths: tuple[str, ...] = ()
    edit_outcome: bool = False
    lint_outcome: bool = False
    test_outcome: bool | None = False
    plausible: bool = False
    unverified: bool = False

    @property
    def counts(self) -> bool:
        """Whether there is a patch, and anything of it does."""
        # The lists of files are of what counts, the raw patch may hold more.
        added, edited = self.added_files, self.edited_files
        return bool((self.model_patch or "").strip()) and (added is None or edited is None or bool(added or edited))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord(MadeEdit):
    """An entry of `all_results`. Earlier versions did not write the fields that have a default."""

    number: int = field(metadata=FIRST | NAMED_TRY)
    round: int = field(default=0, metadata=FIRST)
    model_patch: str = ""
    model: str
    edit_format: str
    cost: float | None
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float
    plausible: bool
    error: str
    tests_outcomes: tuple[bool, ...]
    num_malformed_responses: int
    reflections: int = 0
    lazy_comments: int = 0
    syntax_errors: int = 0
    indentation_errors: int = 0
    test_timeouts: int = 0
    num_exhausted_context_windows: int = 0
    num_error_outputs: int = 0
    num_user_asks: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    agent_error: str = field(default="", metadata=IF_GIVEN)
    lint_errors: tuple[str, ...] = ()
    visible: VisibleRecord = field(default_factory=VisibleRecord)
    dname: str = field(default="", metadata=IF_GIVEN)
    """Of a run made of several: the one that made this attempt."""

    @property
    def patch_id(self) -> str:
        return patch_id(self.model_patch)

    @property
    def visible_outcome(self) -> str:
        return self.visible.outcome or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRecord(MadeEdit):
    """What `<id>.json` holds: the chosen attempt, and all of them. Fields with a default as in `AttemptRecord`."""

    instance_id: str = field(metadata=FIRST)
    model_name_or_path: str = field(metadata=FIRST)
    model_patch: str | None
    number: int = field(metadata=NAMED_TRY)
    """Of the chosen attempt."""
    tries: int = 0
    """How many attempts there were."""
    rounds: int = 0
    all_results: tuple[AttemptRecord, ...]
    masked: bool = field(default=False, metadata=IF_GIVEN)
    """A key was masked in it."""
    dname: str = field(default="", metadata=IF_GIVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedEdit:
    """What the summaries of an attempt and of a prediction share."""

    number: int
    """Of a prediction: of the chosen attempt."""
    model: str
    edit_format: str
    counts: bool
    edit_outcome: bool
    lint_outcome: bool
    test_outcome: bool | None
    plausible: bool
    unverified: bool
    dname: str

    @property
    def rank(self) -> int:
        return rank(patch=self.counts, edit=self.edit_outcome, lint=self.lint_outcome, test=self.test_outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSummary(RankedEdit):
    """An attempt's record without its bulk: as much as rankings, comparisons and reports are made from."""

    round: int
    """0 in runs of long ago, which do not say it."""
    patch_id: str
    visible_outcome: str
    """What the visible tests said of it; empty where they were not asked."""
    error: str
    agent_error: str
    served: tuple[str, ...]
    faults: Mapping[str, int]
    tests_outcomes: tuple[bool, ...]
    cost: float | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    model_seconds: float
    num_malformed_responses: int
    lazy_comments: int
    syntax_errors: int
    indentation_errors: int
    test_timeouts: int
    num_error_outputs: int
    num_user_asks: int
    num_exhausted_context_windows: int

    @property
    def title(self) -> str:
        """Of the rung that it was made by."""
        return f"{self.model}:{self.edit_format}" if self.edit_format else self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionSummary(RankedEdit):
    """A prediction's record without its bulk."""

    instance_id: str
    model_name_or_path: str
    tries: int
    all_results: tuple[AttemptSummary, ...]

    @property
    def settled(self) -> bool:
        """Plausible, or as good as it can be told to be."""
        return self.rank <= UNVERIFIED


def read_record(value: object) -> PredictionRecord:
    """Make a prediction's record of what JSON has of it. Raises: ValueError."""
    named = with_number(value)
    if isinstance(named, dict) and isinstance(named.get("all_results"), list):
        named["all_results"] = [with_number(attempt) for attempt in named["all_results"]]
    return decode(named, PredictionRecord)


def with_number(value: object) -> object:
    """What JSON has of an attempt or a prediction, with `number` for `try`."""
    return {**value, "number": value.get("try")} if isinstance(value, dict) else value


def summary(record: PredictionRecord) -> PredictionSummary:
    """The same values, without those that it does not have: patches may be large."""
    return decode(record, PredictionSummary)


def patch_id(patch: str) -> str:
    """The same for the same patch, and empty for none."""
    return fingerprint(patch)[:16] if patch.strip() else ""


def prediction_record(prediction: Prediction) -> PredictionRecord:
    records = tuple(map(attempt_record, prediction.attempts))
    chosen = records[prediction.attempts.index(prediction.chosen)]
    return PredictionRecord(
        instance_id=prediction.instance_id,
        model_name_or_path=prediction.model_name_or_path,
        **{each.name: getattr(chosen, each.name) for each in fields(MadeEdit)},
        number=chosen.number,
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
        effort=AgentResult(
            edit_outcome=record.edit_outcome,
            **{name: getattr(record, name) for name in _OF_EFFORT},
            malformed=record.num_malformed_responses,
            exhausted=record.num_exhausted_context_windows,
            user_asks=record.num_user_asks,
            faults=tuple(Counter(record.faults).elements()),
            error=record.agent_error,
        ),
        verdict=_verdict(record),
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
    added = (change.new for change in changes if change.old is None and change.new)
    edited = (change.new or change.old or "" for change in changes if change.old is not None)
    return tuple(added), tuple(edited)
