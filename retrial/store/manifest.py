"""run.json, read back: what a run is, how it was started, and what it was made of.

The writer decides which fields it has; unknown fields are ignored, and missing ones have a default.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.store.json_io import IF_GIVEN

GROUPS = {"grid": "a grid", "repeats": "a group of repeats"}
"""Kinds of what lists runs, for people."""


def utc_now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    name: str = field(default="", metadata=IF_GIVEN)
    isolated: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One run of a group."""

    run: str = ""
    model: str = field(default="", metadata=IF_GIVEN)
    """In a grid."""
    edit_format: str = field(default="", metadata=IF_GIVEN)
    seed: int | None = field(default=None, metadata=IF_GIVEN)
    """In repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedShards:
    """Which shards of a whole one result was made of, also in results.json."""

    of: int
    given: tuple[int, ...]
    missing: tuple[int, ...]
    overlapping: tuple[str, ...]
    """Tasks that several of them have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRun:
    """What a run made of several keeps of one of them; as in `Manifest`."""

    command: str = field(default="", metadata=IF_GIVEN)
    started: str = field(default="", metadata=IF_GIVEN)
    first_started: str = field(default="", metadata=IF_GIVEN)
    host: str = field(default="", metadata=IF_GIVEN)
    sandbox: Mapping[str, Any] | None = field(default=None, metadata=IF_GIVEN)
    versions: Mapping[str, str] | None = field(default=None, metadata=IF_GIVEN)
    shard: Mapping[str, Any] | None = field(default=None, metadata=IF_GIVEN)
    predictions: int = 0
    spent: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    program: str = ""
    kind: str = ""
    """`grid`, `repeats` or `calibration`; empty for a run."""
    run: str = ""
    grid: str = ""
    """The group that it belongs to."""
    shard: Mapping[str, Any] | None = None
    command: str = ""
    started: str = ""
    first_started: str = ""
    identity: Mapping[str, Any] | None = None
    """What may not change between two goes at it, setting by setting."""
    agent: AgentFacts = field(default_factory=AgentFacts)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    model_name_or_path: str = ""
    selected: tuple[str, ...] = ()
    prior: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    sandbox: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)
    unpriced: tuple[str, ...] = ()
    served: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    host: str = ""
    versions: Mapping[str, str] | None = None
    sources: tuple[str, ...] | None = None
    """Of a run made of several: their names. So are the next five."""
    source_runs: Mapping[str, SourceRun] | None = None
    shards: MergedShards | None = None
    not_predicted: Mapping[str, str] = field(default_factory=dict)
    spent: Usage | None = None
    unsettled: float | None = 0.0
    runs: tuple[ListedRun, ...] = ()
    """Of a group."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """Of predictions made elsewhere. So is the next."""
    untouched: bool = False
    waiting: tuple[str, ...] = ()
    """Of a calibration: tasks that it has not come to."""

    def setting(self, name: str) -> Any:
        """One of `identity`; None where it is not known."""
        return (self.identity or {}).get(name)

    @property
    def is_merged(self) -> bool:
        return bool(self.sources)

    @property
    def holds_predictions(self) -> bool:
        """Whether a run has records of phase 1; one made from a file, `--gold` or `--null` has a bundle only."""
        return self.program == "harness.py" or self.is_merged

    @property
    def group(self) -> str:
        """One of `GROUPS` when it is no run, but a list of them; else empty.

        Raises: UsageError when the list is not there.
        """
        if self.kind not in GROUPS:
            return ""
        if not self.runs or not all(each.run for each in self.runs):
            raise UsageError(f"run.json of '{self.run}' does not say which runs it is made of: name one.")
        return self.kind
