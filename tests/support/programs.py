"""report.py as a user calls it, and what it has written."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import Run


def report(run: Run, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = run("report.py", *arguments, "--sandbox", "bwrap")
    assert done.returncode == code, done.stdout + done.stderr
    return done


def read(home: Path, name: str, file: str = "results.json") -> dict[str, Any]:
    content: dict[str, Any] = json.loads((home / "predictions" / name / file).read_text())
    return content
