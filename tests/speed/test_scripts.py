"""Every script in speed/ runs to its end at a tiny size and prints its measurements. Timings are not asserted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from speed.nearby import LITE
from tests.conftest import PROJECT
from tests.parts import ready, ready_with_repository
from tests.support import browsers, image_task
from tests.support.exercises import write_exercise
from tests.support.swebench_sources import a_task

pytestmark = pytest.mark.real

SCRIPTS = sorted(
    path.stem for path in (PROJECT / "speed").glob("*.py") if 'if __name__ == "__main__":' in path.read_text("utf-8")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How to run a script at a tiny size."""

    title: str = ""
    """Tells the commands of one script apart."""
    arguments: str = ""
    data: Callable[[Path], Sequence[Path]] = lambda folder: ()
    """Write the data that the script takes as its first arguments into a new folder, and return those arguments."""
    require: Callable[[], object] = lambda: None
    """Skip the test if the machine lacks what the script needs."""
    prints: tuple[str, ...]


def an_exercise(folder: Path) -> Sequence[Path]:
    return [write_exercise(folder)]


def a_repository_task(folder: Path) -> Sequence[Path]:
    """Write a SWE-bench task repository of one task, and a clone of the repository that the task is about."""
    row = image_task.row()
    a_task(folder / "swe-bench", row, datasets=(LITE,))
    checkout, clone = folder / "checkout", folder / "clones" / str(row["repo"]).replace("/", "+")
    checkout.mkdir()
    image_task.repository(checkout)
    subprocess.run(["git", "clone", "-q", "--bare", checkout, clone], check=True)
    return [folder / "swe-bench", clone.parent]


BUBBLEWRAP = partial(ready, "bwrap")
OPENED = () if browsers.unavailable() else ("opened in Chromium",)
KNOWN = ("report.py, all verdicts known: wall", "report.py FILE, all verdicts known: wall")

TINY: Mapping[str, Sequence[Command]] = {
    "cluster": [Command(arguments="--sizes 2 --attempts 20", prints=("2 nodes: ", "busy: "))],
    "driver": [
        Command(arguments="--tasks 4 --workers 2", prints=("phase 1, local: ", "phase 2, local: ", "ms CPU")),
    ],
    "ladder": [
        Command(
            arguments="--tasks 2 --seconds 0.1",
            require=BUBBLEWRAP,
            prints=("for one attempt", "2 tasks in flight, ", "× ideal"),
        )
    ],
    "languages": [
        Command(
            arguments="--sandbox bwrap --language python",
            data=an_exercise,
            require=BUBBLEWRAP,
            prints=("python: 1 references, warm ", "Retrial's own share"),
        )
    ],
    "load": [
        Command(
            arguments="--tasks 2 --in-flight 2 --seconds 0.1 --sample 1 --idle 0.1",
            require=BUBBLEWRAP,
            prints=("CPU for one task, measured alone: ", "threads: ", "memory: ", "pace: 2 finished", "× ideal"),
        )
    ],
    "nearby": [
        Command(
            data=a_repository_task,
            prints=("1 tasks; ", "nearby: 1 of 1", "same name: 0 of 1", "choosing takes"),
        )
    ],
    "overhead": [
        Command(
            title="bwrap",
            arguments="--sandbox bwrap --rounds 1",
            require=BUBBLEWRAP,
            prints=("bwrap, hidden check: ", "bwrap, visible check: ", "Retrial adds"),
        ),
        Command(
            title="docker",
            arguments="--sandbox docker --rounds 1",
            require=partial(ready, "docker"),
            prints=("docker, hidden check: ", "docker, visible check: ", "Retrial adds"),
        ),
    ],
    "page": [
        Command(
            arguments="--tasks 2 --rounds 1 --sandboxed 1",
            require=BUBBLEWRAP,
            prints=("report.html, first time: ", "report.html, again: ", *OPENED, *KNOWN),
        )
    ],
    "polyglot": [
        Command(
            arguments="--rounds 1",
            data=an_exercise,
            require=BUBBLEWRAP,
            prints=("bare pytest ", "1 exercises, 2 workers: median"),
        )
    ],
    "repo_map": [
        Command(
            title="gold",
            data=a_repository_task,
            prints=("map, all of the gold files: 1 of 1", "CPU seconds of a map: "),
        ),
        Command(
            title="time",
            arguments="--files 2 --of retrial/calc",
            data=a_repository_task,
            prints=("2 files, ", "first: ", "kept: "),
        ),
    ],
    "scale": [
        Command(
            arguments="--tasks 3 --sandboxed 1 --step 1",
            require=BUBBLEWRAP,
            prints=(
                "harness.py: wall",
                "harness.py, all done before: wall",
                "report.py: wall",
                *KNOWN,
                "MB by tasks: ",
            ),
        )
    ],
    "start": [
        Command(arguments="--rounds 1", prints=("python -c pass", "harness.py --help", "report.py --help", "s CPU")),
    ],
    "swebench_overhead": [
        Command(
            arguments="--instances 1",
            require=ready_with_repository,
            prints=("retrial resolves 1: ", "retrial: ", "s an instance"),
        )
    ],
    "trust": [
        Command(
            arguments="--language python --tasks 1 --rounds 1",
            require=BUBBLEWRAP,
            prints=("CPU added", "aider_python_", "canary"),
        )
    ],
    "walk": [
        Command(
            require=BUBBLEWRAP,
            prints=("phase 1: ", "phase 2: ", "modules in the worker", "up: retrial.agents.edit -> ", "(Chat)"),
        )
    ],
}


COMMANDS: Sequence[tuple[str, Command | None]] = [
    (script, command) for script in SCRIPTS for command in TINY.get(script, [None])
]


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("script", "command"),
    COMMANDS,
    ids=[f"{script}-{command.title}" if command and command.title else script for script, command in COMMANDS],
)
def test_a_speed_script_prints_its_measurements_at_a_tiny_size(
    script: str, command: Command | None, tmp_path: Path
) -> None:
    assert command, f"add the arguments with which speed/{script}.py runs at a tiny size to TINY"
    command.require()
    data = command.data(tmp_path / "data")
    done = subprocess.run(
        [sys.executable, "-m", f"speed.{script}", *data, *command.arguments.split()],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [words for words in command.prints if words not in done.stdout] == [], done.stdout
