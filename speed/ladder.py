"""The ladder under load: our own CPU for one attempt, and many tasks in flight against a model that takes its time.

The model is a server of its own process that answers every question after a while with the right file.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from retrial import registry
from retrial.cli import arguments
from retrial.executors.limiter import FairLimiter
from retrial.grading import verdict_cache
from retrial.grading.visible_check import VisibleCheck
from retrial.options import HarnessOptions
from retrial.predict.ladder import solve
from retrial.predict.metering.driver_service import Budget, DriverService
from retrial.predict.metering.model_session import TaskLedger
from retrial.predict.plan import make_ladder, make_plan
from retrial.protocols import Context, Sandbox
from retrial.system import paths
from retrial.system.paths import PROJECT
from retrial.system.shutdown import Stop
from retrial.types import Execution, Job, fingerprint
from tests.support.exercises import RIGHT, write_exercise

REPLY = {"role": "assistant", "content": f"```python\n{RIGHT}```\n"}
USAGE = {"prompt_tokens": 300, "completion_tokens": 20}


class Remembering:
    """A sandbox that runs a job once: what the second pass takes is ours alone."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._seen: dict[str, Execution] = {}
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Execution:
        name = fingerprint(job.script, {path: content.hex() for path, content in job.files.items()})
        if name not in self._seen:
            self._seen[name] = self._sandbox.run(job)
            self.jobs.append(job)
        return self._seen[name]

    def __getattr__(self, name: str) -> object:
        return getattr(self._sandbox, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2.0, help="that the model takes for one answer")
    parser.add_argument("--test-jobs", type=int, default=2)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.seconds))
        return
    with tempfile.TemporaryDirectory() as name:
        os.environ |= {"RETRIAL_HOME": f"{name}/home", "RETRIAL_CACHE": f"{name}/cache"}
        bench = Path(name, "bench")
        for number in range(options.tasks):
            write_exercise(bench, f"task-{number:03d}")
        part: Sandbox = registry.module("sandboxes", "bwrap").make(Context(options=None))
        jobs = own_cpu(bench, part)
        in_flight(bench, options, alone(part, jobs, options))


def alone(sandbox: Sandbox, jobs: list[Job], options: argparse.Namespace) -> float:
    """Seconds that as many sandbox runs take with nobody else about."""
    many = [jobs[number % len(jobs)] for number in range(options.tasks)]
    started = time.perf_counter()
    with ThreadPoolExecutor(options.test_jobs) as pool:
        list(pool.map(sandbox.run, many))
    return time.perf_counter() - started


def own_cpu(bench: Path, part: Sandbox) -> list[Job]:
    """CPU of one attempt with an instant model, its sandbox runs left out, git and the HTTP client included."""
    sandbox = Remembering(part)
    with model(0.0) as url:
        for turn in ("warm", "measured"):
            argv = ["-b", str(bench), "-n", "40", "-m", "instant:whole", "--api-base", url, "--run", turn]
            plan = make_plan(arguments.parse(HarnessOptions, argv, "")[0], argv)
            ladder, stop, verdicts = make_ladder(plan), Stop(), verdict_cache.Verdicts(paths.cache())
            driver = DriverService(plan.run, Budget(None), FairLimiter(1, stop), stop)
            before = cpu()
            for task in plan.tasks:
                check = VisibleCheck(plan.benchmark, task, sandbox, verdicts)  # type: ignore[arg-type]
                done = solve(task, ladder, check, TaskLedger(task.instance_id, driver))
                assert done.chosen.plausible, done
            spent = (cpu() - before) / len(plan.tasks)
    print(f"CPU of ours for one attempt, without its sandbox runs: {1000 * spent:.1f} ms (at most 50)")
    return sandbox.jobs


def in_flight(bench: Path, options: argparse.Namespace, tests: float) -> None:
    with model(options.seconds) as url:
        command = [sys.executable, "harness.py", "-b", str(bench), "-m", "slow:whole", "--api-base", url]
        command += ["--jobs", str(options.tasks), "--test-jobs", str(options.test_jobs), "--sandbox", "bwrap"]
        started = time.perf_counter()
        done = subprocess.run([*command, "--run", "load"], cwd=PROJECT, capture_output=True, text=True)
        wall = time.perf_counter() - started
        assert done.returncode == 0, done.stderr[-2000:]
        with urlopen(url) as answer:
            most = json.load(answer)["most"]
    records = [json.loads(path.read_text()) for path in run_folder().glob("aider_*.json")]
    ideal = max(options.seconds, tests)
    print(
        f"{len(records)} tasks in flight, {most} questions open at once; model {options.seconds:.1f} s, "
        f"sandboxes alone {tests:.1f} s ({options.test_jobs} at once), wall {wall:.1f} s: {wall / ideal:.2f} × ideal"
    )


def run_folder() -> Path:
    return Path(os.environ["RETRIAL_HOME"], "predictions", "load")


def cpu() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


@contextmanager
def model(seconds: float) -> Iterator[str]:
    """A server that answers after so long; its address, which also tells how many questions were open at once."""
    command = [sys.executable, "-m", "speed.ladder", "--serve", "--seconds", str(seconds)]
    server = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    assert server.stdout
    try:
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
    finally:
        server.terminate()
        server.wait()
        server.stdout.close()


async def serve(seconds: float) -> None:
    opened = most = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal opened, most
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        body: dict[str, object] = {"most": most}
        if head.startswith("post"):
            await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
            opened, most = opened + 1, max(most, opened + 1)
            await asyncio.sleep(seconds)
            opened -= 1
            body = {"choices": [{"index": 0, "finish_reason": "stop", "message": REPLY}], "usage": USAGE}
        content = json.dumps(body).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n")
        writer.write(f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    main()
