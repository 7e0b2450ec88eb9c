"""A provider that breaks its protocol in every way we know of: the run ends in time, within its memory and with every
sum counted, and what it writes is valid JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retrial.store.events import Requested
from retrial.store.journal import Journal
from retrial.store.spending import committed
from tests.conftest import PROJECT, Run
from tests.support.exercises import write_exercise
from tests.support.hostile_provider import CASES, ESCAPE, KEY, HostileProvider

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

LARGEST = 300_000
"""KiB of harness.py at its peak."""
MEASURED = """
import atexit, os, runpy, sys
peak, *sys.argv = sys.argv[1:]
def write():
    with open("/proc/self/status") as file, open(peak, "w") as found:
        found.write(next(line.split()[1] for line in file if line.startswith("VmHWM")))
atexit.register(write)
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program in this process and writes down its largest resident size. The parent's own would count in what
`wait4` says."""


WORST = (
    *("good", "cost_nan", "cost_infinite", "tokens_10_400", "usage_list", "endless", "endless_sse", "endless_text"),
    *("endless_error", "endless_redirect", "gzip_bomb", "gzip_bomb_in_error", "large", "long_reply", "many_calls"),
    *("deep", "many_values", "many_headers", "drip", "informing", "retry_after_1e308", "key_in_error"),
)
CHOSEN = tuple(CASES) if os.environ.get("RETRIAL_FUZZ") == "long" else WORST
"""Each takes two sandboxes. `tests/models/test_hostile_provider.py` has all of them, without a run around them."""


def instance(name: str) -> str:
    return f"aider_python_case_{name}"


def measured(peak: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MEASURED, str(peak), str(PROJECT / "harness.py"), *map(str, arguments)]
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=peak.parent, timeout=600)


def strict(path: Path) -> Any:
    """What this file holds; NaN and infinity are no JSON."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{path} has {name}")

    return json.loads(path.read_bytes(), parse_constant=refuse)


def outcome(results: dict[str, Any], name: str) -> str:
    if instance(name) in results["not_measured"]:
        return "not measured"
    return "resolved" if instance(name) in results["resolved"] else "unresolved"


def is_counted(journal: Path) -> bool:
    """Whether at least what was put by for the first question is counted as spent."""
    events = list(Journal(journal).events())
    reserved = next(event.reserved for event in events if isinstance(event, Requested))
    return committed(events) > 0.99 * (reserved or 0.0)


def test_no_response_of_a_provider_breaks_a_run(run: Run, home: Path, tmp_path: Path) -> None:
    for name in CHOSEN:
        write_exercise(tmp_path / "bench", f"case-{name.replace('_', '-')}")
    with HostileProvider() as provider:
        done = measured(
            *(tmp_path / "peak", "-b", tmp_path / "bench", "-m", "gpt-test:whole", "--api-base", provider.url),
            *("--sandbox", "bwrap", "--run", "http", "--jobs", 8, "--tries", 1, "--turns", 1),
            *("--price", "1/2", "--max-cost", 1000, "--request-timeout-seconds", 10),
        )
    assert done.returncode == 1, done.stdout + done.stderr
    run("report.py", "http", "--sandbox", "bwrap")
    folder = home / "predictions/http"
    results = strict(folder / "results.json")
    found = {name: (outcome(results, name), is_counted(folder / f"journal/{instance(name)}.jsonl")) for name in CHOSEN}
    assert found == {name: (CASES[name].outcome, CASES[name].billed) for name in CHOSEN}
    assert int((tmp_path / "peak").read_text()) < LARGEST
    for path in (*folder.glob("*.json"), folder / "journal/sums.json"):
        strict(path)
    assert [text for text in (KEY, ESCAPE) if text in done.stdout + done.stderr] == []
