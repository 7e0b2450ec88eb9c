"""The environment of a process that works for us on another machine: folder, variables, secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from retrial.system import paths
from retrial.system.secrets import MASKER

VARIABLES = ("RETRIAL_CACHE", "RETRIAL_BASE_IMAGE")
"""Those of ours that mean the same on every machine, where they are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnv:
    """What the process takes over from this one. Its variables hold keys: never show it."""

    folder: str
    """What paths in the options are relative to."""
    variables: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    guesses: frozenset[str] = field(repr=False)

    def enter(self) -> None:
        """Take it over. To be called first, by a process that does nothing else."""
        with suppress(OSError):
            os.chdir(self.folder)
        os.environ.update(self.variables)
        MASKER.add(*self.secrets, shortest=1)
        MASKER.guess(*self.guesses, shortest=1)
        sys.stderr = MASKER.redacting_stream(sys.stderr)


def current(variables: Iterable[str] = ()) -> WorkerEnv:
    """Return the environment of this process, with these variables beside `VARIABLES`."""
    found = {name: os.environ[name] for name in {*VARIABLES, *variables} if name in os.environ}
    return WorkerEnv(
        folder=os.getcwd(),
        # There too, agents may not see what lies at home.
        variables={"RETRIAL_HOME": str(paths.home()), **found},
        secrets=MASKER.values,
        guesses=MASKER.guesses,
    )
