"""A toolchain that is not there is said before anything is spent, and is never a model's failure."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.e2e.test_known_scores import results
from tests.parts import ready

pytestmark = pytest.mark.real

TASKS = ("-b", "demo", "-t", "go/warm-days", "-t", "python/sum-two")


@pytest.fixture
def old_go(tmp_path: Path) -> str:
    """A PATH on which Go is ten years old."""
    tool = tmp_path / "bin" / "go"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho go version go1.6.4 linux/amd64\n")
    tool.chmod(0o755)
    return f"{tool.parent}:{os.environ['PATH']}"


@pytest.mark.usefixtures("bwrap")
def test_tasks_whose_toolchain_is_too_old_are_skipped_with_the_reason(run: Run, home: Path, old_go: str) -> None:
    done = run("harness.py", "-a", "gold", "--sandbox", "bwrap", *TASKS, PATH=old_go)
    assert done.returncode == 0, done.stderr
    assert "skipped 1: go version go1.6.4 linux/amd64 is older than 1.21" in done.stderr
    assert run("report.py", "--sandbox", "bwrap", PATH=old_go).returncode == 0
    content = results(home, "demo--gold")
    assert list(content["skipped"]) == ["aider_go_warm_days"]
    assert (content["rate"]["of"], content["totals"]["selected"]) == (1, 2)


def test_a_container_without_the_tool_says_which_and_what_to_build(run: Run, home: Path) -> None:
    ready("docker")
    done = run("report.py", "--gold", "--sandbox", "docker", "--image", "python", *TASKS)
    assert done.returncode == 1, done.stderr
    content = results(home, "gold--demo")
    (why,) = content["not_measured"].values()
    assert "no working go in the image 'python'" in why
    assert "build the target 'go'" in why
    assert content["install_fail"] == ["aider_go_warm_days"]
    assert (content["rate"]["resolved"], content["rate"]["of"]) == (1, 1)


def test_phase_one_asks_nobody_about_a_task_that_cannot_be_checked(run: Run, home: Path) -> None:
    ready("docker")
    replies = home.parent / "replies.jsonl"
    replies.write_text("")
    done = run("harness.py", "-m", f"replay/{replies}", "--sandbox", "docker", "--image", "python", *TASKS[:4])
    assert done.returncode == 1
    assert "no working go in the image 'python'" in done.stdout
    (journal,) = home.glob("predictions/*/journal/*.jsonl")
    assert [json.loads(line)["event"] for line in journal.read_text().splitlines()] == ["not_measured"]


@pytest.mark.usefixtures("bwrap")
def test_what_ran_says_its_versions(run: Run, home: Path) -> None:
    assert run("report.py", "--gold", "--sandbox", "bwrap", "-b", "demo", "-t", "python/sum-two").returncode == 0
    (environment,) = results(home, "gold--demo")["provenance"]["environments"].values()
    assert environment["digest"]
    assert any(version.startswith("python3: Python 3.") for version in environment["versions"])
