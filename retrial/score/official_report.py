"""What SWE-bench's own runner would have left behind: its run report, and the files of each instance."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from retrial.benchmarks.swebench import container_script, official_grader
from retrial.benchmarks.swebench.container_script import Transcript
from retrial.benchmarks.swebench.official_grader import OfficialCheck
from retrial.errors import PatchError
from retrial.patches.git import encode
from retrial.reports.analysis.cases import ScoredRow, Standing
from retrial.score.scorer import Scored
from retrial.store.json_io import to_json
from retrial.types import Outcome, Verdict

SCHEMA = 2
RunReport = dict[str, int | list[str] | dict[str, str]]
"""Its numbers, its lists of ids, and reasons by id."""


def standing(row: Scored) -> Standing:
    verdict, seen = row.verdict, container_script.read(row.verdict.stdout)
    failure, sure = _failure(verdict, seen)
    resolved = verdict.resolved if verdict.official is None else verdict.official
    return Standing(completed=_completed(verdict, seen), resolved=resolved, failure=failure, sure=sure)


def files(row: Scored) -> dict[str, bytes]:
    """File name → content; none where no patch was tried."""
    if row.verdict.outcome is Outcome.PATCH_EMPTY:
        return {}
    patch, seen = row.counted or row.submission.patch, container_script.read(row.verdict.stdout)
    found = {"patch.diff": _bytes(patch)}
    data = row.check.grader_data if row.check else None
    if row.check is None or not isinstance(data, OfficialCheck):
        return found
    if seen.started:
        found["test_output.txt"] = seen.log.encode("utf-8", "replace")
        found["eval.sh"] = row.check.files.get(seen.started, b"")
    completed = _completed(row.verdict, seen)
    if completed and (report := official_grader.report(row.task.instance_id, data.tests, patch, seen.log)):
        found["report.json"] = to_json(report)
    return found


def run_report(
    everything: Collection[str], submitted: Collection[str], scored: Sequence[ScoredRow]
) -> RunReport | None:
    """The official report of a run; None where the benchmark has none.

    What is resolved is what the official grading says, as in each instance's report.json.
    """
    standings = {row.task.instance_id: row.standing for row in scored if row.standing is not None}
    if not standings:
        return None
    empty = {row.task.instance_id for row in scored if row.verdict.outcome is Outcome.PATCH_EMPTY}
    completed = {key for key, standing in standings.items() if standing.completed}
    resolved = {key for key, standing in standings.items() if standing.completed and standing.resolved}
    failures = {key: standing for key, standing in standings.items() if key not in resolved | empty}
    ids = {
        "completed": completed,
        "resolved": resolved,
        "unresolved": completed - resolved,
        "infra_failure": {key for key, standing in failures.items() if standing.sure},
        "ambiguous_failure": {key for key, standing in failures.items() if standing.failure and not standing.sure},
        "empty_patch": empty,
        "error": set(submitted) - completed - empty,
    }
    return {
        "total_instances": len(everything),
        "submitted_instances": len(submitted),
        **{f"{name}_instances": len(found) for name, found in ids.items()},
        "submitted_ids": sorted(submitted),
        "incomplete_ids": sorted(set(everything) - set(submitted)),
        **{f"{name}_ids": sorted(found) for name, found in ids.items()},
        "failure_reasons": {key: standing.failure for key, standing in sorted(failures.items()) if standing.failure},
        "schema_version": SCHEMA,
    }


def _bytes(patch: str) -> bytes:
    try:
        return encode(patch)
    except PatchError:
        # It was refused for this; the file is there to be read.
        return patch.encode("utf-8", "replace")


def _completed(verdict: Verdict, seen: Transcript) -> bool:
    return verdict.outcome.measured and verdict.outcome is not Outcome.TIMED_OUT and bool(seen.started)


def _failure(verdict: Verdict, seen: Transcript) -> tuple[str, bool]:
    """(What the official runner would take for the environment's fault, whether it is sure of that)."""
    if not verdict.outcome.measured:
        # Its own log of the run is where it would have found this.
        return official_grader.failure(verdict.reason)
    found = official_grader.failure(seen.log)
    return ("tests_timed_out", False) if verdict.outcome is Outcome.TIMED_OUT and not found[0] else found
