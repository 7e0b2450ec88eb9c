"""What a run has so far, read back: for scoring it, for making one result of several, for going on after it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from retrial.attempts import Attempt
from retrial.errors import UsageError
from retrial.store import integrity
from retrial.store.runs import Run
from retrial.types import Task, fingerprint

PredictionSummary = Mapping[str, Any]
"""A prediction's record without its bulk: as much as rankings, comparisons and reports are made from."""

KEPT = (
    *("instance_id", "model_name_or_path", "model_patch", "model", "edit_format", "added_files", "edited_files"),
    *("edit_outcome", "lint_outcome", "test_outcome", "plausible", "unverified", "try", "tries", "dname"),
)
KEPT_OF_ATTEMPTS = (
    *(
        "try",
        "round",
        "model",
        "edit_format",
        "plausible",
        "unverified",
        "error",
        "agent_error",
        "served",
        "faults",
        "tests_outcomes",
    ),
    *("edit_outcome", "lint_outcome", "test_outcome", "dname"),
    *("cost", "calls", "prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "model_seconds"),
    *("num_malformed_responses", "lazy_comments", "syntax_errors", "indentation_errors", "test_timeouts"),
    *("num_error_outputs", "num_user_asks", "num_exhausted_context_windows"),
)

GROUPS = {"grid": "a grid", "repeats": "a group of repeats"}
"""Kinds of what lists runs, for people."""

UNFINISHED = "phase 1 has not finished it: run the same harness.py command again"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """A run with predictions: one of harness.py, or one made of several."""

    run: Run
    stored: Mapping[str, Any]
    """Its run.json."""
    records: Mapping[str, PredictionSummary]
    """Its predictions, by id."""

    @property
    def identity(self) -> Mapping[str, Any]:
        identity: Mapping[str, Any] = self.stored["identity"]
        return identity

    @property
    def selected(self) -> set[str]:
        return {*self.stored.get("selected", ()), *self.records}

    @property
    def skipped(self) -> dict[str, str]:
        return {key: why for key, why in self.stored.get("skipped", {}).items() if key not in self.records}

    @property
    def not_predicted(self) -> dict[str, str]:
        """Selected, not skipped and not finished: id → reason."""
        missing = sorted(self.selected - set(self.records) - set(self.skipped))
        return {instance_id: self._why_open(instance_id) for instance_id in missing}

    def _why_open(self, instance_id: str) -> str:
        lines = self.run.journal(instance_id).lines()
        reasons = [line["reason"] for line in lines if line.get("event") == "not_measured"]
        # A run made of several has no journals.
        known: Mapping[str, str] = self.stored.get("not_predicted", {})
        return str(reasons[-1]) if reasons else known.get(instance_id, UNFINISHED)


def identity(run: Run, stored: Mapping[str, Any]) -> Mapping[str, Any]:
    found = stored.get("identity")
    if not isinstance(found, dict):
        raise UsageError(f"{run.config_path} does not say what the run is: its identity is missing.")
    return found


def holds_predictions(stored: Mapping[str, Any]) -> bool:
    """Whether a run has records of phase 1; one made from a file, `--gold` or `--null` has a bundle only."""
    return stored.get("program") == "harness.py" or is_merged(stored)


def is_merged(stored: Mapping[str, Any]) -> bool:
    return bool(stored.get("sources"))


def group_kind(stored: Mapping[str, Any]) -> str:
    """One of `GROUPS` when it is no run, but a list of them; else empty.

    Raises: UsageError when the list is not there.
    """
    kind = str(stored.get("kind", ""))
    if kind in GROUPS and not (stored.get("runs") and integrity.matches_schema(stored["runs"], [{"run": str}])):
        raise UsageError(f"run.json of '{stored.get('run')}' does not say which runs it is made of: name one.")
    return kind if kind in GROUPS else ""


def read(run: Run) -> RunHistory:
    """Raises: UsageError when it has no predictions of phase 1, or they cannot be read."""
    run.refuse_links()
    stored = run.config()
    if kind := group_kind(stored):
        raise UsageError(f"'{run.name}' is {GROUPS[kind]}: name one of its runs, such as '{stored['runs'][0]['run']}'.")
    identity(run, stored)
    if not holds_predictions(stored):
        raise UsageError(f"Run '{run.name}' was made from a file or by --gold or --null, not by harness.py.")
    records = {str(record["instance_id"]): prediction_summary(record) for record in run.predictions()}
    return RunHistory(run=run, stored=stored, records=records)


def prediction_summaries(run: Run, tasks: Iterable[Task]) -> dict[str, PredictionSummary]:
    """Of those of these tasks that are done, by id."""
    found = ((task.instance_id, run.prediction(task.instance_id)) for task in tasks)
    return {instance_id: prediction_summary(record) for instance_id, record in found if record is not None}


def prediction_summary(record: Mapping[str, Any]) -> PredictionSummary:
    return {**_some(record, KEPT), "all_results": [_brief_attempt(attempt) for attempt in record["all_results"]]}


def _brief_attempt(attempt: Mapping[str, Any]) -> dict[str, Any]:
    """Of its patch, whether any of it counts and which it is: patches may be large."""
    told = {"patch_id": patch_id(attempt), "counts": counts(attempt), "visible_outcome": visible_outcome(attempt)}
    return {**_some(attempt, KEPT_OF_ATTEMPTS), **told}


def patch_id(attempt: Mapping[str, Any]) -> str:
    """The same for the same patch, and empty for none; of an entry of `all_results`, whole or brief."""
    if "patch_id" in attempt:
        return str(attempt["patch_id"])
    patch = str(attempt.get("model_patch") or "")
    return fingerprint(patch)[:16] if patch.strip() else ""


def counts(record: Mapping[str, Any]) -> bool:
    """Whether anything in the patch does: the lists of files are of what counts, the raw patch may hold more."""
    if "counts" in record:
        return bool(record["counts"])
    return bool(record.get("added_files", True) or record.get("edited_files", True))


def visible_outcome(attempt: Mapping[str, Any]) -> str:
    """What the visible tests said of it; empty where they were not asked."""
    if "visible_outcome" in attempt:
        return str(attempt["visible_outcome"])
    visible = attempt.get("visible")
    return str(visible.get("outcome") or "") if isinstance(visible, dict) else ""


def _some(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value[name] for name in names if name in value}


def refuse_other_benchmark(pasts: Iterable[RunHistory], source: object, digest: object) -> None:
    """Raises: UsageError naming the first that is not about exactly this benchmark."""
    for past in pasts:
        found = past.identity.get("benchmark")
        if found != source:
            raise UsageError(f"Run '{past.run.name}' is about {found}, not {source}: runs must share a benchmark.")
        if past.identity.get("benchmark_digest") != digest:
            raise UsageError(f"Run '{past.run.name}' is about another state of {source}: runs must share a benchmark.")


def rank(record: PredictionSummary) -> int:
    """That of the chosen attempt, or of an entry of `all_results`: 0 is best."""
    return _attempt(record).rank


def settled(record: PredictionSummary) -> bool:
    """Plausible, or as good as it can be told to be."""
    chosen = _attempt(record)
    return chosen.plausible or chosen.unverified


def _attempt(record: PredictionSummary) -> Attempt:
    """As much of an attempt as its rank needs, so that one rule ranks attempts, runs and what might have been."""
    return Attempt(
        number=1,
        round=1,
        model="",
        edit_format="",
        seed=0,
        temperature=0.0,
        counted=patch_id(record) if counts(record) else "",
        edit_outcome=bool(record.get("edit_outcome")),
        lint_outcome=bool(record.get("lint_outcome")),
        test_outcome=record.get("test_outcome", False),
    )
