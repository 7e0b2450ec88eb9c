"""The harness proves itself: gold is 100 %, null is 0 %, on every sandbox the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retrial import registry
from retrial.protocols import Sandbox
from tests.conftest import Run

pytestmark = pytest.mark.real


def results(home: Path, run_name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((home / "predictions" / run_name / "results.json").read_text())
    return content


def verdicts(content: dict[str, Any]) -> dict[str, tuple[str, dict[str, str]]]:
    return {row["instance_id"]: (row["outcome"], row["tests"]) for row in content["instances"]}


def test_gold_is_resolved_and_null_is_not(run: Run, home: Path, sandbox: Sandbox) -> None:
    gold = run("harness.py", "-a", "gold", "--sandbox", sandbox.name)
    assert gold.returncode == 0, gold.stderr
    assert run("report.py", "--sandbox", sandbox.name).returncode == 0
    content = results(home, "demo-python--gold")
    size = len(content["instances"])
    assert size >= 10
    assert (content["rate"]["percent"], content["rate"]["resolved"], content["rate"]["of"]) == (100.0, size, size)
    assert {row["proof"] for row in content["instances"]} == {"canary"}

    null = run("harness.py", "-a", "null", "--sandbox", sandbox.name)
    assert null.returncode == 0, null.stderr
    assert run("report.py", "--sandbox", sandbox.name).returncode == 0
    content = results(home, "demo-python--null")
    assert content["rate"]["percent"] == 0.0
    assert content["no_generation"] == sorted(row["instance_id"] for row in content["instances"])
    assert len(content["no_generation"]) == size


def test_every_sandbox_gives_the_same_verdicts(run: Run, home: Path, both: None) -> None:
    seen = []
    for name in ("bwrap", "docker"):
        found = []
        for kind in ("--gold", "--null"):
            assert run("report.py", kind, "-b", "demo", "--sandbox", name).returncode == 0
            found.append(verdicts(results(home, f"{kind[2:]}--demo")))
        seen.append(found)
    assert seen[0] == seen[1]
    assert {outcome for outcome, _ in seen[0][0].values()} == {"resolved"}
    assert "resolved" not in {outcome for outcome, _ in seen[0][1].values()}


@pytest.fixture
def both(request: pytest.FixtureRequest) -> None:
    from tests.parts import ready

    languages = [registry.module("languages", name).make() for name in registry.names("languages")]
    for name in ("bwrap", "docker"):
        for language in languages:
            ready(name, language.environment)
