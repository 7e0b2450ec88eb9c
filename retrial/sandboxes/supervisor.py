"""How the host and the supervisor inside a sandbox speak; the same for every sandbox.

To its stdin: a line with a nonce, then a tar archive with the script and the job's files.
From its stdout: `<nonce> start`, what the job prints, `<nonce> end <status>`, `<nonce> cpu <usage>` where it
can be measured inside, a line for each sealed file that changed, `<nonce> reports`, a tar archive of reports,
`<nonce> done`.

The nonce keeps a job from framing by accident or by printing. It is no secret from a job that reads its supervisor's
memory, and need not be: such a job gains nothing that writing its own reports and exit status would not give it.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import tarfile
import time
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import PurePosixPath

from retrial.errors import SandboxError
from retrial.sandboxes import report_archive
from retrial.sandboxes.time_allowance import Meter, TimeAllowance
from retrial.system import host
from retrial.types import Execution, Job

SCRIPT, SEALED = ".script", ".sealed"
CHUNK = 1 << 16
START_SECONDS = 60.0
"""For the sandbox to come up and unpack, on a loaded machine."""
REPORT_SECONDS = 30.0
RLIMITS: Mapping[str, int] = {"core": 1, "sigpending": 4096}
"""Of every process. Cores: one byte is none, and less than 0, for which the kernel still starts the program of the host
that takes them. Signals that wait are counted for a user, and so for all jobs together."""

REPORTS = "RETRIAL_REPORTS"
ENVIRONMENT: Mapping[str, str] = {
    "HOME": "/tmp/home",
    "TMPDIR": "/tmp",
    REPORTS: "/tmp/reports",
    "LANG": "C.UTF-8",
    "USER": "nobody",
}
STORE = "RETRIAL_STORE"
"""Names the folder in which each language has a folder of packages and warm caches."""
PATH = ("/usr/local/bin", "/usr/bin", "/bin")

SUPERVISOR = r"""
read -r nonce || exit 125
umask 022
# It counts in blocks, and says 0 of the one byte that it is to be.
[ "$(ulimit -c)" = 0 ] || ulimit -c 0
ulimit -n 4096 2>/dev/null
# Without o, root would give files away to whom the archive names, which it may not be allowed to.
tar -xmof - -C /tmp && cd "/tmp/job/$1" || exit 125
# The job gets stdout and stderr opened anew: it could make ours non-blocking, and the frames below would be cut.
: >/proc/self/fd/1 2>/proc/self/fd/2 || exit 125
# Read now: it lies where the job can write.
sums=$(cat ../.sealed)
printf '%s start\n' "$nonce"
sh ../.script </dev/null >/proc/self/fd/1 2>/proc/self/fd/2
status=$?
# All but pid 1 and this shell; fails only when there is nobody left. The host's time limit bounds it.
while kill -9 -1; do :; done 2>/dev/null
printf '\n%s end %s\n' "$nonce" "$status"
# With nothing but builtins: a job that is root may have replaced every program. The first line is enough in both
# versions of cgroups; without a cgroup namespace, version 2 would show the whole machine's time.
read -r group </proc/self/cgroup
usage=/sys/fs/cgroup/cpuacct/cpuacct.usage
[ "$group" = 0::/ ] && usage=/sys/fs/cgroup/cpu.stat
used=
[ -r "$usage" ] && read -r used <"$usage"
if [ -z "$used" ] && [ $$ -ne 1 ]; then
    # Without a cgroup: pid 1 and this shell have reaped all others. Times are fields 14 to 17, in ticks of 10 ms.
    used=0
    for process in 1 $$; do
        read -r stat </proc/$process/stat
        set -- ${stat##*) }
        used=$((used + (${12} + ${13} + ${14} + ${15}) * 10000000))
    done
fi
[ -z "$used" ] || printf '%s cpu %s\n' "$nonce" "$used"
[ -z "$sums" ] || printf '%s\n' "$sums" | sha256sum --check --quiet 2>/dev/null
printf '%s reports\n' "$nonce"
tar -cf - -C /tmp/reports . 2>/dev/null && printf '%s done\n' "$nonce"
"""


def command(job: Job) -> tuple[str, ...]:
    """What to start inside the sandbox."""
    return ("sh", "-c", SUPERVISOR, "retrial", job.folder)


class Phase(IntEnum):
    STARTING = 0
    RUNNING = 1
    REPORTING = 2
    DONE = 3


class HeadAndTail:
    """The first and the last half of a stream; what lies between is counted and dropped."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._first = bytearray()
        self._last = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._first)
        if room > 0:
            self._first += data[:room]
            data = data[room:]
        self._last += data
        # Cut seldom, so that a long stream is not copied with every chunk.
        if len(self._last) > 2 * self._half + CHUNK:
            self._cut()

    def _cut(self) -> None:
        surplus = len(self._last) - self._half
        if surplus > 0:
            del self._last[:surplus]
            self._dropped += surplus

    @property
    def cut(self) -> bool:
        self._cut()
        return self._dropped > 0

    def text(self) -> str:
        note = f"\n[… {self._dropped} bytes cut …]\n".encode() if self.cut else b""
        return (bytes(self._first) + note + bytes(self._last)).decode(errors="replace")


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
        reports = report_archive.read(archive) if self.phase is Phase.DONE else None
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


def pack(job: Job) -> bytes:
    """All that is to lie in /tmp, as a tar archive: the same bytes for the same job."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for folder in ("home", "reports", "job", f"job/{_checked(job.folder)}"):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        for name, content, mode in _files(job):
            member = tarfile.TarInfo(f"job/{name}")
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def _files(job: Job) -> Iterator[tuple[str, bytes, int]]:
    yield SCRIPT, job.script.encode(), 0o644
    yield SEALED, _sums(job), 0o644
    for path, content in sorted(job.files.items()):
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise SandboxError(f"The file '{path}' would lie outside the sandbox's folder.")
        yield f"{job.folder}/{path}", content, 0o755 if path in job.executable else 0o644


def _sums(job: Job) -> bytes:
    """As `sha256sum` takes them: names that it would have to quote are left out."""
    plain = sorted(path for path in job.sealed if "\n" not in path and "\\" not in path)
    return "".join(f"{hashlib.sha256(job.files[path]).hexdigest()}  {path}\n" for path in plain).encode(
        "utf-8", "surrogateescape"
    )


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


def _checked(folder: str) -> str:
    if len(PurePosixPath(folder).parts) != 1 or folder in ("..", SCRIPT, SEALED):
        raise SandboxError(f"'{folder}' cannot be a folder's name in a sandbox.")
    return folder
