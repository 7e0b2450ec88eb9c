"""What predictions look like on disk, field by field; the names are those of the aider SWE-bench harness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retrial.attempts import UNVERIFIED, rank
from retrial.store.json_io import IF_GIVEN, NAMED_TRY, decode
from retrial.types import fingerprint


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
class AttemptRecord:
    """An entry of `all_results`. Earlier versions did not write the fields that have a default."""

    number: int = field(metadata=NAMED_TRY)
    round: int = 0
    model_patch: str = ""
    model: str
    edit_format: str
    temperature: int | float = 0.0
    seed: int = 0
    cost: float | None
    prompt_tokens: int
    completion_tokens: int
    calls: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    served: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    model_seconds: float
    duration: float = 0.0
    seconds: float = 0.0
    added_files: tuple[str, ...] | None = None
    edited_files: tuple[str, ...] | None = None
    dropped_paths: tuple[str, ...] = ()
    edit_outcome: bool = False
    lint_outcome: bool = False
    test_outcome: bool | None = False
    plausible: bool
    unverified: bool = False
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
    def counts(self) -> bool:
        """Whether there is a patch, and anything of it does."""
        return _counts(self)

    @property
    def visible_outcome(self) -> str:
        return self.visible.outcome or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionRecord:
    """What `<id>.json` holds: the chosen attempt, and all of them. Fields with a default as in `AttemptRecord`."""

    instance_id: str
    model_name_or_path: str
    model_patch: str | None
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
    number: int = field(metadata=NAMED_TRY)
    """Of the chosen attempt."""
    tries: int = 0
    """How many attempts there were."""
    rounds: int = 0
    all_results: tuple[AttemptRecord, ...]
    masked: bool = field(default=False, metadata=IF_GIVEN)
    """A key was masked in it."""
    dname: str = field(default="", metadata=IF_GIVEN)

    @property
    def counts(self) -> bool:
        """As `AttemptRecord.counts`."""
        return _counts(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSummary:
    """An attempt's record without its bulk: as much as rankings, comparisons and reports are made from."""

    number: int
    round: int
    """0 in runs of long ago, which do not say it."""
    model: str
    edit_format: str
    patch_id: str
    counts: bool
    edit_outcome: bool
    lint_outcome: bool
    test_outcome: bool | None
    plausible: bool
    unverified: bool
    visible_outcome: str
    """What the visible tests said of it; empty where they were not asked."""
    error: str
    agent_error: str
    served: tuple[str, ...]
    faults: Mapping[str, int]
    tests_outcomes: tuple[bool, ...]
    dname: str
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
    def rank(self) -> int:
        return _rank(self)

    @property
    def title(self) -> str:
        """Of the rung that it was made by."""
        return f"{self.model}:{self.edit_format}" if self.edit_format else self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionSummary:
    """A prediction's record without its bulk."""

    instance_id: str
    model_name_or_path: str
    model: str
    edit_format: str
    counts: bool
    edit_outcome: bool
    lint_outcome: bool
    test_outcome: bool | None
    plausible: bool
    unverified: bool
    number: int
    """Of the chosen attempt."""
    tries: int
    dname: str
    all_results: tuple[AttemptSummary, ...]

    @property
    def rank(self) -> int:
        return _rank(self)

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


def _counts(record: AttemptRecord | PredictionRecord) -> bool:
    """The lists of files are of what counts, the raw patch may hold more."""
    added, edited = record.added_files, record.edited_files
    return bool((record.model_patch or "").strip()) and (added is None or edited is None or bool(added or edited))


def _rank(record: AttemptSummary | PredictionSummary) -> int:
    return rank(patch=record.counts, edit=record.edit_outcome, lint=record.lint_outcome, test=record.test_outcome)
