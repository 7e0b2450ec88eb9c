"""The log of a run, `logs/<run>/run.log`: structured (JSON Lines), for debugging.

Modules write to loggers of their own (`logging.getLogger(__name__)`), with fields in `extra`. While a run is kept all
of it goes to its file, without secrets. What comes before waits for the next run; nothing is ever printed.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import math
import os
import platform
from collections import deque
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType, TracebackType

from retrial import __version__
from retrial.errors import RetrialError
from retrial.system.secrets import MASKER

NAME = "run.log"
LARGEST = 32_000_000
"""Bytes of one file; one older is kept beside it."""
VARIABLE = "RETRIAL_LOG"
"""Set to `debug`, every question and every job is logged too."""
WAITING = 1000
"""Of what is logged before there is a run, so many of the last lines are kept for it."""

_LOG = logging.getLogger(__name__)
_OURS = logging.getLogger("retrial")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}
_ABOUT: ContextVar[Mapping[str, str | int]] = ContextVar("about", default=MappingProxyType({}))


def begin() -> None:
    """From now on what is logged is for a file, also what comes before it is known for which."""
    _listen(_Waiting())


@contextlib.contextmanager
def about(**fields: str | int) -> Iterator[None]:
    """Everything that this thread logs meanwhile has these fields too."""
    token = _ABOUT.set({**_ABOUT.get(), **fields})
    try:
        yield
    finally:
        _ABOUT.reset(token)


def fields() -> Mapping[str, str | int]:
    """What `about` says of what this thread does."""
    return _ABOUT.get()


def broken(what: str, error: Exception, **fields: object) -> None:
    """A job that ended with an exception: here people find where."""
    _LOG.error("%s: %s: %s", what, type(error).__name__, error, exc_info=error, extra=fields)


class RunLog:
    """While it lasts, what happens is written to the log of the run, after what is there."""

    def __init__(self, folder: Path, name: str, command: str) -> None:
        """`folder`: where the logs of the run with this name are."""
        self._folder, self._name, self._command = folder, name, command

    def __enter__(self) -> None:
        self._before = _OURS.level, _OURS.propagate, _OURS.handlers
        self._file = _File(self._folder / NAME)
        _listen(self._file)
        versions = {"retrial": __version__, "python": platform.python_version(), "system": platform.platform()}
        where = {"run": self._name, "pid": os.getpid(), "host": platform.node()}
        _LOG.info("started", extra={"command": self._command, "versions": versions, **where})
        for waiting in (each for each in self._before[2] if isinstance(each, _Waiting)):
            waiting.hand_over(self._file)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            _LOG.info("ended")
        elif isinstance(error, RetrialError | KeyboardInterrupt):
            _LOG.warning("ended: %s", str(error) or "interrupted")
        else:
            _LOG.critical("ended by an error of our own: %s", error, exc_info=error)
        level, _OURS.propagate, _OURS.handlers = self._before
        _OURS.setLevel(level)
        self._file.close()


def _listen(handler: logging.Handler) -> None:
    _OURS.handlers = [handler]
    _OURS.setLevel(logging.DEBUG if os.environ.get(VARIABLE) == "debug" else logging.INFO)
    # Handlers of others print.
    _OURS.propagate = False


class _Waiting(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self._records: deque[logging.LogRecord] = deque(maxlen=WAITING)

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def hand_over(self, handler: logging.Handler) -> None:
        while self._records:
            handler.handle(self._records.popleft())


class _File(logging.Handler):
    """Written line by line, each at once and whole: other processes may write there too."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._descriptor = path, -1
        self.setFormatter(_Line())

    def emit(self, record: logging.LogRecord) -> None:
        # A full disk, a folder that nobody may write to or a message with a mistake costs this line and not the run.
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            line = f"{self.format(record)}\n".encode()
            self._make_room()
            os.write(self._descriptor, line)

    def _make_room(self) -> None:
        if self._descriptor >= 0 and os.fstat(self._descriptor).st_size < LARGEST:
            return
        if self._path.exists() and self._path.stat().st_size >= LARGEST:
            os.replace(self._path, self._path.with_name(f"{NAME}.1"))
        self._close()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _close(self) -> None:
        # Forgotten first: an interrupt between the two must not lead to closing it twice.
        opened, self._descriptor = self._descriptor, -1
        if opened >= 0:
            os.close(opened)

    def close(self) -> None:
        self._close()
        super().close()


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        known = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "where": record.name,
            "message": record.getMessage(),
        }
        # Libraries put fields of their own into every record.
        own = (name for name in vars(record) if name not in _STANDARD and not name.startswith("_"))
        fields = {name: _finite(getattr(record, name)) for name in own}
        trace = {"traceback": self.formatException(record.exc_info)} if record.exc_info else {}
        return MASKER.redact(
            json.dumps({**known, **_ABOUT.get(), **fields, **trace, **known}, default=str, allow_nan=False)
        )


def _finite(value: object) -> object:
    """JSON has no other numbers."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
