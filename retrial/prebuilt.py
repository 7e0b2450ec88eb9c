"""What is the same for every patch is compiled once: in a sandbox, from the task's own files, for each environment."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from retrial import paths
from retrial.protocols import Sandbox
from retrial.types import Environment, Job, Limits, Prebuild, fingerprint
from retrial.whole_files import write_atomically

FOLDER = ".retrial"
"""Where jobs find it, in the folder they start in. No patch can reach it: no solution lies in such a folder."""
LIMITS = Limits(seconds=300, report_bytes=64 << 20)
DONE = ".done"

_building = threading.Lock()


def files(prebuild: Prebuild | None, environment: Environment, sandbox: Sandbox) -> Mapping[str, bytes]:
    """Path in the job → content; nothing when there is nothing to build, or when it cannot be built.

    Raises: SandboxError.
    """
    if prebuild is None:
        return {}
    key = fingerprint(prebuild.digest, sandbox.name, sandbox.digest(environment))[:32]
    folder = paths.cache() / "prebuilt" / key
    with _building:
        if not (folder / DONE).exists():
            _build(prebuild, environment, sandbox, folder)
    made = [path for path in sorted(folder.glob("*")) if path.name != DONE]
    return {f"{FOLDER}/{path.name}": path.read_bytes() for path in made}


def _build(prebuild: Prebuild, environment: Environment, sandbox: Sandbox, folder: Path) -> None:
    job = Job(environment=environment, script=prebuild.script, files=prebuild.files, limits=LIMITS)
    execution = sandbox.run(job)
    if execution.exit_code is None or execution.timed_out or execution.oom or execution.truncated:
        # A busy machine's doing, perhaps: tried again by the next.
        return
    for name, content in execution.reports.items() if execution.exit_code == 0 else ():
        write_atomically(folder / name.replace("/", "-"), content)
    # A build that failed by itself is remembered too: the check will say what is wrong.
    write_atomically(folder / DONE, b"")
