"""What a report needs of each scored submission. All else is in its logs by then, and is forgotten: of thousands of
runs of tests no memory holds what they printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retrial.benchmarks.swebench import grader
from retrial.errors import PatchError
from retrial.grading import canaries
from retrial.grading.tamper_report import Tampering
from retrial.patches import apply
from retrial.score import excerpts, official_report
from retrial.score.official_report import Standing
from retrial.score.scorer import Scored
from retrial.types import Task, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
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
    canaries: list[dict[str, object]]
    standing: Standing | None
    """In the official report, where the benchmark has one."""
    required: Mapping[str, int] = field(default_factory=dict)
    """Of a task that says which tests must pass: how many these are, and how many of them did."""


def brief(scored: Scored) -> Row:
    return Row(
        task=scored.task,
        model_name_or_path=scored.submission.model_name_or_path,
        verdict=_verdict(scored),
        void=scored.void,
        calibrated=scored.calibrated,
        cached=scored.cached,
        finds_gold_file=_finds_gold_file(scored),
        tampering=scored.tampering,
        canaries=canaries.shown(scored.canaries),
        standing=official_report.standing(scored),
        required=_required(scored),
    )


def _verdict(scored: Scored) -> Verdict:
    verdict = scored.verdict
    return Verdict(
        outcome=verdict.outcome,
        reason=verdict.reason,
        tests=verdict.tests,
        exit_code=verdict.exit_code,
        seconds=verdict.seconds,
        proof=verdict.proof,
        stdout=excerpts.stdout(scored),
        stderr=excerpts.stderr(scored),
        dropped=verdict.dropped,
        applied=verdict.applied,
        official=verdict.official,
    )


def _finds_gold_file(scored: Scored) -> bool:
    try:
        return not set(apply.touched(scored.submission.patch)).isdisjoint(scored.gold_files)
    except PatchError:
        return False


def _required(scored: Scored) -> dict[str, int]:
    """Of a repository's others some always fail."""
    required, tests = scored.check.required if scored.check else None, scored.verdict.tests
    if required is None:
        return {}
    total = len(required.fail_to_pass) + len(required.pass_to_pass)
    passed = total - len(grader.not_passed(required, tests)) if tests else 0
    return {"tests_required": total, "tests_required_passed": passed}
