"""What a report needs of each scored submission. All else is in its logs by then, and is forgotten: of thousands of
runs of tests no memory holds what they printed."""

from __future__ import annotations

from retrial import registry
from retrial.benchmarks.swebench import container_script, grader
from retrial.errors import PatchError
from retrial.grading import canaries
from retrial.patches import policy
from retrial.protocols import ResultParser
from retrial.reports.scored_row import ScoredRow
from retrial.score import official_report
from retrial.score.scorer import Scored
from retrial.system.secrets import MASKER
from retrial.types import Verdict

LONGEST = 1000
"""Characters."""


def scored_row(scored: Scored) -> ScoredRow:
    return ScoredRow(
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
        stdout=stdout(scored),
        stderr=stderr(scored),
        dropped=verdict.dropped,
        applied=verdict.applied,
        official=verdict.official,
    )


def _finds_gold_file(scored: Scored) -> bool:
    try:
        return not set(policy.changed_paths(scored.submission.patch)).isdisjoint(scored.gold_files)
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


def stdout(row: Scored) -> str:
    """The telling part: of a benchmark's own log, which begins with the environment's talk, that is the end."""
    log = container_script.read(row.verdict.stdout).log if row.check and row.check.required else ""
    return _without_canary(row, log)[-LONGEST:] or _without_canary(row, row.verdict.stdout)[:LONGEST]


def stderr(row: Scored) -> str:
    return _without_canary(row, row.verdict.stderr)[:LONGEST]


def _without_canary(row: Scored, text: str) -> str:
    """What is there to prove that tests can fail is not what failed; and before it is cut, what nobody may see."""
    text = MASKER.redact(text)
    if not row.verdict.canary or row.check is None or not row.check.result_parser:
        return text
    reader: ResultParser = registry.load(row.check.result_parser).parser()
    for name in row.verdict.canary.split(", "):
        text = reader.without(text, name)
    return text
