"""What is the same for every patch is compiled once: in a sandbox, from the task's own files, for each environment."""

from __future__ import annotations

import base64
import logging
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retrial.checks import PREBUILT_FOLDER, Prebuild
from retrial.grading import verdict_cache
from retrial.protocols import Sandbox
from retrial.system import paths
from retrial.types import Environment, Job, fingerprint

TOLD = 1000
"""Characters."""

_building: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
_made_here: set[Path] = set()
"""By this process: --fresh builds each object once per run."""
_failed_here: set[Path] = set()
"""It may have been the moment, so the next program tries again, but not this one."""
_LOG = logging.getLogger(__name__)


def files(
    prebuild: Prebuild, environment: Environment, sandbox: Sandbox, *, fresh: bool = False
) -> Mapping[str, bytes]:
    """Path in the job → content; nothing when it cannot be built.

    `fresh`: make it again, once in this process, even if it is in the cache.

    Raises: SandboxError.
    """
    key = fingerprint(prebuild.digest, sandbox.name, sandbox.digest(environment))[:32]
    path = paths.cache() / "prebuilt" / f"{key}.json"
    # Jobs that need another one do not wait for it.
    with _building[path]:
        if path in _failed_here:
            return {}
        found = None if fresh and path not in _made_here else _read(path)
        if found is None:
            found = _build(prebuild, environment, sandbox, path)
    return {f"{PREBUILT_FOLDER}/{name}": content for name, content in found.items()}


def _read(path: Path) -> dict[str, bytes] | None:
    found: Any = verdict_cache.read_entry(path)
    return None if found is None else {name: base64.b64decode(text) for name, text in found.items()}


def _build(prebuild: Prebuild, environment: Environment, sandbox: Sandbox, path: Path) -> dict[str, bytes]:
    job = Job(environment=environment, script=prebuild.script, files=prebuild.files, limits=prebuild.limits)
    execution = sandbox.run(job)
    if execution.exit_code != 0 or execution.timed_out or execution.oom or execution.truncated:
        _LOG.warning("a build failed", extra={"exit_code": execution.exit_code, "stderr": execution.stderr[-TOLD:]})
        _failed_here.add(path)
        return {}
    made = {name.replace("/", "-"): content for name, content in sorted(execution.reports.items())}
    verdict_cache.write_entry(
        path, {name: base64.b64encode(content).decode() for name, content in made.items()}, sure=True
    )
    _made_here.add(path)
    return made
