"""Write down one verdict; the driver alone does, and memory keeps only what the report counts."""

from __future__ import annotations

from dataclasses import replace

from retrial import __version__, registry
from retrial.errors import PatchError
from retrial.grading import canaries
from retrial.grading.judge import own_grader
from retrial.language import ResultParser
from retrial.patches import policy
from retrial.protocols import Benchmark
from retrial.reports.analysis.cases import Judged, ScoredRow, Standing
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored, eval_log, verdict_of
from retrial.store.manifest import utc_now
from retrial.store.runs import Run
from retrial.system import run_log
from retrial.system.secrets import MASKER
from retrial.types import Task

LONGEST_EXCERPT = 1000
"""Characters."""
LONGEST = 100
"""Letters of a model's name in the name of an attempt's log: its number must not be cut off."""


def write_config(run: Run, benchmark: Benchmark, *, started: str = "", kind: str = "", **more: object) -> None:
    """run.json of a run that this program makes; `more` is what only its kind has."""
    provenance = benchmark.provenance
    run.write_config(
        {
            "program": "report.py",
            **({"kind": kind} if kind else {}),
            "run": run.name,
            "started": started or utc_now(),
            "identity": {"benchmark": provenance["source"], "benchmark_digest": provenance["digest"]},
            "provenance": dict(provenance),
            **more,
            "versions": {"retrial": __version__},
        }
    )


def save_verdict(run: Run, task: Task, submission: Submission, result: Scored | Exception) -> ScoredRow:
    scored = _scored(task, submission, result)
    run.write_log(task.instance_id, submission.model_name_or_path, eval_log(scored))
    run.write_official(task.instance_id, _official_files(scored) if scored.is_official else {})
    return scored_row(scored)


def save_attempt(run: Run, task: Task, submission: Submission, number: int, result: Scored | Exception) -> Judged:
    """Of a patch that was not chosen: its log, beside the chosen one's, and what scoring said of it."""
    scored = _scored(task, submission, result, attempt=number)
    run.write_log(task.instance_id, f"{submission.model_name_or_path[:LONGEST]}.try-{number}", eval_log(scored))
    verdict = scored.verdict
    return Judged(outcome=verdict.outcome, reason="" if verdict.outcome.measured else verdict.reason, number=number)


def _scored(task: Task, submission: Submission, result: Scored | Exception, **about: object) -> Scored:
    if not isinstance(result, Exception):
        return result
    run_log.broken("not measured", result, task=task.instance_id, **about)
    return Scored(submission=submission, task=task, verdict=verdict_of(result))


def scored_row(scored: Scored) -> ScoredRow:
    """What a report needs of it. All else is in its logs by then, and is forgotten: of thousands of runs of tests no
    memory holds what they printed."""
    stderr = _without_canary(scored, scored.verdict.stderr)[:LONGEST_EXCERPT]
    return ScoredRow(
        task=scored.task,
        model_name_or_path=scored.submission.model_name_or_path,
        verdict=replace(scored.verdict, stdout=_stdout(scored), stderr=stderr, telling=""),
        void=scored.void,
        calibrated=scored.calibrated,
        cached=scored.cached,
        finds_gold_file=_finds_gold_file(scored),
        tampering=scored.tampering,
        canaries=canaries.shown(scored.canaries),
        standing=_standing(scored) if scored.is_official else None,
        required=_required(scored),
    )


def _official_files(scored: Scored) -> dict[str, bytes]:
    # What the official runner would say is loaded only for its own tasks.
    from retrial.score import official_report

    return official_report.files(scored)


def _standing(scored: Scored) -> Standing:
    from retrial.score import official_report

    return official_report.standing(scored)


def _finds_gold_file(scored: Scored) -> bool:
    try:
        return not set(policy.changed_paths(scored.submission.patch)).isdisjoint(scored.gold_files)
    except PatchError:
        return False


def _required(scored: Scored) -> dict[str, int]:
    """Of a repository's others some always fail."""
    grader, tests = own_grader(scored.check) if scored.check else None, scored.verdict.tests
    if grader is None:
        return {}
    total = len(grader.required)
    passed = total - len(grader.not_passed(tests)) if tests else 0
    return {"tests_required": total, "tests_required_passed": passed}


def _stdout(row: Scored) -> str:
    """The telling part: of a benchmark's own log, which begins with the environment's talk, that is the end."""
    grader = own_grader(row.check) if row.check else None
    log = grader.log(row.verdict) if grader else ""
    return _without_canary(row, log)[-LONGEST_EXCERPT:] or _without_canary(row, row.verdict.stdout)[:LONGEST_EXCERPT]


def _without_canary(row: Scored, text: str) -> str:
    """Return the text without canaries, which are meant to fail; secrets are redacted before it is cut."""
    text = MASKER.redact(text)
    if not row.verdict.canary or row.check is None or not row.check.result_parser:
        return text
    reader: ResultParser = registry.load(row.check.result_parser)
    for name in row.verdict.canary.split(", "):
        text = reader.without(text, name)
    return text
