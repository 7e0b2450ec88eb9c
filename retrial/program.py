"""What both programs share: exit codes, and errors as sentences."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

from retrial.errors import NotMeasured, UsageError

DONE = 0
NOT_MEASURED = 1
BAD_USAGE = 2
INTERRUPTED = 130


def run(name: str, module: str) -> int:
    """The exit code of that module's `main`; never a traceback for bad input or broken machinery."""
    try:
        main: Callable[[Sequence[str]], int] = importlib.import_module(module).main
        return main(sys.argv[1:])
    except UsageError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return BAD_USAGE
    except NotMeasured as error:
        print(f"{name}: nothing was done: {error}", file=sys.stderr)
        return NOT_MEASURED
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_MEASURED
    except OSError as error:
        print(f"{name}: a file cannot be read or written: {error}", file=sys.stderr)
        return BAD_USAGE if isinstance(error, NotADirectoryError | FileExistsError | PermissionError) else NOT_MEASURED
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted; everything finished is on disk, the same command goes on.", file=sys.stderr)
        return INTERRUPTED
