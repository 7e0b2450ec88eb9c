"""Rows of results, written out by hand: scored submissions, and the records that phase 1 would have left."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from retrial.benchmarks.exercism.exercise import FolderTree
from retrial.benchmarks.swebench import container_script, official_grader
from retrial.benchmarks.swebench.official_grader import GRADER, OfficialCheck, OfficialTests
from retrial.checks import Check
from retrial.grading.judge import judge
from retrial.patches.apply import diff
from retrial.score.predictions_file import Submission
from retrial.score.scorer import Scored
from retrial.store import records
from retrial.store.records import PredictionSummary
from retrial.types import Environment, Execution, Outcome, Task, Verdict

REQUIRED = OfficialTests(parser="parse_log_pytest", fail_to_pass=("t.py::new",), pass_to_pass=("t.py::old",))
CHECK = Check(
    script="run",
    files={"lean.sh": b"#!/bin/bash\npytest t.py\n"},
    result_parser="",
    grader=GRADER,
    grader_data=OfficialCheck(tests=REQUIRED),
    timeout=1800,
)
TREE = "/testbed"
PASSED = ("PASSED t.py::new", "PASSED t.py::old")
FAILED = ("FAILED t.py::new - no", "PASSED t.py::old")


def task(instance_id: str, tree: str = "") -> Task:
    return Task(
        instance_id=instance_id,
        benchmark="bench",
        language="python",
        problem_statement="Do it.",
        tree=FolderTree(root=Path(), paths=()),
        environment=Environment(name="python", image="python", language="python", tree=tree),
        editable=("a.py",),
    )


@functools.cache
def edit(path: str = "a.py", content: str = "1\n") -> str:
    """A patch that changes that one file."""
    return diff({path: b"0\n"}, {path: content.encode()})


def row(
    instance_id: str, verdict: Verdict | Outcome, patch: str | None = None, tree: str = "", **fields: Any
) -> Scored:
    """One whose reference changes `a.py`."""
    shown = Verdict(outcome=verdict, reason="why") if isinstance(verdict, Outcome) else verdict
    text = edit() if patch is None else patch
    submission = Submission(instance_id=instance_id, model_name_or_path="me", patch=text)
    return Scored(
        submission=submission, task=task(instance_id, tree), verdict=shown, **{"gold_files": ("a.py", "b.py"), **fields}
    )


def output(*lines: str, applied: str = "git apply") -> str:
    """What a job prints whose tree is in an image, with a marked log of its tests."""
    head = [
        f"{container_script.APPLIED}{applied}",
        f"{container_script.STARTED}{container_script.SCRIPT_WITHOUT_INSTALL}",
    ]
    return "\n".join([*head, f"+ : '{official_grader.START}'", *lines, f"+ : '{official_grader.END}'", ""])


def graded(
    instance_id: str, stdout: str, *, exit_code: int | None = 1, timed_out: bool = False, patch: str | None = None
) -> Scored:
    """One of a benchmark with official grading, judged as in scoring."""
    execution = Execution(exit_code=exit_code, stdout=stdout, stderr="", seconds=2.0, timed_out=timed_out)
    return row(instance_id, judge(CHECK, execution), patch, tree=TREE, check=CHECK)


def record(instance_id: str = "one", *attempts: dict[str, Any], chosen: int = 1, **fields: Any) -> dict[str, Any]:
    """A prediction as phase 1 leaves it; plausible unless `fields` say otherwise."""
    known = {
        "model_name_or_path": "edit--m",
        "model": "m",
        "edit_format": "whole",
        "model_patch": edit(),
        "added_files": [],
        "edited_files": ["a.py"],
        "edit_outcome": True,
        "lint_outcome": True,
        "test_outcome": True,
        **fields,
    }
    good = bool(known["model_patch"] and known["edit_outcome"] and known["lint_outcome"])
    return {
        "instance_id": instance_id,
        **known,
        "plausible": good and known["test_outcome"] is True,
        "unverified": good and known["test_outcome"] is None,
        "try": chosen,
        "tries": len(attempts) or 1,
        "all_results": list(attempts) or [attempt()],
    }


def summary(whole: dict[str, Any]) -> PredictionSummary:
    """What is kept of such a record in memory."""
    return records.summary(records.read_record(whole))


def attempt(number: int = 1, cost: float | None = 0.5, **fields: Any) -> dict[str, Any]:
    counted = dict.fromkeys(("num_malformed_responses", "lazy_comments", "syntax_errors", "indentation_errors"), 0)
    return {
        "try": number,
        "model": "m",
        "edit_format": "whole",
        "model_patch": edit(),
        "cost": cost,
        "plausible": False,
        "unverified": False,
        "error": "",
        "calls": 1,
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "model_seconds": 1.0,
        "tests_outcomes": [False],
        "test_timeouts": 0,
        "num_exhausted_context_windows": 0,
        **counted,
        **fields,
    }
