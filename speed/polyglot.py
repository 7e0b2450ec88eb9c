"""Python exercises with an instant model, against the same bare pytest runs, at two workers, in one run.

The model is `replay`: it gives each exercise's reference solution. What is left is the harness.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from retrial.benchmarks.exercism import Exercism
from retrial.system.paths import PROJECT
from retrial.types import Task

WORKERS = 2
# As on an ordinary machine: modules are compiled once.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("checkout", type=Path, help="a checkout of the polyglot benchmark")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sandbox", default="bwrap")
    options = parser.parse_args()
    tasks = [task for task in Exercism(options.checkout, "polyglot", 1).tasks() if task.language == "python"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        replies = write_replies(options.checkout, tasks, folder / "replies.jsonl")
        ratios = []
        for round_ in range(options.rounds):
            # Fresh folders, as ours are: what pytest left behind would quicken it the next time.
            solved = [solve_by_hand(options.checkout, task, folder / f"bare-{round_}") for task in tasks]
            bare = clock(lambda: bare_pytest(solved))  # noqa: B023
            ours = clock(lambda: harness(options, replies, folder / f"home-{round_}"))  # noqa: B023
            ratios.append(ours / bare)
            print(f"bare pytest {bare:.2f} s, harness.py {ours:.2f} s: {ours / bare:.2f} ×")
    print(f"{len(tasks)} exercises, {WORKERS} workers: median {median(ratios):.2f} ×")


def clock(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def exercise_folder(checkout: Path, task: Task) -> Path:
    language, _, slug = task.aliases[0].partition("/")
    return checkout / language / "exercises" / "practice" / slug


def write_replies(checkout: Path, tasks: list[Task], path: Path) -> Path:
    lines = []
    for task in tasks:
        example = (exercise_folder(checkout, task) / ".meta" / "example.py").read_text(encoding="utf-8")
        text = f"{task.editable[0]}\n````\n{example}\n````\n"
        # The stub's path is in the question, and in no other exercise's.
        lines.append({"text": text, "match": f"modify the supplied files: {task.editable[0]}\n", "repeat": True})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def solve_by_hand(checkout: Path, task: Task, parent: Path) -> Path:
    source = exercise_folder(checkout, task)
    target = parent / source.name
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".meta", ".docs", ".approaches"))
    shutil.copy(source / ".meta" / "example.py", target / task.editable[0])
    return target


def bare_pytest(folders: list[Path]) -> None:
    def one(folder: Path) -> None:
        command = [sys.executable, "-m", "pytest", "-xvs"]
        # Plugins of our own environment would slow it down, and flatter us.
        environment = {**ENVIRONMENT, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, cwd=folder, capture_output=True, env=environment)
        assert done.returncode == 0, done.stdout.decode()

    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(one, folders))


def harness(options: argparse.Namespace, replies: Path, home: Path) -> None:
    command = [sys.executable, str(PROJECT / "harness.py"), "-b", str(options.checkout), "--filter-category", "python"]
    command += ["-m", f"replay/{replies}", "--test-jobs", str(WORKERS), "--run", "speed"]
    command += ["--sandbox", options.sandbox]
    done = subprocess.run(command, env={**ENVIRONMENT, "RETRIAL_HOME": str(home)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    records = [json.loads(path.read_text()) for path in (home / "predictions" / "speed").glob("aider_*.json")]
    assert records
    assert all(record["plausible"] for record in records), done.stderr


if __name__ == "__main__":
    main()
