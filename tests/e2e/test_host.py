"""Patches that attack the machine, many at once, between honest ones: each gets its verdict, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from retrial.patches.apply import diff
from retrial.protocols import Sandbox
from retrial.system import locks, paths
from tests.conftest import PROJECT
from tests.support import cgroups
from tests.support.exercises import RIGHT, STUB, write_exercise
from tests.support.hostile import ATTACKS, HARMLESS

pytestmark = pytest.mark.real

AT_ONCE = 8
SECONDS = 30
LOOK = 0.2
"""Seconds between two looks at who is at work."""
NOISE = 2 << 30
"""What other programs may take of memory and disk meanwhile; all attacks together take three times as much."""
ENGINES = re.compile("/(docker|containerd|containers)/")
"""Below such folders an engine mounts and unmounts all the time, for others too."""
WRITTEN = 50 << 20
"""More than all logs and results of a run like this."""
HONEST = ("at_first", "honest", "later", "zealous")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What of a machine can be used up or left behind."""

    mounts: frozenset[str]
    memory: int
    disk: int


def host() -> Host:
    lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return Host(
        mounts=frozenset(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        memory=int(lines["MemAvailable"].split()[0]) << 10,
        disk=shutil.disk_usage("/").free,
    )


def predictions(folder: Path, word: str) -> Path:
    """One for each exercise: the attacks, and honest ones between them."""
    attacks = {name: attack.solution(word) for name, attack in (*ATTACKS.items(), ("daemon", HARMLESS))}
    lines = []
    for name, content in sorted((dict.fromkeys(HONEST, RIGHT) | attacks).items()):
        module = f"{name}_{word}"
        write_exercise(folder / "set", module.replace("_", "-"))
        patch = diff({f"{module}.py": STUB.encode()}, {f"{module}.py": content.encode()})
        identity = {"instance_id": f"aider_python_{module}", "model_name_or_path": "somebody"}
        lines.append(json.dumps({**identity, "model_patch": patch}))
    path = folder / "somebody.jsonl"
    path.write_text("\n".join(lines))
    return path


def scored(folder: Path, home: Path, word: str, sandbox: str) -> tuple[int, set[str], dict[str, Any]]:
    """The pid of the program, the names that what it made carries, and what became of each exercise."""
    path, temporary = predictions(folder, word), folder / "tmp"
    temporary.mkdir()
    command: list[str | Path] = [sys.executable, PROJECT / "report.py", path, "-b", folder / "set"]
    options = ["--sandbox", sandbox, "--test-jobs", str(AT_ONCE), "--test-timeout-seconds", str(SECONDS)]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    names: set[str] = set()
    with (folder / "stderr.txt").open("w+") as said:
        run = subprocess.Popen([*command, *options], stderr=said, cwd=folder, env=environment)
        while run.poll() is None:
            names |= {path.name for path in (paths.cache() / locks.ALIVE).glob("*")}
            with suppress(subprocess.TimeoutExpired):
                run.wait(LOOK)
    assert run.returncode == 0, (folder / "stderr.txt").read_text()
    assert names
    (results,) = home.glob("predictions/somebody-*/results.json")
    rows = json.loads(results.read_text(encoding="utf-8"))["instances"]
    return (
        run.pid,
        names,
        {row["instance_id"].removeprefix("aider_python_").removesuffix(f"_{word}"): row for row in rows},
    )


def processes(word: str) -> list[str]:
    """Those that can be told by their command line or the folder that they are in."""
    found = []
    for process in (path for path in Path("/proc").iterdir() if path.name.isdigit()):
        with suppress(OSError):
            about = (process / "cmdline").read_text(errors="replace") + os.readlink(process / "cwd")
            found += [about] if word in about else []
    return found


def files(word: str) -> list[Path]:
    folders = [Path(name) for name in ("/", "/tmp", "/var/tmp", "/dev", "/dev/shm", "/run", str(Path.home()))]
    return [path for folder in folders for path in folder.glob(f"*{word}*")]


def containers(process: int) -> list[str]:
    from docker import from_env

    from retrial.sandboxes.docker import PID

    with closing(from_env()) as engine:
        return [str(found.id) for found in engine.containers.list(all=True, filters={"label": f"{PID}={process}"})]


def test_eight_attacks_at_once_leave_the_machine_and_the_other_tasks_alone(
    home: Path, tmp_path: Path, sandbox: Sandbox
) -> None:
    word, before = f"w{secrets.token_hex(6)}", host()
    process, names, rows = scored(tmp_path, home, word, sandbox.name)
    after = host()

    assert {name: rows[name]["outcome"] for name in (*HONEST, "daemon")} == dict.fromkeys(
        (*HONEST, "daemon"), "resolved"
    )
    for name, attack in ATTACKS.items():
        row = rows[name]
        assert row["outcome"] in attack.outcomes, (name, row["outcome"], row["reason"])
        assert re.search(attack.reason, row["reason"]), (name, row["reason"])

    assert processes(word) == []
    assert [folder for folder in cgroups.of_jobs() if folder.name.partition("-")[0] in names] == []
    assert files(word) == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < WRITTEN
    assert before.memory - after.memory < NOISE
    assert before.disk - after.disk < NOISE
    assert [path for path in after.mounts - before.mounts if not ENGINES.search(path)] == []
    assert sandbox.name != "docker" or containers(process) == []
