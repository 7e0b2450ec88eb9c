"""One job in a sandbox as the host follows it: its phases, its time, and the bytes that come and go.

A job may run for so much wall time, or for so much CPU time with the wall time as a backstop. Under load a job takes
more wall time for the same work. A limit in CPU time does not count the time in which others had the processor; but it
would never end a job that waits for something that does not come. So such a job is ended too: one that hardly uses the
processor, and does not want it either, for as long as the limit is.
"""

from __future__ import annotations

import os
import secrets
import selectors
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from io import FileIO
from typing import Protocol

from retrial.errors import SandboxError
from retrial.sandboxes.supervisor import CHUNK, HeadAndTail, pack, read_reports
from retrial.system import host
from retrial.types import Execution, Job, Limits

START_SECONDS = 60.0
"""For the sandbox to come up and unpack, on a loaded machine."""
REPORT_SECONDS = 30.0
IDLE = 0.05
"""Of one core: a job that waits in a loop uses less, and a busy machine leaves a job more."""
PAUSE = 1.0
"""Seconds between two looks at least: engines take as long for an answer."""


class Phase(IntEnum):
    STARTING = 0
    RUNNING = 1
    REPORTING = 2
    DONE = 3


class SupervisorSession:
    """One conversation with a supervisor, without any input or output of its own."""

    def __init__(self, job: Job) -> None:
        self._nonce = secrets.token_hex(16).encode()
        self._limits = job.limits
        self._stdout = HeadAndTail(job.limits.output_bytes)
        self._stderr = HeadAndTail(job.limits.output_bytes)
        self._pending = bytearray()
        self._reports = bytearray()
        self._status: int | None = None
        self._entered = {Phase.STARTING: time.monotonic()}
        self._allowance = TimeAllowance(job.limits, time.monotonic())
        self._idle = 0.0
        """Seconds that cores had been idle when the job began."""
        self._heard = 0.0
        """When it printed something for the last time."""
        self.phase = Phase.STARTING
        self.overflow = False
        self.broken_off = False
        """The streams ended before the supervisor was done."""
        self.request = self._nonce + b"\n" + pack(job)

    def stderr(self, data: bytes) -> None:
        self._heard = time.monotonic()
        self._stderr.add(data)

    def stdout(self, data: bytes) -> None:
        """Take bytes as they come: a frame may be spread over any number of them."""
        if self.phase >= Phase.REPORTING:
            self._report(data)
            return
        self._heard = time.monotonic()
        self._pending += data
        if self.phase is Phase.STARTING:
            self._await_start()
        if self.phase is Phase.RUNNING:
            self._await_end()

    def _await_start(self) -> None:
        before, frame, after = self._pending.partition(self._nonce + b" start\n")
        if frame:
            self._pending = after
            self._enter(Phase.RUNNING)
        elif len(before) > CHUNK:
            del self._pending[:-CHUNK]

    def _await_end(self) -> None:
        frame = b"\n" + self._nonce + b" end "
        position = self._pending.find(frame)
        if position < 0:
            self._release(len(self._pending) - len(frame) + 1)
            return
        line, newline, rest = self._pending[position + len(frame) :].partition(b"\n")
        if not newline:
            self._release(position)
            return
        self._release(position)
        self._pending.clear()
        self._status = int(line) if line.isdigit() and len(line) < 4 else None
        self._enter(Phase.REPORTING)
        self._report(bytes(rest))

    def _release(self, count: int) -> None:
        """These bytes are the job's output for sure."""
        if count > 0:
            self._stdout.add(bytes(self._pending[:count]))
            del self._pending[:count]

    def _report(self, data: bytes) -> None:
        self._reports += data
        if len(self._reports) > self._limits.report_bytes:
            self.overflow = True
            self._reports.clear()
        elif self._reports.endswith(self._nonce + b" done\n"):
            self._enter(Phase.DONE)

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self._entered[phase] = time.monotonic()
        if phase is Phase.RUNNING:
            self._allowance = TimeAllowance(self._limits, self._entered[phase])
            self._idle = host.idle_seconds()

    def extend(self, meter: Meter) -> bool:
        """Whether a running job has time left when its deadline has passed."""
        return self.phase is Phase.RUNNING and self._allowance.extend(time.monotonic(), meter)

    @property
    def deadline(self) -> float:
        """When to stop waiting, on the clock of `time.monotonic`."""
        if self.phase is Phase.STARTING:
            return self._entered[Phase.STARTING] + START_SECONDS
        if self.phase is Phase.RUNNING:
            return self._allowance.deadline
        return self._entered[Phase.REPORTING] + REPORT_SECONDS

    def execution(
        self, *, timed_out: bool, oom: bool, cpu_seconds: float | None = None, here: bool = True
    ) -> Execution:
        """What was seen, once everything of the job is dead. `cpu_seconds` is what the host measured, if it could;
        `here`: the job ran on this machine.

        Raises: SandboxError when the job never started.
        """
        if self.phase is Phase.STARTING:
            raise SandboxError(f"The sandbox did not start the job: {self._complaint()}")
        if self.phase is Phase.RUNNING:
            self._release(len(self._pending))
        said, _, archive = bytes(self._reports).partition(self._nonce + b" reports\n")
        reports = read_reports(archive) if self.phase is Phase.DONE else None
        ended = self._entered.get(Phase.REPORTING, time.monotonic())
        # Who looks in intervals misses the last moments; from inside it is known only when the job has ended.
        cpu = (cpu_seconds, _cpu_seconds(said, self._nonce), self._allowance.cpu_seconds)
        return Execution(
            exit_code=self._status,
            stdout=self._stdout.text(),
            stderr=self._stderr.text(),
            seconds=ended - self._entered[Phase.RUNNING],
            cpu_seconds=max((each for each in cpu if each is not None), default=None),
            idle_cores=self._idle_cores() if here else None,
            heard=max(0.0, min(self._heard, ended) - self._entered[Phase.RUNNING]),
            timed_out=timed_out,
            starved=timed_out and self._allowance.starved,
            oom=oom,
            truncated=self._stdout.cut or self._stderr.cut or self.overflow,
            reports=reports or {},
            changed=_changed(said),
        )

    def _idle_cores(self) -> float:
        """On average since the job began."""
        elapsed = time.monotonic() - self._entered[Phase.RUNNING]
        return (host.idle_seconds() - self._idle) / max(elapsed, 0.01)

    def _complaint(self) -> str:
        lines = (self._stderr.text() + self._pending.decode(errors="replace")).strip().splitlines()
        return " / ".join(lines[:3]) if lines else "it gave no reason."


def _changed(said: bytes) -> tuple[str, ...]:
    """`sha256sum` says `<path>: FAILED`, or `<path>: FAILED open or read`."""
    lines = said.decode(errors="replace").splitlines()
    return tuple(line.rpartition(": FAILED")[0] for line in lines if ": FAILED" in line)


def _cpu_seconds(said: bytes, nonce: bytes) -> float | None:
    """Read the first line of `cpu.stat` (version 2, in microseconds) or `cpuacct.usage` (version 1, in nanoseconds)."""
    line = said.partition(nonce + b" cpu ")[2].partition(b"\n")[0]
    name, _, number = line.rpartition(b" ")
    if not number.isdigit():
        return None
    return int(number) / (1e6 if name == b"usage_usec" else 1e9)


class Meter(Protocol):
    """What can be measured of a running job."""

    def cpu_seconds(self) -> float | None:
        """Return the CPU time of all processes so far; None where it cannot be measured."""
        return None

    def wants_cpu(self) -> bool:
        """Whether a process runs, or would if it got a processor; False where that cannot be told."""
        return False


class TimeAllowance:
    """The time that one job has. It looks at the meter only when the job might have used it up."""

    def __init__(self, limits: Limits, started: float) -> None:
        self._limits = limits
        self._started, self._end = started, started + limits.seconds
        self._window = (started, 0.0)
        """When the last look for an idle job was, and what the job had used by then."""
        self.deadline = self._end if limits.cpu_seconds is None else self._next(started, limits.cpu_seconds, 0.0)
        self.cpu_seconds: float | None = None
        """As of the last look."""
        self.starved = False
        """The wall time is over; of its CPU time the job has some left, and wanted it."""

    def extend(self, now: float, meter: Meter) -> bool:
        """Set the next deadline; False when the job's time is over."""
        measured, most = meter.cpu_seconds(), self._limits.cpu_seconds
        # An engine may fail to answer once.
        used = self.cpu_seconds = self.cpu_seconds if measured is None else measured
        if most is None:
            return False
        if used is None:
            # Wall time is all there is to go by.
            self.deadline = min(self._end, self._started + most)
            return now < self.deadline
        if used >= most:
            return False
        if now >= self._end:
            self.starved = meter.wants_cpu()
            return False
        if measured is not None and self._idle(now, most, used) and not meter.wants_cpu():
            return False
        self.deadline = self._next(now, most, used)
        return True

    def _next(self, now: float, most: float, used: float) -> float:
        """Before then the job can neither have used up its CPU time nor have been idle for long enough."""
        soonest = now + max((most - used) / self._limits.cpus, PAUSE)
        return min(self._end, soonest, max(self._window[0] + most, now + PAUSE))

    def _idle(self, now: float, most: float, used: float) -> bool:
        began, before = self._window
        if now - began < most:
            return False
        self._window = (now, used)
        return used - before < IDLE * (now - began)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Where the streams of a supervisor are on the host: non-blocking descriptors."""

    stdin: int
    close_stdin: Callable[[], None]
    outputs: Mapping[int, Callable[[bytes], None]]


def converse(session: SupervisorSession, channel: Channel, meter: Meter) -> bool:
    """Send the request and listen until all streams end or the deadline passes; True when the job ran out of time.

    Without threads: neither side can block the other.
    """
    unsent = memoryview(session.request)
    # With a descriptor of its own to send to: the channel's may be one of the outputs too (a socket).
    with selectors.DefaultSelector() as selector, FileIO(os.dup(channel.stdin), "w") as stdin:
        selector.register(stdin, selectors.EVENT_WRITE)
        for descriptor, take in channel.outputs.items():
            selector.register(descriptor, selectors.EVENT_READ, take)
        listening = len(channel.outputs)
        while listening and not session.overflow:
            left = session.deadline - time.monotonic()
            if left <= 0:
                if session.extend(meter):
                    continue
                return session.phase is Phase.RUNNING
            for key, _ in selector.select(left):
                if key.fileobj is not stdin:
                    if not receive(key.fd, key.data):
                        selector.unregister(key.fd)
                        listening -= 1
                elif not (unsent := _send(key.fd, unsent)):
                    selector.unregister(stdin)
                    stdin.close()
                    channel.close_stdin()
    session.broken_off = not listening and session.phase is not Phase.DONE
    return False


def _send(descriptor: int, data: memoryview) -> memoryview:
    """Return what is left to be sent."""
    try:
        return data[os.write(descriptor, data[:CHUNK]) :]
    except BlockingIOError:
        return data
    except (BrokenPipeError, ConnectionResetError):
        # The other side is gone; what it said last is still to be read.
        return data[:0]


def receive(descriptor: int, take: Callable[[bytes], None]) -> bool:
    """False at the stream's end."""
    try:
        data = os.read(descriptor, CHUNK)
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    take(data)
    return bool(data)
