"""A sandbox as a program uses it: so many jobs at once, and images that hold a task's tree when they are needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from retrial import paths, progress
from retrial.errors import EnvironmentMissing, SandboxError
from retrial.protocols import Sandbox
from retrial.types import Environment, Execution, Job


class Bounded:
    """A sandbox that runs at most so many jobs at once, and brings images that hold a task's tree when needed."""

    def __init__(
        self,
        sandbox: Sandbox,
        at_once: int,
        broken: Mapping[Environment, str] | None = None,
        say: Callable[[str], None] = progress.say,
        cache: Path | None = None,
    ) -> None:
        self.name = sandbox.name
        self._sandbox = sandbox
        self._slots = threading.Semaphore(at_once)
        self._broken = dict(broken or {})
        self._digests: dict[Environment, str] = {}
        self._say = say
        self._cache = cache or paths.cache()
        self._bringing: dict[Environment, threading.Lock] = {}
        self._probing = threading.Lock()
        self._holds = False

    def unavailable(self, environments: Iterable[Environment]) -> str:
        return self._sandbox.unavailable(environments)

    def missing(self, environment: Environment) -> str:
        return self._sandbox.missing(environment)

    def state(self, environment: Environment) -> str:
        return self._sandbox.state(environment)

    def prepare(self, environment: Environment, say: Callable[[str], None]) -> None:
        self._sandbox.prepare(environment, say)

    def digest(self, environment: Environment) -> str:
        if environment in self._broken:
            raise EnvironmentMissing(self._broken[environment])
        # Asked for every verdict; an environment does not change while a program runs.
        if environment not in self._digests:
            self._digests[environment] = self._digest(environment)
        return self._digests[environment]

    def record(self) -> dict[str, object]:
        """Of all that was used so far, for run.json and results.json."""
        used = sorted(self._digests.items(), key=lambda item: item[0].name)
        return {environment.name: {"digest": digest, "versions": []} for environment, digest in used}

    def describe(self) -> Mapping[str, str]:
        return self._sandbox.describe()

    def run(self, job: Job) -> Execution:
        if not job.environment.tree:
            with self._slots:
                return self._sandbox.run(job)
        from retrial.sandboxes import _shelf

        # An image comes while other jobs run, and stays from then on until this one has run.
        with _shelf.held(job.environment.image):
            self.have(job.environment)
            with self._slots:
                return self._sandbox.run(job)

    def _digest(self, environment: Environment) -> str:
        try:
            return self._sandbox.digest(environment)
        except EnvironmentMissing:
            if not environment.tree:
                raise
        self.have(environment)
        return self._sandbox.digest(environment)

    def have(self, environment: Environment) -> None:
        """Bring the image that holds a task's tree, unless it is there; other environments were made ready before.

        Raises: EnvironmentMissing, and the next time without trying; SandboxError when the sandbox does not hold.
        """
        if not environment.tree:
            return
        with self._bringing.setdefault(environment, threading.Lock()):
            if environment in self._broken:
                raise EnvironmentMissing(self._broken[environment])
            try:
                self._sandbox.prepare(environment, self._say)
            except EnvironmentMissing as error:
                self._broken[environment] = str(error)
                raise
            now = self._sandbox.digest(environment)
            before = self._digests.setdefault(environment, now)
            if before != now:
                # Verdicts are already being kept under the old name.
                raise SandboxError(f"The image {environment.image} is another one than before: run this once more.")
        self._probe(environment)

    def _probe(self, environment: Environment) -> None:
        from retrial.sandboxes._probe import probe_walls

        with self._probing:
            if not self._holds:
                probe_walls(self._sandbox, environment, self._cache)
                self._holds = True
