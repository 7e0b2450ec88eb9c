"""Results to make exports of: counted by the real summary, with texts that nobody should trust."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from retrial.grading.tamper_report import Tampering
from retrial.reports.records import Results
from retrial.reports.results import Report, results
from retrial.score.save import scored_row
from retrial.score.scorer import Scored
from retrial.store.manifest import AgentFacts, Manifest
from retrial.store.runs import Run
from retrial.types import Outcome, Status, Verdict
from tests.support.rows import attempt, record, row, summary

HOSTILE = (
    "\x1b[31mred\x1b[0m \x00 \ud800 ]]> <script>alert(1)</script> | a | b |\n\n# title\n`code` ``` "
    "[link](https://example.org) https://example.org www.example.org @somebody #1 ![x](y) \\| \\` $`x`$ "
    "\u202e </details>"
)
PROVENANCE = {
    "benchmark": {"source": "swe-bench-verified", "digest": "d1"},
    "sandbox": {"sandbox": "docker", "version": "1"},
    "retrial": "0.1.0",
}
MANIFEST = Manifest(
    agent=AgentFacts(isolated=True),
    identity={"visible_tests": "nearby"},
    started="2026-11-16T23:50:35+00:00",
    command="python harness.py",
)


def verdict(outcome: Outcome, reason: str = "why", **fields: Any) -> Verdict:
    tests = {"t::good": Status.PASSED, "t::bad": Status.PASSED if outcome is Outcome.RESOLVED else Status.FAILED}
    return Verdict(outcome=outcome, reason=reason, **{"tests": tests, "seconds": 1.25, "exit_code": 0, **fields})


def one_of_each(reason: str = "why") -> tuple[Scored, ...]:
    """In the order of their ids."""
    return (
        row("empty", Outcome.PATCH_EMPTY, ""),
        row("good", verdict(Outcome.RESOLVED, "", proof="canary")),
        row("lost", verdict(Outcome.NOT_MEASURED, reason, tests={}, exit_code=None)),
        row("tricky", verdict(Outcome.TAMPERED, reason), tampering=Tampering(rule="canary")),
        row("void", verdict(Outcome.RESOLVED, ""), void=f"its reference fails here: {reason}"),
        row("wrong", verdict(Outcome.TESTS_FAILED, reason, stdout=reason, stderr=reason, exit_code=-9)),
    )


def content(scored: Sequence[Scored], **fields: Any) -> Results:
    known: dict[str, Any] = {
        "run": "trial",
        "benchmark": "bench",
        "benchmark_size": 10,
        "visible_is_hidden": False,
        "provenance": PROVENANCE,
        "manifest": MANIFEST,
        **fields,
    }
    return results(Report(scored=tuple(map(scored_row, scored)), **known))


def records(*ids: str, attempts: Sequence[dict[str, Any]] = (), **fields: Any) -> dict[str, Any]:
    """What phase 1 left of these."""
    found = attempts or (attempt(tests_outcomes=[True]),)
    return {name: summary(record(name, *found, **fields)) for name in ids}


def a_run(home: Path, scored: Sequence[Scored] = (), *, chats: bool = True, **config: Any) -> Run:
    """With predictions, chats and logs of these."""
    run = Run(home, "trial")
    run.write_config(
        {
            "program": "harness.py",
            "run": run.name,
            "started": "2026-11-16T23:50:35+00:00",
            "command": "python harness.py --run trial",
            "identity": {"benchmark": "bench", "benchmark_digest": "d1", "agent": "edit", "models": ["m:whole"]},
            "agent": {"name": "edit", "isolated": True},
            **config,
        }
    )
    submissions = [each.submission for each in scored]
    run.write_bundle(
        [
            {"instance_id": each.instance_id, "model_name_or_path": each.model_name_or_path, "model_patch": each.patch}
            for each in submissions
        ]
    )
    for each in submissions:
        run.write_log(each.instance_id, each.model_name_or_path, f"log of {each.instance_id}\n")
        if chats:
            run.write_chat(each.instance_id, f"# chat of {each.instance_id}\n")
    return run
