"""The real aider, installed from the package index, through both phases: in its cell, tests in our sandbox."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from retrial.agents.aider import install
from tests import parts
from tests.conftest import Run
from tests.support.servers import Answer, ChatServer, reply, status

KEY = "sk-test-0123456789abcdef"
TASK = "aider_python_sum_two"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    parts.aider()


pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]


def harness(run: Run, *behaviours: Answer) -> tuple[subprocess.CompletedProcess[str], ChatServer]:
    with ChatServer(behaviours) as server:
        done = run(
            *("harness.py", "-b", "demo", "-t", "python/sum-two", "-a", "aider", "-m", "gpt-test:whole"),
            *("--api-base", server.url, "--price", "1/2", "--tries", 1, "--sandbox", "bwrap", "--run", "aider"),
            OPENAI_API_KEY=KEY,
        )
    return done, server


def read(home: Path, name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((home / "predictions" / "aider" / name).read_text())
    return content


def written(content: str) -> Answer:
    return reply(f"sum_two.py\n```\n{content}```\n")


def test_it_solves_a_task_once_it_has_seen_what_the_tests_say(run: Run, home: Path) -> None:
    done, server = harness(run, written(WRONG), written(RIGHT))
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (asked.body["messages"][-1]["content"] for asked in server.requests)
    assert "sum_two.py" in first and "See the testing errors above" in second
    agent = read(home, "run.json")["agent"]
    assert agent["name"] == "aider" and agent["isolated"] is True
    assert f"aider-chat=={agent['version']}" in install.REQUIREMENTS.read_text().splitlines()
    record = read(home, f"{TASK}.json")
    (attempt,) = record["all_results"]
    assert attempt["tests_outcomes"] == [False, True] and attempt["plausible"]
    assert record["edited_files"] == ["sum_two.py"] and record["added_files"] == []
    assert (record["calls"], record["prompt_tokens"], record["cost"]) == (2, 20, pytest.approx(40e-6))
    assert run("report.py", "aider", "--sandbox", "bwrap").returncode == 0
    assert read(home, "results.json")["resolved"] == [TASK]


def test_a_provider_that_refuses_the_key_is_not_measured_and_asked_once(run: Run, home: Path) -> None:
    done, server = harness(run, status(401, f"Incorrect API key provided: {KEY}"))
    assert done.returncode == 1
    assert "did not accept the key" in done.stdout and KEY not in done.stdout + done.stderr
    assert len(server.requests) == 1
    assert not (home / "predictions" / "aider" / f"{TASK}.json").exists()
