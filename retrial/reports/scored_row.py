"""One scored submission, as much of it as a report counts. The rest is in its logs, and no memory holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retrial.grading.canaries import ShownCanary
from retrial.grading.tamper_report import Tampering
from retrial.types import Task, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRow:
    task: Task
    model_name_or_path: str
    verdict: Verdict
    """As much of it as results.json has."""
    void: str
    calibrated: bool
    cached: bool
    finds_gold_file: bool
    """The patch edits or adds a file that the reference changes."""
    tampering: Tampering
    canaries: tuple[ShownCanary, ...]
    standing: Standing | None
    """In the official report, where the benchmark has one."""
    required: Mapping[str, int] = field(default_factory=dict)
    """Of a task that says which tests must pass: how many these are, and how many of them did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the official runner would have said of one instance."""

    completed: bool
    """The tests were started and came to an end, good or bad; nothing else has an official report."""
    resolved: bool
    failure: str
    """What it would take for the environment's fault."""
    sure: bool
