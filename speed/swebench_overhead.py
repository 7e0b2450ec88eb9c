"""Measure what scoring adds to the eval scripts: Retrial and the official runner, same images, same workers.

The official runner is swebench 5.0.2 with its dependencies, in an environment of its own (`--official-python`); without
that option only Retrial is measured. Without `--rows` the script scores a no-op eval script, in an image that the tests
build; with it, real instances whose images the engine holds. Each whole command is timed, including its start-up; the
eval scripts print the time at their start and end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from retrial.benchmarks.swebench.official_grader import END, START
from retrial.system.paths import PROJECT
from tests.support import image_task

CLOCK = 'echo "clock $(date +%s.%N)"'
CLOCKED = re.compile(r"^clock ([\d.]+)$", re.MULTILINE)
NO_OP = f"#!/bin/bash\n: '{START}'\necho 'PASSED t.py::one'\n: '{END}'\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--official-python", type=Path, help="interpreter of an environment with swebench 5.0.2")
    parser.add_argument("--rows", type=Path, help="a .jsonl file of real rows; their reference patches are scored")
    parser.add_argument("--task", action="append", default=[], help="only this instance of --rows, repeat for more")
    parser.add_argument("--instances", type=int, default=4, help="how many no-op instances")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    rows = [_clocked(row) for row in (_real(options.rows, options.task) if options.rows else _no_op(options.instances))]
    with tempfile.TemporaryDirectory(prefix="retrial-speed-") as name:
        folder = Path(name)
        _write(folder / "rows.jsonl", rows)
        _write(folder / "preds.jsonl", [_prediction(row) for row in rows])
        ours = _added(_ours, folder, rows, options)
        if options.official_python:
            theirs = _added(_official, folder, rows, options)
            print(f"ratio: {ours / theirs:.3f} ({len(rows)} instances, {options.workers} at once)")


def _no_op(count: int) -> list[dict[str, Any]]:
    changes = {"eval_script": NO_OP, "FAIL_TO_PASS": ["t.py::one"], "PASS_TO_PASS": [], "image": image_task.image()}
    return [image_task.row(instance_id=f"retrial__calc-{number}", **changes) for number in range(1, count + 1)]


def _real(path: Path, wanted: Sequence[str]) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if not wanted or row["instance_id"] in wanted]


def _clocked(row: dict[str, Any]) -> dict[str, Any]:
    """With the clock's time printed at both ends of the script; only its own run counts as not added."""
    first, _, rest = str(row["eval_script"]).partition("\n")
    script = f"{first}\n{CLOCK}\n{rest}".replace(f": '{END}'", f"{CLOCK}\n: '{END}'")
    return {**row, "eval_script": script}


def _prediction(row: dict[str, Any]) -> dict[str, Any]:
    return {"instance_id": row["instance_id"], "model_name_or_path": "speed", "model_patch": row["patch"]}


def _write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _added(command: Any, folder: Path, rows: Sequence[dict[str, Any]], options: argparse.Namespace) -> float:
    started = time.perf_counter()
    name, logs = command(folder, options)
    wall = time.perf_counter() - started
    inside = [_inside(path) for path in logs]
    assert len(inside) == len(rows), f"{name} left {len(inside)} logs of {len(rows)}"
    at_once = min(options.workers, len(rows))
    added: float = wall * at_once / len(rows) - mean(inside)
    print(f"{name}: {wall:.1f} s in all, eval scripts {mean(inside):.2f} s each, added {added:.2f} s an instance")
    return added


def _inside(log: Path) -> float:
    first, last = CLOCKED.findall(log.read_text(encoding="utf-8", errors="replace"))
    return float(last) - float(first)


def _ours(folder: Path, options: argparse.Namespace) -> tuple[str, list[Path]]:
    command: list[str | Path] = [
        sys.executable, PROJECT / "report.py", folder / "preds.jsonl", "-b", folder / "rows.jsonl",
        "--sandbox", "docker", "--fresh", "--test-jobs", str(options.workers),
    ]  # fmt: skip
    # The user's own cache: the sandbox is probed once per boot, not once per run; verdicts in it are not used.
    home = {"RETRIAL_HOME": str(folder / "home")}
    subprocess.run(command, check=True, cwd=folder, env={**os.environ, **home}, stdout=subprocess.DEVNULL)
    (results,) = folder.glob("home/predictions/*/results.json")
    _say_resolved("retrial", json.loads(results.read_text())["resolved"])
    return "retrial", list(folder.glob("home/logs/*/*/test_output.txt"))


def _official(folder: Path, options: argparse.Namespace) -> tuple[str, list[Path]]:
    command = [
        options.official_python, "-m", "swebench.harness.run_evaluation", "--dataset_name", folder / "rows.jsonl",
        "--predictions_path", folder / "preds.jsonl", "--run_id", "speed", "--max_workers", str(options.workers),
    ]  # fmt: skip
    subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _say_resolved("swebench 5.0.2", json.loads((folder / "speed.speed.json").read_text())["resolved_ids"])
    return "swebench 5.0.2", list(folder.glob("logs/run_evaluation/*/*/*/test_output.txt"))


def _say_resolved(name: str, resolved: Sequence[str]) -> None:
    print(f"{name} resolves {len(resolved)}: {', '.join(resolved)}")


if __name__ == "__main__":
    main()
