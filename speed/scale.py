"""Ten thousand tasks through both phases, a few of which reach a sandbox: start-up, resuming, pace and memory.

The model is a server of its own process: a few tasks get the right file, all others nothing to apply. What the
references show was found out before, as on a machine that has scored this benchmark already.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from retrial import registry
from retrial.benchmarks.exercism import Exercism
from retrial.grading import verdict_cache
from retrial.grading.reference_runs import reference
from retrial.grading.run_check import check_selection
from retrial.patches import apply
from retrial.patches.policy import Selection
from retrial.protocols import Context, Sandbox
from retrial.system.paths import PROJECT
from tests.support.exercises import RIGHT, STUB, TESTS

STEP = 1000
"""Finished tasks between two readings of a program's memory."""
FINISHED = re.compile(r"(?:harness|report) (\d+)/\d+: ")
TASK = re.compile(rb"# task-(\d+)")
REPLIES = ("I do not know how.", f"solution.py\n```python\n{STUB}```\n", "solution.py\n<<<<<<< SEARCH\n")


@dataclass(slots=True, kw_only=True)
class Went:
    """One program, from its start to its end."""

    step: int
    wall: float = 0.0
    cpu: float = 0.0
    """Of the program and all that it started."""
    peak: int = 0
    """Of the program alone, in KB."""
    first: float = 0.0
    """Seconds until the first task had ended."""
    last: float = 0.0
    resident: dict[int, int] = field(default_factory=dict)
    """Tasks finished → KB in memory."""

    @property
    def pace(self) -> float:
        return max(self.resident, default=0) / (self.last - self.first) if self.last > self.first else 0.0

    @property
    def slope(self) -> float | None:
        """KB for each task more, after the first step."""
        points = [(tasks, kilobytes) for tasks, kilobytes in self.resident.items() if tasks > self.step]
        return statistics.linear_regression(*zip(*points, strict=True)).slope if len(points) > 1 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--sandboxed", type=int, default=200, help="of them, those that reach a sandbox")
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--step", type=int, default=STEP, help="finished tasks between two readings of memory")
    parser.add_argument("--folder", type=Path, help="kept; by default one that is removed")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        asyncio.run(serve(options.serve))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        os.environ |= {"RETRIAL_HOME": f"{folder}/home", "RETRIAL_CACHE": f"{folder}/cache"}
        bench = folder / "bench"
        if not bench.exists():
            write_benchmark(bench, options.tasks)
        measure(options, bench, remember(bench, folder / "all.jsonl"))


def measure(options: argparse.Namespace, bench: Path, everything: Path) -> None:
    with model(options.sandboxed) as url:
        harness = ["harness.py", "-b", str(bench), "-m", "quick:whole", "--api-base", url, "--run", "scale"]
        harness += ["--turns", "1", "--reflections", "0", "--jobs", str(options.jobs), "--sandbox", "bwrap"]
        tell("harness.py", went(harness, options.step))
        tell("harness.py, all done before", went(harness, options.step))
    report = ["report.py", "scale", "--sandbox", "bwrap"]
    tell("report.py", went(report, options.step))
    tell("report.py, all verdicts known", went(report, options.step))
    file = ["report.py", str(everything), *report[2:], "-b", str(bench)]
    tell("report.py FILE, all verdicts known", went(file, options.step))


def tell(title: str, found: Went) -> None:
    slope = "" if found.slope is None else f", {found.slope:.2f} KB for each task more"
    print(
        f"{title}: wall {found.wall:.1f} s, CPU {found.cpu:.1f} s; first task after {found.first:.2f} s, "
        f"then {found.pace:.0f} tasks a second; {found.peak / 1024:.0f} MB at the most{slope}",
        flush=True,
    )
    if found.resident:
        print("  MB by tasks: " + ", ".join(f"{n:,}: {kb / 1024:.0f}" for n, kb in found.resident.items()), flush=True)


def went(arguments: Sequence[str], step: int = STEP) -> Went:
    found, started = Went(step=step), time.perf_counter()
    command = [sys.executable, *arguments]
    with subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        said = ""
        for said in process.stderr:
            if number := FINISHED.match(said):
                found.last = time.perf_counter() - started
                found.first = found.first or found.last
                if int(number[1]) % step == 0 and (kilobytes := resident(process.pid)):
                    found.resident[int(number[1])] = kilobytes
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, said
    found.wall, found.cpu, found.peak = time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss
    return found


def resident(pid: int) -> int:
    """Return the process's memory in KB; 0 when it has ended and was not waited for yet."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int((text.partition("VmRSS:")[2].split() or ["0"])[0])


def write_benchmark(bench: Path, tasks: int) -> None:
    """Small tasks whose files have the same names, so that what is true of one is true of all."""
    names = {"solution": ["solution.py"], "test": ["solution_test.py"], "example": [".meta/example.py"]}
    for number in range(tasks):
        folder = bench / "python" / "exercises" / "practice" / f"task-{number:05d}"
        for part in (".meta", ".docs"):
            (folder / part).mkdir(parents=True)
        (folder / "solution.py").write_text(STUB)
        (folder / "solution_test.py").write_text(TESTS.format(module="solution"))
        (folder / ".meta" / "example.py").write_text(RIGHT)
        (folder / ".meta" / "config.json").write_text(json.dumps({"files": names}))
        (folder / ".docs" / "instructions.md").write_text(f"# task-{number:05d}\n\nWrite `add(a, b)`, the sum.\n")


def remember(bench: Path, everything: Path) -> Path:
    """References of all tasks, and the verdict on the right patch of all: run for one, kept for each.

    Returns a predictions file with that patch for every task.
    """
    sandbox: Sandbox = registry.module("sandboxes", "bwrap").make(Context(options=None))
    benchmark, verdicts = Exercism(bench, "bench"), verdict_cache.Verdicts(Path(os.environ["RETRIAL_CACHE"]))
    tasks = benchmark.tasks()
    answer = benchmark.answer(tasks[0].instance_id)
    known = reference(tasks[0], answer, sandbox, verdicts)
    # By other names and contexts than the reference's own diff has: the verdict is another one.
    patch = apply.diff({"solution.py": STUB.encode()}, {"solution.py": b"# The sum.\n" + RIGHT.encode()})
    verdict = check_selection(tasks[0], Selection(patch=patch, dropped=()), known.strict(answer.check), sandbox)
    assert known.verdict.resolved, known.verdict.reason
    lines = []
    for task in tasks:
        check = replace(answer.check, folder=benchmark.visible(task.instance_id).folder)
        own = verdict_cache.key(task, answer.patch, replace(check, allow_skips=True), sandbox)
        verdicts.put_value(own, known)
        verdicts.put(verdict_cache.key(task, patch, known.strict(check), sandbox), verdict)
        lines.append({"instance_id": task.instance_id, "model_name_or_path": "everybody", "model_patch": patch})
    everything.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return everything


@contextmanager
def model(right: int) -> Iterator[str]:
    command = [sys.executable, "-m", "speed.scale", "--serve", str(right)]
    server = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


async def serve(right: int) -> None:
    """The first so many tasks get the right file."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await head_of(reader):
            asked = await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            number = int((TASK.search(asked) or [b"", b"0"])[1])
            text = f"solution.py\n```python\n{RIGHT}```\n" if number < right else REPLIES[number % len(REPLIES)]
            message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": 300, "completion_tokens": 20}
            content = json.dumps({"choices": [message], "usage": usage}).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            writer.write(head.encode() + content)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def head_of(reader: asyncio.StreamReader) -> str:
    """Empty when there is no further question."""
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    except (asyncio.IncompleteReadError, ConnectionError):
        return ""


if __name__ == "__main__":
    main()
