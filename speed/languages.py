"""What warm images win, and what Retrial itself costs: all references of each language, ratios in one run.

Warm is what every run gets. Cold is the same command in the same image, without what was compiled before: an empty
build cache, no prebuilt runner. Packages stay: without a network nothing would run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from retrial import registry
from retrial.benchmarks.exercism import Exercism
from retrial.checks import Check
from retrial.grading.run_check import run_check
from retrial.protocols import Context, Sandbox
from retrial.system.paths import PROJECT
from retrial.types import Task

WORKERS = 2
COMPILED = {"go": ("cache",), "rust": ("target",), "java": ("maven.jsa", "javac.jsa")}
"""What of each store is there for speed alone."""
COLD = """\
mkdir -p /tmp/cold/{language}
for part in "$RETRIAL_STORE"/{language}/*; do
    case "${{part##*/}}" in {compiled}) ;; *) ln -s "$part" /tmp/cold/{language}/ ;; esac
done
export RETRIAL_STORE=/tmp/cold
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("checkout", type=Path, help="a checkout of the polyglot benchmark")
    parser.add_argument("--sandbox", default="docker", choices=registry.names("sandboxes"))
    parser.add_argument("--language", action="append", choices=registry.names("languages"))
    parser.add_argument("--cold-tasks", type=int, default=1000, help="how many of each language to run cold too")
    options = parser.parse_args()
    sandbox: Sandbox = registry.module("sandboxes", options.sandbox).make(Context(options=None))
    benchmark = Exercism(options.checkout, "polyglot")
    for language in options.language or registry.names("languages"):
        tasks = [task for task in benchmark.tasks() if task.language == language]
        sandbox.prepare(tasks[0].environment, print)
        # Void ones (their reference fails) would be measured with whatever stopped them.
        sound = [task for task in tasks if check(benchmark, task, sandbox, cold=False)]
        few = sound[: options.cold_tasks]
        warm, cold = (clock(benchmark, few, sandbox, cold=cold) for cold in (False, True))
        print(
            f"{language}: {len(few)} references, warm {warm:.1f} s, cold {cold:.1f} s: {cold / warm:.2f} × "
            f"({warm / len(few):.2f} and {cold / len(few):.2f} s each at {WORKERS} at once)",
            flush=True,
        )
        own_share(options, language)


def clock(benchmark: Exercism, tasks: Iterable[Task], sandbox: Sandbox, *, cold: bool) -> float:
    started = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        assert all(pool.map(lambda task: check(benchmark, task, sandbox, cold=cold), tasks))
    return time.perf_counter() - started


def check(benchmark: Exercism, task: Task, sandbox: Sandbox, *, cold: bool) -> bool:
    answer = benchmark.answer(task.instance_id)
    return run_check(
        task, answer.patch, made_cold(answer.check, task.language) if cold else answer.check, sandbox
    ).resolved


def made_cold(check: Check, language: str) -> Check:
    cold = COLD.format(language=language, compiled="|".join(COMPILED[language])) if language in COMPILED else ""
    return replace(check, script=cold + check.script, prebuild=None, timeout=600.0)


def own_share(options: argparse.Namespace, language: str) -> None:
    """Of report.py as users call it: wall time beyond the test commands, for each task."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, str(PROJECT / "report.py"), "--gold", "--fresh", "-b", str(options.checkout)]
        command += ["--filter-category", language, "--sandbox", options.sandbox, "--test-jobs", str(WORKERS)]
        environment = {**os.environ, "RETRIAL_HOME": home}
        started = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        wall = time.perf_counter() - started
        (path,) = Path(home).glob("predictions/*/results.json")
        rows = json.loads(path.read_text())["instances"]
    inside = sum(row["seconds"] for row in rows) / WORKERS
    print(
        f"{language}: report.py --gold over {len(rows)} tasks {wall:.1f} s, test commands {inside:.1f} s at {WORKERS} "
        f"at once: Retrial's own share {(wall - inside) / len(rows):.3f} s a task",
        flush=True,
    )


if __name__ == "__main__":
    main()
