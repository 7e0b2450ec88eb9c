"""The real, very small model, through both phases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.parts import weights

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]


@pytest.mark.smoke
def test_a_real_model_edits_real_code_and_nothing_is_asked_twice(run: Run, home: Path) -> None:
    weights()
    flags = ("-t", "mirror-word", "-t", "even-steven", "--turns", "1", "--tries", "1", "--sandbox", "bwrap")
    done = run("harness.py", *flags)
    assert done.returncode == 0, done.stderr
    folder = home / "predictions" / "demo-python--edit--local"
    journals = {path.name: path.read_bytes() for path in (folder / "journal").glob("*.jsonl")}
    assert len(journals) == 2
    for path in folder.glob("aider_*.json"):
        record = json.loads(path.read_text())
        assert record["completion_tokens"] > 0
        assert record["cost"] == 0.0

    again = run("harness.py", *flags)
    assert again.returncode == 0
    assert "2 done before" in again.stderr
    assert {path.name: path.read_bytes() for path in (folder / "journal").glob("*.jsonl")} == journals

    report = run("report.py", "--sandbox", "bwrap")
    assert report.returncode == 0, report.stderr
    content = json.loads((folder / "results.json").read_text())
    assert content["rate"]["of"] == 2
    assert content["by_model"]["local"]["calls"] == 2
