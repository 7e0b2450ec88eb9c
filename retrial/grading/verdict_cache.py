"""Verdicts that were paid for once: never run twice, never trusted when anything in their key differs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from retrial import GRADING
from retrial.grading import checksummed_file
from retrial.protocols import Sandbox
from retrial.store.json_io import decode_canary, decode_verdict, to_exact_jsonl
from retrial.system.secrets import MASKER
from retrial.types import Canary, Check, Task, Verdict, fingerprint

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


def key(task: Task, patch: str, check: Check, sandbox: Sandbox) -> str:
    """Filtered patch, base tree, check with its limits, environment and grading version."""
    environment = sandbox.digest(task.environment)
    return fingerprint(patch, task.tree.digest, check.digest, environment, sandbox.name, GRADING)


class Verdicts:
    """One file a verdict, named by its key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "verdicts"

    def get(self, name: str) -> Verdict | None:
        return self._read(name, decode_verdict)

    def put(self, name: str, verdict: Verdict) -> None:
        if verdict.outcome.measured and not verdict.busy:
            self.put_value(name, verdict)

    def reference(self, name: str) -> tuple[Verdict, tuple[Canary, ...]] | None:
        """What was kept of a reference run."""
        return self._read(
            name,
            lambda value: (decode_verdict(value["verdict"]), tuple(decode_canary(each) for each in value["canaries"])),
        )

    def put_reference(self, name: str, verdict: Verdict, canaries: tuple[Canary, ...]) -> None:
        self.put_value(name, {"verdict": verdict, "canaries": canaries})

    def value(self, name: str) -> Any:
        """What else was kept, as JSON has it; None when there is nothing."""
        return self._read(name, lambda value: value)

    def put_value(self, name: str, value: object) -> None:
        """Store it as it is; or not at all, where that would write a key down: then it is run again the next time."""
        path, content = self._path(name), to_exact_jsonl(value)
        if MASKER.redact_bytes(content) == content:
            checksummed_file.write(path, value, sure=True)
        else:
            path.unlink(missing_ok=True)
            _LOG.warning("A result is not cached: there is a key in it.", extra={"file": str(path)})

    def _read(self, name: str, made: Callable[[Any], T]) -> T | None:
        path = self._path(name)
        value = checksummed_file.read(path)
        if value is None:
            return None
        try:
            return made(value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            # Of another version: it is run again, and written over.
            _LOG.warning("What was kept cannot be used: %s", error, extra={"file": str(path)})
            return None

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"
