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
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from retrial.errors import SandboxError
from retrial.types import Job

SCRIPT, SEALED = ".script", ".sealed"
CHUNK = 1 << 16
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
BLOCK = 512
REGULAR = (b"0", b"\0")
LONG_NAME = b"L"

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


def pack(job: Job) -> bytes:
    """All that is to lie in /tmp, as a tar archive: the same bytes for the same job."""
    folders = ("home", "reports", "job", f"job/{_checked(job.folder)}")
    return tar([*((name, None, 0o755) for name in folders), *_files(job)])


def tar(members: Iterable[tuple[str, bytes | None, int]]) -> bytes:
    """An archive of names, contents (None of a folder) and modes: the same bytes for the same members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content, mode in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE if content is None else tarfile.REGTYPE, mode
            member.size = len(content or b"")
            archive.addfile(member, io.BytesIO(content or b""))
    return buffer.getvalue()


def _files(job: Job) -> Iterator[tuple[str, bytes, int]]:
    yield f"job/{SCRIPT}", job.script.encode(), 0o644
    yield f"job/{SEALED}", _sums(job), 0o644
    for path, content in sorted(job.files.items()):
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise SandboxError(f"The file '{path}' would lie outside the sandbox's folder.")
        yield f"job/{job.folder}/{path}", content, 0o755 if path in job.executable else 0o644


def _sums(job: Job) -> bytes:
    """As `sha256sum` takes them: names that it would have to quote are left out."""
    plain = sorted(path for path in job.sealed if "\n" not in path and "\\" not in path)
    return "".join(f"{hashlib.sha256(job.files[path]).hexdigest()}  {path}\n" for path in plain).encode(
        "utf-8", "surrogateescape"
    )


def _checked(folder: str) -> str:
    if len(PurePosixPath(folder).parts) != 1 or folder in ("..", SCRIPT, SEALED):
        raise SandboxError(f"'{folder}' cannot be a folder's name in a sandbox.")
    return folder


def read_reports(archive: bytes) -> Mapping[str, bytes] | None:
    """Relative path → content of what leaves a sandbox; None when the archive is not whole.

    In memory, regular files only, nothing is believed. `tarfile` is not used: its long tail (sparse files, extended
    headers, negative sizes) is what a forger would reach for.
    """
    found: dict[str, bytes] = {}
    try:
        for kind, name, content in _members(archive):
            if kind in REGULAR and (path := _safe(name)):
                found[path] = content
    except ValueError:
        return None
    return found


def _members(archive: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """(type, name, content) of each member, up to the block of zeros that ends the archive."""
    position, long_name = 0, b""
    while True:
        header = archive[position : position + BLOCK]
        if len(header) < BLOCK:
            raise ValueError("the archive is cut")
        if not header.strip(b"\0"):
            return
        kind = header[156:157]
        start, size = position + BLOCK, _size(header)
        if start + size > len(archive):
            raise ValueError("a member is cut")
        content = archive[start : start + size]
        position = start + -(-size // BLOCK) * BLOCK
        if kind == LONG_NAME:
            long_name = content
        else:
            yield kind, long_name or _name(header), content
            long_name = b""


def _size(header: bytes) -> int:
    """Octal only: the binary form is for sizes far above any limit of ours."""
    digits = header[124:136].strip(b"\0 ")
    if not digits.isdigit():
        raise ValueError("a member's size is not a number")
    return int(digits, 8)


def _name(header: bytes) -> bytes:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _safe(name: bytes) -> str:
    """The name as a plain relative path; empty when it is none."""
    text = name.split(b"\0")[0].decode(errors="replace")
    path = PurePosixPath(text)
    if text.endswith("/") or path.is_absolute() or ".." in path.parts:
        return ""
    return "" if str(path) == "." else str(path)


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
