"""What was asked and answered in one task, line by line, on disk before it is used.

A line ends with a checksum of its own bytes. Lines without one are of older runs; none follows one that has it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakValueDictionary

from retrial.errors import UsageError
from retrial.store import integrity
from retrial.store.events import AgentSpent, Event, Replied, ReplyLost, Requested, parse
from retrial.store.json_io import Seal, to_fields, to_jsonl
from retrial.system.console import say
from retrial.system.files import open_or_create, sync_folder, write_all, write_data

_SEAL = Seal(b", ", b"}")
_EVENT = re.compile(rb'\{"event": "(\w+)"[,}]')
_SUM = re.compile(rb'"(?:reserved|cost)": (null|\d+(?:\.\d+)?(?:e-\d+)?)(?=[,}])')
_PAYING = {kind.tag for kind in (Requested, Replied, AgentSpent, ReplyLost)}
_LOG = logging.getLogger(__name__)
_locks: WeakValueDictionary[Path, threading.Lock] = WeakValueDictionary()
"""One for each file that somebody has open: who was taken for lost may still write beside who goes on."""
_meeting = threading.Lock()


def line(event: Event) -> bytes:
    """As it goes into a journal."""
    return sealed(to_jsonl({"event": event.tag, **to_fields(event)}))


def sealed(content: bytes) -> bytes:
    """A line with a checksum for its last field."""
    return _SEAL.sealed(content.removesuffix(b"}\n")) + b"\n"


def read(content: bytes, where: object = "the journal") -> Iterator[Event]:
    """Every line that is whole. Raises: UsageError for one that another version of ours wrote in another form."""
    for number, (each, is_whole) in enumerate(_examined(content), start=1):
        if not is_whole:
            continue
        try:
            yield parse(each)
        except ValueError as error:
            raise UsageError(
                f"{where}, line {number}, is of another version of Retrial ({error}): "
                "resume with that version, or name another run with --run."
            ) from error


def _examined(content: bytes) -> Iterator[tuple[bytes, bool]]:
    """Each line, and whether it is as it was written."""
    any_sealed = False
    for each in content.split(b"\n"):
        if not each:
            continue
        is_whole = _SEAL.holds(each)
        if is_whole is None:
            yield each, not any_sealed and _is_of_an_older_run(each)
        else:
            any_sealed = any_sealed or is_whole
            yield each, is_whole


def _is_of_an_older_run(each: bytes) -> bool:
    """Where no checksum vouches for a line, its form must."""
    try:
        parse(each, sealed=False)
    except ValueError:
        return False
    return True


class Journal:
    """The file of one task: lines are only ever added."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _meeting:
            self._lock = _locks.setdefault(path, threading.Lock())
        self._written = 0
        """Bytes up to the end of the last line that was written here."""

    def append(self, event: Event) -> None:
        self.write(line(event))

    def write(self, lines: bytes) -> None:
        """Whole lines, on disk when this returns."""
        with self._lock:
            file = open_or_create(self._path, os.O_RDWR | os.O_APPEND)
            try:
                size = self._mended_size(file)
                _add(file, lines, size)
            finally:
                os.close(file)
            self._written = size + len(lines)
        if not size:
            # A file that nobody can find is not on disk.
            sync_folder(self._path.parent)

    def _mended_size(self, file: int) -> int:
        """Return the size of the file once its last line has an end."""
        size = os.fstat(file).st_size
        if size in (0, self._written) or os.pread(file, 1, size - 1) == b"\n":
            return size
        self._end_last_line(file)
        return os.fstat(file).st_size

    def mended(self) -> bytes:
        """For one who goes on: what a killed process left of a line is cut off, a damaged file set aside, and said."""
        with self._lock:
            content = self.content()
            *before, last = content.split(b"\n")
            if not all(is_whole for _, is_whole in _examined(b"\n".join(before))):
                self._set_aside(content)
            elif last and _is_torn(content):
                with self._path.open("rb+") as file:
                    self._end_last_line(file.fileno())
            return self.content()

    def content(self) -> bytes:
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""

    def events(self) -> Iterator[Event]:
        return read(self.content(), self._path)

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
        good = b"".join(each + b"\n" for each, is_whole in examined if is_whole)
        # What was paid for stays so, also if nobody can read any more what for.
        lost = b"".join(_lost(each) for each, is_whole in examined if not is_whole)
        write_data(self._path, good + lost, sure=True)
        sync_folder(self._path.parent)
        say(f"note: {self._path} is damaged: what is whole is kept, the file as it was is now {aside.name}")
        _LOG.warning("A damaged journal was set aside.", extra={"file": str(self._path), "aside": str(aside)})


def _add(file: int, lines: bytes, size: int) -> None:
    try:
        write_all(file, lines)
        os.fsync(file)
    except OSError:
        # All of them or none: who finds room will write them again.
        os.ftruncate(file, size)
        raise


def _lost(damaged: bytes) -> bytes:
    """In the place of a line that cannot be read: the most that it may have been about, if it may have been money."""
    event = _EVENT.match(damaged)
    if event and event[1].decode() not in _PAYING:
        return b""
    sums = [None if found == b"null" else float(found) for found in _SUM.findall(damaged)]
    known = [each for each in sums if each is not None]
    return line(ReplyLost(cost=max(known) if known and len(known) == len(sums) else None))


def _is_torn(content: bytes) -> bool:
    """Whether its last line is not as it was written; the others count for how that is told."""
    examined = list(_examined(content))
    return bool(examined) and not examined[-1][1]
