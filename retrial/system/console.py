"""What people read on a terminal: lines, progress, counted nouns."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from retrial.errors import Stopped
from retrial.system.secrets import redact_by_name

_LOG = logging.getLogger(__name__)
NOTE = "note: "
"""What people should look at begins so."""
SHOWN = 3


def command_line() -> str:
    """How this program was called, as it may be shown."""
    return shlex.join(["python", os.path.basename(sys.argv[0]), *map(redact_by_name, sys.argv[1:])])


def say(text: str) -> None:
    """One line for people; results go to stdout, everything on the way to stderr, and to the log."""
    # Whoever read it may be gone: that ends no run.
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
    _LOG.log(logging.WARNING if text.startswith(NOTE) else logging.INFO, "%s", text)


class Progress:
    """Counts what has finished; every finished task is a line or a step of the bar."""

    def __init__(self, title: str, total: int) -> None:
        self._title, self._total, self._done, self._finished = title, total, 0, 0
        self._bar: Any = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc=title, unit="task", file=sys.stderr)

    def step(self, line: str, tally: str, *, measured: bool = True) -> None:
        """What was not measured is left for another go."""
        self._done += 1
        self._finished += measured
        text = f"{self._title} {self._done}/{self._total}: {line} [{tally}]"
        if self._bar is None:
            say(text)
            return
        _LOG.info("%s", text)
        # As in `say`.
        with suppress(OSError):
            self._bar.write(line, file=sys.stderr)
            self._bar.set_postfix_str(tally)
            self._bar.update()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, traceback: TracebackType | None) -> None:
        if self._bar is not None:
            with suppress(OSError):
                self._bar.close()
        if isinstance(value, KeyboardInterrupt | Stopped):
            say(
                f"{self._title}: {self._finished} of {self._total} tasks are finished, "
                f"{self._total - self._finished} are left."
            )


def money(cost: float | None, unknown: str = "unknown") -> str:
    return unknown if cost is None else f"{cost:.4f} USD"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1f} %"


def first_few(names: Sequence[str], most: int = SHOWN) -> str:
    """The first few, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def printable(text: str) -> str:
    """In one line, with nothing in it that a terminal would obey or that cannot be written: tests name themselves."""
    return one_line(" ".join(text.split()))


def one_line(text: str) -> str:
    """As it is, but for what a terminal would obey or that begins another line: names come from anywhere."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "\ufffd" for letter in text)


def pluralise(number: int, what: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
