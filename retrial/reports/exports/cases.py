"""Every selected task of a result, also those that were never scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from retrial.types import Outcome


class CaseKind(StrEnum):
    """What a result says of a task, each in one place only."""

    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    VOID = "void"
    """Measured, and worth nothing: its reference fails here, or its stub passes."""
    NOT_MEASURED = "not measured"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedCase:
    instance_id: str
    kind: CaseKind
    outcome: str
    reason: str
    row: Mapping[str, Any] = field(default_factory=dict)
    """Of `instances`; empty where nothing was scored."""


def every(content: Mapping[str, Any]) -> list[ExportedCase]:
    """By id."""
    found = {row["instance_id"]: _scored(row) for row in content["instances"]}
    for instance_id, reason in content["not_measured"].items():
        never = ExportedCase(
            instance_id=instance_id, kind=CaseKind.NOT_MEASURED, outcome=str(Outcome.NOT_MEASURED), reason=reason
        )
        found.setdefault(instance_id, never)
    for instance_id, reason in content["skipped"].items():
        found[instance_id] = ExportedCase(
            instance_id=instance_id, kind=CaseKind.SKIPPED, outcome=str(CaseKind.SKIPPED), reason=reason
        )
    return [found[key] for key in sorted(found)]


def _scored(row: Mapping[str, Any]) -> ExportedCase:
    outcome = Outcome(row["outcome"])
    if not outcome.measured:
        kind = CaseKind.NOT_MEASURED
    elif row["void"]:
        kind = CaseKind.VOID
    else:
        kind = CaseKind.RESOLVED if row["resolved"] else CaseKind.UNRESOLVED
    reason = row["void"] if kind is CaseKind.VOID else row["reason"]
    return ExportedCase(instance_id=row["instance_id"], kind=kind, outcome=str(outcome), reason=reason, row=row)


def model_names(content: Mapping[str, Any]) -> list[str]:
    """As the predictions have them."""
    return sorted({str(row["model_name_or_path"]) for row in content["instances"]})


def made_elsewhere(content: Mapping[str, Any]) -> bool:
    """Predictions of which only the patches are known."""
    return "file" in content["provenance"] or "kind" in content["provenance"]
