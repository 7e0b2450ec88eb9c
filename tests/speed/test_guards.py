"""What the programs do at their start and for a task is counted: a time would only measure the machine.

Most limits have a little room. What exceeds one is imported, started or read at the wrong place, or worth raising it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retrial.executors.limiter import FairLimiter
from retrial.predict.metering.driver_service import Budget, DriverService
from retrial.predict.save import RunProgress, save_prediction
from retrial.store.runs import Run
from retrial.system.shutdown import Stop
from speed import driver
from tests.conftest import PROJECT
from tests.parts import ready
from tests.support.exercises import RIGHT, reply, write_exercise, write_replies

PROGRAMS = ("harness.py", "report.py")
COUNTED = """
import json, os, runpy, sys
seen, out = [], sys.argv[1]
def hear(event, arguments):
    if event == "subprocess.Popen":
        seen.append(os.path.basename(os.fsdecode(arguments[0])))
    elif event == "open" and "/predictions/" in str(arguments[0]) and str(arguments[0]).endswith("_task_0.json"):
        seen.append("prediction")
sys.addaudithook(hear)
sync = os.fsync
os.fsync = lambda file: (seen.append("fsync"), sync(file))[1]
sys.argv = sys.argv[2:]
sys.path.insert(0, os.getcwd())
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    with open(out, "w") as file:
        json.dump(seen, file)
"""
"""Runs a program, and writes down which processes it starts, which files of a run it opens, and each fsync."""


def imported(*command: str) -> list[str]:
    """Return the modules that an interpreter imports for this, in order, but for those that it needs itself."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    lines = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    return lines[lines.index("site") + 1 :]


def ours(modules: list[str]) -> list[str]:
    return [name for name in modules if name.partition(".")[0] == "retrial"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_imports_the_options_and_little_else(program: str) -> None:
    modules = imported(program, "--help")
    assert len(ours(modules)) <= 13, ours(modules)
    assert len(modules) <= 110, modules


@pytest.mark.parametrize(("module", "most"), [("retrial.cli.harness", 88), ("retrial.cli.report", 106)])
def test_a_program_imports_only_what_every_run_of_it_needs(module: str, most: int) -> None:
    modules = imported("-c", f"import {module}")
    assert len(ours(modules)) <= most, ours(modules)
    # Parts and formats bring their libraries when they are asked for.
    standard = {*sys.stdlib_module_names, "retrial", "org", "_distutils_hack", "sitecustomize"}
    assert {name.partition(".")[0] for name in modules} - standard == set()


def test_a_finished_task_takes_ten_fsyncs_and_as_few_opened_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, stop, calls = Run(tmp_path, "run"), Stop(), Counter[str]()
    lines = driver.lines_of_an_attempt(Run(tmp_path, "lines"))
    work = driver.Writing(driver=DriverService(run, Budget(None), FairLimiter(1, stop), stop), lines=lines)
    first, second = driver.task("first"), driver.task("second")
    so_far = RunProgress(done={}, unmeasured={})
    save_prediction(run, first, work(first), so_far)
    for name in ("fsync", "open", "replace"):
        monkeypatch.setattr(os, name, counting(getattr(os, name), name, calls))
    save_prediction(run, second, work(second), so_far)
    # A journal: two lines for each of three questions and two more, on disk before they are used; and its folder once.
    # A prediction: on disk before its task counts as done. Its chat can be made again, and is only written.
    assert calls == {"fsync": 8 + 1 + 1, "open": 8 + 1 + 2, "replace": 2}


def counting(function: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    def counted(*arguments: object, **named: object) -> object:
        calls[name] += 1
        return function(*arguments, **named)

    return counted


@pytest.mark.real
@pytest.mark.smoke
def test_a_task_starts_few_processes_and_what_is_done_is_read_once(home: Path, tmp_path: Path) -> None:
    ready("bwrap")
    # What is found out about a machine is kept.
    seen_in_a_run(tmp_path, 2)
    one, three = seen_in_a_run(tmp_path, 1), seen_in_a_run(tmp_path, 3)
    each = {what: (three[what] - one[what]) / 2 for what in ("git", "sh", "bwrap", "fsync")}
    # git: the patch is made, and applied once for tests and lint; sh: lint.
    assert each == {"git": 2, "sh": 1, "bwrap": 1, "fsync": 6}
    again = seen_in_a_run(tmp_path, 3)
    assert again["git"] == again["sh"] == 0, again
    assert again["prediction"] == 1, again


def seen_in_a_run(folder: Path, tasks: int) -> Counter[str]:
    """Count what harness.py does for so many tasks, whose model is right at once."""
    bench, out = folder / f"bench-{tasks}", folder / "seen.json"
    slugs = [f"task-{number}" for number in range(tasks)]
    for slug in slugs:
        write_exercise(bench, slug)
    replies = [
        {"text": reply(RIGHT, f"{slug.replace('-', '_')}.py"), "match": f"{slug.replace('-', '_')}.py", "repeat": True}
        for slug in slugs
    ]
    model = f"replay/{write_replies(folder / f'replies-{tasks}.jsonl', *replies)}"
    arguments = ["-b", str(bench), "-m", model, "--run", f"of-{tasks}", "--sandbox", "bwrap", "--test-jobs", "1"]
    command = [sys.executable, "-c", COUNTED, str(out), "harness.py", *arguments]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    return Counter(json.loads(out.read_text()))


MOST_MODULES = {1: (45, 82), 2: (41, 90)}
"""Phase → modules with a call, in the worker and in the whole program. These numbers may only shrink."""


@pytest.mark.real
@pytest.mark.smoke
@pytest.mark.usefixtures("home")
def test_a_task_meets_few_modules_and_calls_upwards_only_through_contracts() -> None:
    ready("bwrap")
    done = subprocess.run([sys.executable, "-m", "speed.walk"], cwd=PROJECT, capture_output=True, text=True, check=True)
    counted = re.findall(r"^phase (\d): (\d+) modules in the worker, (\d+) in the whole program$", done.stdout, re.M)
    found = {int(phase): (int(worker), int(program)) for phase, worker, program in counted}
    assert found.keys() == MOST_MODULES.keys(), done.stdout
    assert all(a <= b for phase in found for a, b in zip(found[phase], MOST_MODULES[phase], strict=True)), found
    upwards = [line for line in done.stdout.splitlines() if line.startswith("  up: ")]
    assert upwards and [line for line in upwards if line.endswith("(-)")] == []
