"""The cache: verdicts that were paid for once are not run again, nor trusted when anything in their key differs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, TypeVar

from retrial import GRADING
from retrial.checks import Check
from retrial.protocols import Sandbox
from retrial.store.json_io import Seal, decode, to_exact_jsonl
from retrial.system.console import NOTE, say
from retrial.system.files import write_data
from retrial.system.secrets import MASKER
from retrial.types import Task, Verdict, fingerprint

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_HEAD = b'{"kept": '
_SEAL = Seal(b", ", b"}\n")


def key(task: Task, patch: str, check: Check, sandbox: Sandbox) -> str:
    """Filtered patch, base tree, check with its limits, environment and grading version."""
    environment = sandbox.digest(task.environment)
    return fingerprint(patch, task.tree.digest, check.digest, environment, sandbox.name, GRADING)


class Verdicts:
    """One file a verdict, named by its key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "verdicts"

    def get(self, name: str) -> Verdict | None:
        return self.value(name, Verdict)

    def put(self, name: str, verdict: Verdict) -> None:
        if verdict.outcome.measured and not verdict.busy:
            self.put_value(name, verdict)

    def value(self, name: str, kind: type[T]) -> T | None:
        """Whatever else was kept under this name; None where there is nothing that can be used."""
        path = self._path(name)
        value = read_entry(path)
        if value is None:
            return None
        try:
            return decode(value, kind)
        except ValueError as error:
            # Of another version: it is run again, and written over.
            _LOG.warning("What was kept cannot be used: %s", error, extra={"file": str(path)})
            return None

    def put_value(self, name: str, value: object) -> None:
        """Store it as it is; or not at all, where that would write a key down: then it is run again the next time."""
        path, content = self._path(name), to_exact_jsonl(value)
        if MASKER.redact_bytes(content) == content:
            write_entry(path, value, sure=True)
        else:
            path.unlink(missing_ok=True)
            _LOG.warning("A result is not cached: there is a key in it.", extra={"file": str(path)})

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"


def write_entry(path: Path, value: object, *, sure: bool = False) -> None:
    """Store a value exactly as it is, with a checksum of its own bytes. `sure`: on disk when this returns.

    Nothing in it is masked: a patch or an object file with `***` in it is another one.
    """
    write_data(path, _SEAL.sealed(_HEAD + to_exact_jsonl(value).rstrip()), sure=sure)


def read_entry(path: Path) -> Any:
    """Return what was written; None where there is nothing that can be used. A damaged entry is named."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    is_whole = _SEAL.holds(content)
    if is_whole:
        return json.loads(content)["kept"]
    if is_whole is False or not _of_an_older_version(content):
        say(f"{NOTE}the cache entry {path} is damaged; it is ignored and will be rebuilt")
    return None


def _of_an_older_version(content: bytes) -> bool:
    """Such entries have no checksum, and may have been masked."""
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return not content.startswith(_HEAD)
