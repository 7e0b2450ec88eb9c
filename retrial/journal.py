"""What was asked and answered in one task, line by line, on disk before it is used."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrial.plain import to_line

Line = Mapping[str, Any]


def line(event: str, **fields: object) -> bytes:
    """As it goes into a journal."""
    return to_line({"event": event, **fields})


def read(content: bytes) -> Iterator[Line]:
    for each in content.splitlines():
        # A torn last line is what a killed process leaves.
        try:
            value = json.loads(each)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


class Journal:
    """The file of one task: lines are only ever added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def append(self, event: str, **fields: object) -> None:
        self.write(line(event, **fields))

    def write(self, lines: bytes) -> None:
        """Whole lines, on disk when this returns."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, self._path.open("ab+") as file:
            # What a killed process left of a line must not take this one with it.
            torn = file.tell() and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n"
            file.write((b"\n" if torn else b"") + lines)
            file.flush()
            os.fsync(file.fileno())

    def content(self) -> bytes:
        return self._path.read_bytes() if self._path.exists() else b""

    def lines(self) -> Iterator[Line]:
        return read(self.content())
