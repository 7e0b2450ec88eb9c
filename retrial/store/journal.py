"""What was asked and answered in one task, line by line, on disk before it is used.

A line ends with a checksum of its own bytes. Lines without one are of older runs; none follows one that has it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
import zlib
from collections.abc import Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from retrial.store import integrity
from retrial.store.events import is_sound
from retrial.store.json_io import from_json, to_jsonl
from retrial.system.console import say
from retrial.system.files import sync_folder

Line = Mapping[str, Any]

_SEAL = b', "crc": "%08x"}'
_SEALED = re.compile(rb', "crc": "([0-9a-f]{8})"\}')
_SEAL_BYTES = len(_SEAL % 0)
_EVENT = re.compile(rb'\{"event": "(\w+)"[,}]')
_SUM = re.compile(rb'"(?:reserved|cost)": (null|\d+(?:\.\d+)?(?:e-\d+)?)(?=[,}])')
_PAYING = ("request", "reply", "spent", "lost")
_LOG = logging.getLogger(__name__)
_locks: WeakValueDictionary[Path, threading.Lock] = WeakValueDictionary()
"""One for each file that somebody has open: who was taken for lost may still write beside who goes on."""
_meeting = threading.Lock()


def line(event: str, **fields: object) -> bytes:
    """As it goes into a journal."""
    body = to_jsonl({"event": event, **fields}).removesuffix(b"}\n")
    return body + _SEAL % zlib.crc32(body) + b"\n"


def read(content: bytes) -> Iterator[Line]:
    """Every line that is whole."""
    return (value for _, value in _examined(content) if value is not None)


def _examined(content: bytes) -> Iterator[tuple[bytes, Line | None]]:
    """Each line, with what it says; None for one that is not as it was written."""
    any_sealed = False
    for each in content.split(b"\n"):
        if not each:
            continue
        sealed = _SEALED.fullmatch(each, max(0, len(each) - _SEAL_BYTES))
        if sealed is None:
            yield each, None if any_sealed else _of_an_older_run(each)
        elif zlib.crc32(memoryview(each)[:-_SEAL_BYTES]) != int(sealed[1], 16):
            yield each, None
        else:
            any_sealed = True
            yield each, _parsed(each)


def _of_an_older_run(each: bytes) -> Line | None:
    value = _parsed(each)
    return value if value is not None and is_sound(value) else None


def _parsed(each: bytes) -> Line | None:
    try:
        value = from_json(each)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("event"), str) else None


class Journal:
    """The file of one task: lines are only ever added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _meeting:
            self._lock = _locks.setdefault(path, threading.Lock())

    def append(self, event: str, **fields: object) -> None:
        self.write(line(event, **fields))

    def write(self, lines: bytes) -> None:
        """Whole lines, on disk when this returns."""
        with self._lock, self._opened() as file:
            new = not file.tell()
            if not new and os.pread(file.fileno(), 1, file.tell() - 1) != b"\n":
                self._end_last_line(file.fileno())
            _add(file, lines)
        if new:
            # A file that nobody can find is not on disk.
            sync_folder(self._path.parent)

    def _opened(self) -> FileIO:
        try:
            return self._path.open("ab+", buffering=0)
        except FileNotFoundError:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            return self._path.open("ab+", buffering=0)

    def mended(self) -> bytes:
        """For one who goes on: what a killed process left of a line is cut off, a damaged file set aside, and said."""
        with self._lock:
            content = self.content()
            *before, last = content.split(b"\n")
            if any(value is None for _, value in _examined(b"\n".join(before))):
                self._set_aside(content)
            elif last and _is_torn(content):
                with self._path.open("rb+") as file:
                    self._end_last_line(file.fileno())
            return self.content()

    def content(self) -> bytes:
        return self._path.read_bytes() if self._path.exists() else b""

    def lines(self) -> Iterator[Line]:
        return read(self.content())

    def _end_last_line(self, file: int) -> None:
        """What a killed process left of a line must not take the next with it."""
        content = self.content()
        if not _is_torn(content):
            # All but its end is there.
            os.pwrite(file, b"\n", len(content))
            return
        os.ftruncate(file, content.rfind(b"\n") + 1)
        os.fsync(file)
        say(f"note: the last line of {self._path} was torn, and is dropped")
        _LOG.warning("A torn last line was dropped.", extra={"file": str(self._path)})

    def _set_aside(self, content: bytes) -> None:
        """The whole file is kept under another name; here stays what is as it was written."""
        aside = integrity.free_name(self._path)
        # A copy: whoever is killed now must find the good lines here.
        shutil.copyfile(self._path, aside)
        examined = list(_examined(content))
        good = b"".join(each + b"\n" for each, value in examined if value is not None)
        # What was paid for stays so, also if nobody can read any more what for.
        lost = b"".join(_lost(each) for each, value in examined if value is None)
        mending = self._path.with_name(f"{self._path.name}.mending")
        with mending.open("wb") as file:
            file.write(good + lost)
            file.flush()
            os.fsync(file.fileno())
        mending.replace(self._path)
        sync_folder(self._path.parent)
        say(f"note: {self._path} is damaged: what is whole is kept, the file as it was is now {aside.name}")
        _LOG.warning("A damaged journal was set aside.", extra={"file": str(self._path), "aside": str(aside)})


def _add(file: FileIO, lines: bytes) -> None:
    size, left = os.fstat(file.fileno()).st_size, memoryview(lines)
    try:
        while left:
            left = left[file.write(left) :]
        os.fsync(file.fileno())
    except OSError:
        # All of them or none: who finds room will write them again.
        os.ftruncate(file.fileno(), size)
        raise


def _lost(damaged: bytes) -> bytes:
    """In the place of a line that cannot be read: the most that it may have been about, if it may have been money."""
    event = _EVENT.match(damaged)
    if event and event[1].decode() not in _PAYING:
        return b""
    sums = [None if found == b"null" else float(found) for found in _SUM.findall(damaged)]
    known = [each for each in sums if each is not None]
    return line("lost", cost=max(known) if known and len(known) == len(sums) else None)


def _is_torn(content: bytes) -> bool:
    """Whether its last line is not as it was written; the others count for how that is told."""
    examined = list(_examined(content))
    return bool(examined) and examined[-1][1] is None
