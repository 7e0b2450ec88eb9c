"""What both programs share: exit codes, and errors as sentences."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import Any

from retrial.errors import ExitCode, NotMeasured, Stopped, UsageError
from retrial.system import run_log
from retrial.system.console import command_line
from retrial.system.secrets import MASKER
from retrial.system.shutdown import signals

GARBAGE = 200_000
"""Objects more than before, and it is looked for."""
Parse = Callable[[Sequence[str]], tuple[Any, ...]]
"""Return what a command's `main` takes."""


def resume_hint() -> str:
    return f"Everything finished is on disk, the same command goes on: {command_line()}"


def run(name: str, parse: Parse, module: str) -> int:
    """Return the exit code of that module's `main`; never a traceback for bad input or broken machinery.

    The command line is parsed before the module is imported, so that `--help` and a typo take no time.
    """
    try:
        sys.unraisablehook = partial(_unraisable, name)
        for each in signals():
            signal.signal(each, _interrupted)
        return _run(name, parse, module)
    except KeyboardInterrupt:
        _tell_interrupted(name)
        return ExitCode.INTERRUPTED
    finally:
        _end_by_signal()


def _interrupted(number: int, frame: FrameType | None) -> None:
    """First signal: stop and report. Second signal: exit at once."""
    _end_by_signal()
    raise KeyboardInterrupt


def _tell_interrupted(name: str) -> None:
    print(f"\n{name}: interrupted. {resume_hint()}", file=sys.stderr)


def _unraisable(name: str, ignored: sys.UnraisableHookArgs) -> None:
    """An interrupt in a finalizer cannot be raised, and Python would go on with a traceback: end as if sent twice."""
    if isinstance(ignored.exc_value, KeyboardInterrupt):
        _tell_interrupted(name)
        signal.raise_signal(signal.SIGINT)
    else:
        sys.__unraisablehook__(ignored)


def _end_by_signal() -> None:
    for each in signals():
        # Of one terminal that is closed, both the shell and the kernel tell.
        signal.signal(each, signal.SIG_IGN if each is signal.SIGHUP else signal.SIG_DFL)


def _keep_secrets() -> None:
    """Whoever writes for people, be it a library, or Python itself with a traceback."""
    MASKER.guess_variables(os.environ)
    MASKER.learn_arguments(sys.argv[1:])
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or getattr(stream, "closed", False):
            # Its descriptor may be free: the next file that is opened must not take its place.
            stream = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
        setattr(sys, name, MASKER.redacting_stream(stream))


def _run(name: str, parse: Parse, module: str) -> int:
    # What is read at the start stays to the end, and may be a million of objects: to look among them for garbage as
    # often as is usual takes a tenth of the time.
    gc.set_threshold(GARBAGE, 50, 10)
    _keep_secrets()
    run_log.begin()
    try:
        return _main(parse, module)
    except UsageError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return ExitCode.BAD_USAGE
    except Stopped as error:
        print(f"{name}: stopped: {error}. {resume_hint()}", file=sys.stderr)
        return ExitCode.NOT_MEASURED
    except NotMeasured as error:
        print(f"{name}: nothing was done: {error}", file=sys.stderr)
        return ExitCode.NOT_MEASURED
    except OSError as error:
        print(f"{name}: a file cannot be read or written: {error}. {resume_hint()}", file=sys.stderr)
        is_usage = isinstance(error, NotADirectoryError | FileExistsError | PermissionError)
        return ExitCode.BAD_USAGE if is_usage else ExitCode.NOT_MEASURED


def _main(parse: Parse, module: str) -> int:
    """Raises: KeyboardInterrupt also where the interrupted code made another error of it."""
    try:
        parsed = parse(sys.argv[1:])
        # Not before: --help does without it.
        from retrial import registry

        main: Callable[..., int] = registry.load(module).main
        return main(*parsed)
    finally:
        if _is_interrupt(sys.exception()):
            raise KeyboardInterrupt


def _is_interrupt(error: BaseException | None) -> bool:
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
