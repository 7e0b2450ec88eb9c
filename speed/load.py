"""2,000 tasks, 500 questions open at once, a model that takes 3 s, two sandboxes: wall time against the ideal.

Every task takes two questions: the first reply has no edit, the second the right one. So model time is
tasks × 2 / in flight × seconds, eight rounds of 3 s. Its tests run once, in a real sandbox. What needs the cores is
measured alone, one after the other, with nobody else about: the sandbox runs (by the machine's own counters: a tenth of
it is the kernel tidying up after them, on nobody's account; what is on the account of bubblewrap and all below it is
told beside it), the client (harness.py's own CPU for a task, git included, with an instant model and sandbox runs that
are remembered) and the server (its CPU for the same questions). Together, over the cores, that is the least time that
the cores can take; the ideal is the larger of this and model time. CPU that none of these accounts for is told, and
what wall time would be without it: wall time less that CPU over the cores.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from retrial import registry
from retrial.cli import arguments
from retrial.cli import harness as phase1
from retrial.options import HarnessOptions
from retrial.predict.plan import make_ladder, make_plan
from retrial.predict.run import run_plan
from retrial.protocols import Context, Sandbox
from retrial.system.paths import PROJECT
from retrial.types import Job
from speed.ladder import Remembering, cpu
from tests.support.exercises import RIGHT, write_exercise

QUESTIONS = 2
THOUGHT = "I have to think about it."
USAGE = {"prompt_tokens": 300, "completion_tokens": 20}
EVERY = 0.5
"""Seconds between two looks at the process."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--in-flight", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3.0, help="that the model takes for one answer")
    parser.add_argument("--test-jobs", type=int, default=2)
    parser.add_argument("--sample", type=int, default=40, help="tasks on which client, server and sandbox are measured")
    parser.add_argument(
        "--idle", type=float, default=3.0, help="seconds in which the CPU of the idle machine is measured"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--harness", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.seconds))
    elif options.harness:
        harness(options.harness)
    else:
        measure(options)


def measure(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ |= {"RETRIAL_HOME": f"{name}/home", "RETRIAL_CACHE": f"{name}/cache"}
        bench = Path(name, "bench")
        for number in range(options.tasks):
            write_exercise(bench, f"task-{number:05d}")
        alone = measure_alone(bench, min(options.sample, options.tasks), options.idle)
        cores = len(os.sched_getaffinity(0))
        model = -(-options.tasks * QUESTIONS // options.in_flight) * options.seconds
        busy = options.tasks * sum(alone.values()) / cores
        told = ", ".join(f"{who} {1000 * seconds:.0f} ms" for who, seconds in alone.items())
        print(f"CPU for one task, measured alone: {told}", flush=True)
        print(
            f"model time {model:.1f} s; all CPU over {cores} cores {busy:.1f} s; ideal {max(model, busy):.1f} s",
            flush=True,
        )
        before = all_cpu()
        wall, own = under_load(bench, options)
        others = max(0.0, all_cpu() - before - own - options.tasks * (alone["sandbox"] + alone["server"]))
        quiet_wall = wall - others / cores
        print(f"wall {wall:.1f} s: {wall / max(model, busy):.2f} × ideal (at most 1.15)")
        print(f"{others:.0f} s of CPU more; without them {quiet_wall:.1f} s: {quiet_wall / max(model, busy):.2f} ×")


def measure_alone(bench: Path, sample: int, idle: float) -> dict[str, float]:
    """Return the CPU seconds for one task: of its sandbox runs, of the client, of the server."""
    sandbox = Remembering(registry.module("sandboxes", "bwrap").make(Context(options=None)))
    with model(0.0) as (url, server):
        flags = ["-b", str(bench), "-n", str(sample), "-m", "instant:whole", "--api-base", url]
        flags += ["--jobs", "1", "--test-jobs", "1"]
        run_here(flags, "warm", sandbox)
        before, served = cpu(), cpu_of(server)
        run_here(flags, "measured", sandbox)
        client, serving = cpu() - before, cpu_of(server) - served
    tests = measure_sandbox(sandbox, sandbox.jobs[:sample], idle)
    return {"sandbox": tests / sample, "client": client / sample, "server": serving / sample}


def measure_sandbox(sandbox: Remembering, jobs: Sequence[Job], idle: float) -> float:
    """Return the CPU seconds of the whole machine for these jobs, less what the idle machine uses."""
    before = all_cpu()
    time.sleep(idle)
    idle_cores = (all_cpu() - before) / idle
    before, started = all_cpu(), time.perf_counter()
    accounted = sum(cpu_of_job(sandbox, job) for job in jobs)
    spent = all_cpu() - before - idle_cores * (time.perf_counter() - started)
    print(
        f"of a sandbox run's CPU, on its processes' account: {1000 * accounted / len(jobs):.0f} ms; "
        f"idle {idle_cores:.3f} cores"
    )
    return spent


def cpu_of_job(sandbox: Remembering, job: Job) -> float:
    """Of what runs in the sandbox, which its shell tells, and of what is around it."""
    before = cpu()
    said = sandbox._sandbox.run(replace(job, script=f"{job.script}\ntimes\n")).stdout
    inside = re.findall(r"(\d+)m([\d.]+)s (\d+)m([\d.]+)s", said)[-2:]
    return cpu() - before + sum(60 * (int(a) + int(c)) + float(b) + float(d) for a, b, c, d in inside)


def run_here(flags: Sequence[str], run: str, sandbox: Sandbox | Remembering) -> None:
    argv = [*flags, "--run", run]
    plan = make_plan(arguments.parse(HarnessOptions, argv, "")[0], argv)
    with quiet():
        assert run_plan(plan, make_ladder(plan), sandbox).exit_code == 0  # type: ignore[arg-type]


@contextmanager
def quiet() -> Iterator[None]:
    """Its lines are read in the real run only."""
    out, err = sys.stdout, sys.stderr
    with open(os.devnull, "w") as nowhere:
        sys.stdout = sys.stderr = nowhere
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, err


def under_load(bench: Path, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds, and the harness's CPU without its sandboxes; what was seen on the way is printed."""
    with model(options.seconds) as (url, _):
        flags = ["-b", str(bench), "-m", "slow:whole", "--api-base", url, "--jobs", str(options.in_flight)]
        flags += ["--test-jobs", str(options.test_jobs), "--sandbox", "bwrap", "--run", "load"]
        command = [sys.executable, "-m", "speed.load", "--harness", *flags]
        started = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        watch = Watch(process.pid)
        moments = list(finished(process, started))
        assert process.stdout
        said = process.stdout.read().splitlines()
        assert process.wait() == 0, said
        wall = time.perf_counter() - started
        watch.end()
    counted = json.loads(said[-1])
    print(f"threads: {counted['before'][0]} before, {watch.threads} at most, {counted['after'][0]} after")
    print(f"descriptors: {counted['before'][1]} before, {watch.descriptors} at most, {counted['after'][1]} after")
    print(f"memory: harness.py {watch.own:.0f} MB, with all below it {watch.all:.0f} MB (at most 800)")
    print(f"CPU of harness.py and its git for one task, under load: {1000 * counted['cpu'] / options.tasks:.0f} ms")
    print_pace(moments)
    return wall, counted["cpu"]


def finished(process: subprocess.Popen[str], started: float) -> Iterator[float]:
    """When each task was said to be finished."""
    assert process.stderr
    for line in process.stderr:
        if re.match(r"harness \d+/", line):
            yield time.perf_counter() - started
        elif "not measured" in line:
            print(line, end="")


def print_pace(moments: Sequence[float]) -> None:
    """Between the first and the last that were finished."""
    spans = [0] * (int((moments[-1] - moments[0]) / 10) + 1)
    for moment in moments:
        spans[int((moment - moments[0]) / 10)] += 1
    # The last span is cut off, and before the first sandboxes had nothing to do.
    whole = spans[1:-1] or spans
    least, middle = min(whole), statistics.median(whole)
    print(f"pace: {least} finished in 10 s at least, {middle:.0f} mostly; the first after {moments[0]:.1f} s")


class Watch:
    """The most that a process and those below it have, by looking."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.threads = self.descriptors = 0
        self.own = self.all = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._ended.wait(EVERY):
            # It may be gone, or one of its children.
            with suppress(OSError):
                self._look()

    def _look(self) -> None:
        status = Path(f"/proc/{self._pid}/status").read_text()
        self.threads = max(self.threads, int(status.partition("Threads:")[2].split()[0]))
        self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{self._pid}/fd")))
        # Between its beginning and its program a child has its parent's memory, not as much once more.
        not_yet = (command(self._pid), b"")
        own, others = memory(self._pid), (pid for pid in below(self._pid) if command(pid) not in not_yet)
        self.own = max(self.own, own)
        self.all = max(self.all, own + sum(map(memory, others)))


def command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def memory(pid: int) -> float:
    """MB of its own, and its share of what it has in common with others."""
    with suppress(OSError):
        said = Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()
        return int(said[0]) / 1024 if said else 0.0
    return 0.0


def below(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                yield child
                with suppress(OSError):
                    yield from below(child)


def harness(argv: Sequence[str]) -> None:
    """The program, with what it has before and after."""
    before = has()
    status = phase1.main(*arguments.harness(argv))
    gc.collect()
    print(json.dumps({"before": before, "after": has(), "cpu": cpu()}))
    sys.exit(status)


def has() -> tuple[int, int]:
    """Threads and descriptors."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def all_cpu() -> float:
    """Seconds that all cores have worked, for whomever."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    idle, waiting = int(fields[3]), int(fields[4])
    return (sum(map(int, fields)) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def cpu_of(pid: int) -> float:
    """Seconds of a process's own."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def model(seconds: float) -> Iterator[tuple[str, int]]:
    """A server of its own process that answers after so long: its address and its pid."""
    command = [sys.executable, "-m", "speed.load", "--serve", "--seconds", str(seconds)]
    server = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1", server.pid
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


async def serve(seconds: float) -> None:
    answers = [answer_with(THOUGHT), answer_with(f"```python\n{RIGHT}```\n")]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                body = await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
                await asyncio.sleep(seconds)
                writer.write(answers[THOUGHT.encode() in body])
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def answer_with(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    content = json.dumps({"choices": [choice], "usage": USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(content) + content


if __name__ == "__main__":
    main()
