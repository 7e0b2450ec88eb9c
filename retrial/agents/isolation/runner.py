"""What all cells share: how an errand is laid out, started, listened to, and read when it is over."""

from __future__ import annotations

import os
import re
import secrets
import selectors
import shlex
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from retrial.agents.isolation import FILES, WORKSPACE, AgentCommand, AgentExit, Isolation, tests_client
from retrial.agents.isolation.tests_server import TestsSocket
from retrial.errors import SandboxError
from retrial.patches.workspace import Folder
from retrial.protocols import Workspace, WorkspaceCheck
from retrial.sandboxes.bwrap import process
from retrial.sandboxes.job_session import receive
from retrial.sandboxes.supervisor import HeadAndTail
from retrial.system.files import scratch_folder
from retrial.types import Limits, Verdict

LIMITS = Limits(memory_mb=8192, processes=4096, cpus=float(os.cpu_count() or 1), disk_mb=4096)
"""Far more than an agent needs, and less than what would take this machine down."""
OUTPUT_BYTES = 200_000
RESULT_BYTES = 10_000_000
"""Of all files that an errand may leave."""
PIPE_BYTES = 1 << 20
TRIAL_SECONDS = 60.0
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
"""In the name of a variable whose value is not to be shown to people."""
SHORTEST_SECRET = 8
CLIENT = "test_client.py"
TEST = """\
#!/bin/sh
# Runs the visible tests on the workspace as it is now: 0 passed, 1 failed, 2 no verdict.
if ! command -v {python} >/dev/null; then
    echo "No verdict: the test client needs {python}, and there is none here." >&2
    exit 2
fi
exec {python} -I -S "${{0%/*}}/{client}"
"""
# It begins when it is told to, and says so first: what comes before that is a complaint of those who should start it.
START = """\
{exports}
[ "$(ulimit -c)" = 0 ] || ulimit -c 0
mkdir -p "${{HOME:-/tmp}}" && cd {workspace} && read -r nonce && echo "$nonce" || exit 125
exec "$@" </dev/null 2>&1
"""
TRIAL = """\
for path; do
    test -r "$path" || { echo "its user cannot read $path: make it readable for all"; exit 1; }
done
echo here >here
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """An errand laid out in a folder that the program sees; only `out` is the program's to write."""

    folder: Path
    command: tuple[str, ...]
    greeting: bytes
    """To be written to the program's stdin: then it begins."""
    masked: Mapping[str, str]
    """What people are not to see in its output → what they see instead."""
    output: HeadAndTail
    tests: TestsSocket

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def ran(self, exit_code: int | None, *, timed_out: bool) -> AgentExit:
        """Once the program is dead.

        Raises: SandboxError when it was never started.
        """
        complaint, started, said = self.output.text().partition(self.greeting.decode())
        if not started:
            lines = complaint.strip().splitlines()
            raise SandboxError(f"The agent was not started: {' / '.join(lines[:3]) or 'it gave no reason'}")
        for secret, shown in self.masked.items():
            said = said.replace(secret, shown)
        code = None if timed_out else exit_code
        return AgentExit(exit_code=code, output=said, timed_out=timed_out, results=_results(self.out))


@contextmanager
def laid_out(
    errand: AgentCommand,
    variables: Mapping[str, str],
    workspace: Workspace,
    check: WorkspaceCheck,
    *,
    python: str,
    isolated: bool,
) -> Iterator[StagedFiles]:
    """All as they are called inside, where workspace and files have the same names in every cell that is isolated, and
    what the test client runs on.

    Raises: what `check` raises; SandboxError when the cell itself failed, also for what is done with it.
    """
    try:
        if isolated and os.geteuid() == 0:
            workspace.hand_over(process.USER)
        with _folder() as folder, TestsSocket(folder, check) as tests:
            (folder / "out").mkdir()
            files, place = (FILES, WORKSPACE) if isolated else (str(folder), str(workspace.root))
            everything = {**variables, **_named(errand, files), "RETRIAL_WORKSPACE": place}
            for name, content in _contents(errand, everything, python).items():
                (folder / name).write_bytes(content)
                (folder / name).chmod(0o555 if content.startswith(b"#!") else 0o444)
            if os.geteuid() == 0:
                os.chown(folder / "out", process.USER, process.USER)
            yield StagedFiles(
                folder=folder,
                command=("/bin/sh", f"{files}/start", *errand.command),
                greeting=secrets.token_hex(16).encode() + b"\n",
                masked={value: f"[{name}]" for name, value in everything.items() if _is_secret(name, value)},
                output=HeadAndTail(OUTPUT_BYTES),
                tests=tests,
            )
    except OSError as error:
        raise SandboxError(f"The agent could not be run: {error}.") from error


def _contents(errand: AgentCommand, variables: Mapping[str, str], python: str) -> dict[str, bytes]:
    exports = "\n".join(f"export {name}={shlex.quote(value)}" for name, value in variables.items())
    return {
        **errand.files,
        CLIENT: Path(tests_client.__file__).read_bytes(),
        "test": TEST.format(python=shlex.quote(python), client=CLIENT).encode(),
        "start": START.format(exports=exports, workspace=shlex.quote(variables["RETRIAL_WORKSPACE"])).encode(),
    }


@contextmanager
def _folder() -> Iterator[Path]:
    """In a folder that is ours alone, one that others may look into if it is shown to them."""
    with scratch_folder() as holder:
        folder = holder / "files"
        folder.mkdir()
        folder.chmod(0o755)
        yield folder


def _named(errand: AgentCommand, files: str) -> dict[str, str]:
    found = {name.partition(".")[0].upper(): name for name in (*errand.files, "test", "out")}
    return {f"RETRIAL_{name}": f"{files}/{file}" for name, file in found.items()}


def _is_secret(name: str, value: str) -> bool:
    return SECRET.search(name) is not None and len(value) >= SHORTEST_SECRET


def listen(
    stream: int, ended: int | None, tests: TestsSocket, left: Callable[[], float], take: Callable[[bytes], None]
) -> bool:
    """Until the program has ended, or a check could not be made; True when its time was over before.

    `ended` is a pidfd; without one, the end of the stream is that of the program.
    """
    with selectors.DefaultSelector() as selector:
        for descriptor in (stream, tests.news, *(() if ended is None else (ended,))):
            selector.register(descriptor, selectors.EVENT_READ)
        while not tests.broken:
            seconds = left()
            if seconds <= 0 and not tests.busy:
                return True
            # While tests run, time stands still; the news are that they have ended.
            ready = {key.fd for key, _ in selector.select(None if tests.busy else seconds)}
            if tests.news in ready:
                os.eventfd_read(tests.news)
            if stream in ready and not receive(stream, take):
                selector.unregister(stream)
                if ended is None:
                    return False
            if ended in ready:
                return False
    return False


def supervise(
    popen: subprocess.Popen[bytes], kill: Callable[[], None], kit: StagedFiles, left: Callable[[], float]
) -> AgentExit:
    """Let a process of this host run to its end or to that of its time, and no longer."""
    assert popen.stdin and popen.stdout
    stream, ended = popen.stdout.fileno(), os.pidfd_open(popen.pid)
    os.set_blocking(stream, False)
    try:
        # If there is nobody any more, its own words say why.
        with suppress(BrokenPipeError):
            os.write(popen.stdin.fileno(), kit.greeting)
        popen.stdin.close()
        timed_out = listen(stream, ended, kit.tests, left, kit.output.add)
    finally:
        os.close(ended)
        kill()
    # Not to the stream's end: on the host something may still hold it.
    with suppress(BlockingIOError):
        kit.output.add(os.read(stream, PIPE_BYTES))
    return kit.ran(popen.wait(), timed_out=timed_out)


def _results(out: Path) -> dict[str, bytes]:
    """Plain files that can be read, the small ones first, as many as there is room for."""
    found: dict[str, bytes] = {}
    room = RESULT_BYTES
    # Whatever it made of them, or of the folder, that is its own loss.
    with suppress(OSError):
        for entry in sorted(os.scandir(out), key=lambda entry: entry.stat(follow_symlinks=False).st_size):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and status.st_size <= room and os.access(entry.path, os.R_OK):
                found[entry.name] = Path(entry.path).read_bytes()
                room -= len(found[entry.name])
    return found


def try_out(cell: Isolation, paths: tuple[Path, ...]) -> None:
    """Raises: NotMeasured when a program in this cell cannot read these paths or write its workspace."""
    ran, edit = on_no_task(cell, ("/bin/sh", "-c", TRIAL, "sh", *map(str, paths)))
    if not edit:
        said = " / ".join(ran.output.strip().splitlines()[:3])
        raise SandboxError(said or "it cannot work there, and gives no reason")


def on_no_task(cell: Isolation, command: tuple[str, ...]) -> tuple[AgentExit, str]:
    """Run a program in an empty workspace, to learn something of the cell; what came of it, and its edit.

    Raises: NotMeasured.
    """
    end = time.monotonic() + TRIAL_SECONDS
    with scratch_folder() as holder:
        workspace = Folder(holder / "work", {})
        workspace.root.mkdir()
        ran = cell.run(AgentCommand(command=command), workspace, _no_tests, lambda: end - time.monotonic())
        return ran, workspace.diff()


def _no_tests() -> Verdict:
    raise SandboxError("There are no tests here.")
