"""A sandbox as a program uses it: so many jobs at once, and images that hold a task's tree when they are needed."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Mapping

from retrial.chat import Backoff, Overload
from retrial.errors import EnvironmentMissing, SandboxError, Stopped
from retrial.executors.limiter import FairLimiter, Slot
from retrial.protocols import Sandbox, Stop
from retrial.system import console, host, paths, shutdown
from retrial.types import Environment, EnvironmentFacts, Execution, Job

PAUSE = 5.0
"""Seconds before a job is tried again whose sandbox could not be had: an engine that restarts takes as long."""
HOPELESS = 3
"""So many jobs in a row were lost, or found the machine busy, though each was tried twice: the next ones are tried
once."""
KILLED = (None, 128 + signal.SIGKILL, 128 + signal.SIGTERM)
"""Exit statuses of jobs that somebody has killed: themselves, or whoever ends us too, or a kernel without memory."""
HEARING = 1.0
"""Seconds in which a signal that our children had reaches us."""
_LOG = logging.getLogger(__name__)


class UsedEnvironments:
    """What a program knows of the environments that its jobs use: broken ones, and exact versions."""

    def __init__(
        self,
        broken: Mapping[Environment, str] | None = None,
        say: Callable[[str], None] = console.say,
        driver: UsedEnvironments | None = None,
    ) -> None:
        """`driver` is the record on the driver's side, which is updated too."""
        self.broken = dict(broken or {})
        """Environment → reason."""
        self.say = say
        self._driver = driver
        self._digests: dict[Environment, str] = {}
        self._others: dict[Environment, set[str]] = {}
        """What other machines use that is not that."""

    def refuse_broken(self, environment: Environment) -> None:
        """Raises: EnvironmentMissing."""
        if environment in self.broken:
            raise EnvironmentMissing(self.broken[environment])

    def digest(self, environment: Environment) -> str | None:
        """Its version; None before its first use."""
        return self._digests.get(environment)

    def note(self, environment: Environment, digest: str) -> str:
        """What is used here, or elsewhere on our behalf; returns what was used first."""
        if environment not in self._digests and self._driver:
            self._driver.note(environment, digest)
        first = self._digests.setdefault(environment, digest)
        others = self._others.setdefault(environment, set())
        if digest != first and digest not in others:
            others.add(digest)
            self.say(f"{console.NOTE}{environment.name} is not the same on all machines: {first}, and {digest}")
        return first

    def record(self) -> dict[str, EnvironmentFacts]:
        """Of all that was used so far, for run.json and results.json."""
        used = sorted(self._digests.items(), key=lambda item: item[0].name)
        found: dict[str, EnvironmentFacts] = {}
        for environment, digest in used:
            others = self._others.get(environment)
            found[environment.name] = {"digest": digest, "versions": [], **({"also": sorted(others)} if others else {})}
        return found


class ThrottledSandbox:
    """A sandbox that runs at most so many jobs at once, and brings images that hold a task's tree when needed.

    Fewer at once while it struggles or memory is short. A job whose sandbox failed is tried once more, and so is one
    that was killed, or that ran out of time on a busy machine, for that need not be its own doing; nothing else that
    has run is run again.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        at_once: int,
        environments: UsedEnvironments | None = None,
        stop: Stop | None = None,
        pause: float = PAUSE,
    ) -> None:
        """`stop`: what is asked to stop before a job is begun; None: jobs run all the same."""
        self.name = sandbox.name
        self.environments = environments or UsedEnvironments()
        self._sandbox = sandbox
        self.unavailable, self.missing, self.state = sandbox.unavailable, sandbox.missing, sandbox.state
        self.prepare, self.machine, self.describe = sandbox.prepare, sandbox.machine, sandbox.describe
        self._stop = stop or shutdown.Stop()
        self._turns = FairLimiter(at_once, self._stop, "testing", host.has_room)
        self._pause, self._lost, self._ran, self._in_vain = pause, 0, 0, 0
        self._counting = threading.Lock()
        self._bringing: dict[Environment, threading.Lock] = {}
        self._probing = threading.Lock()
        self._holds = False

    def digest(self, environment: Environment) -> str:
        self.environments.refuse_broken(environment)
        # Asked for every verdict; an environment does not change while a program runs.
        known = self.environments.digest(environment)
        return known or self.environments.note(environment, self._digest(environment))

    @property
    def slowed(self) -> str:
        """For people: why there are fewer at once than might be; empty when there are not."""
        return self._turns.slowed

    def run(self, job: Job) -> Execution:
        if not job.environment.tree:
            return self._in_turn(job)
        from retrial.sandboxes.docker import image_cache

        # An image comes while other jobs run, and stays from then on until this one has run.
        with image_cache.held(job.environment.image):
            self.ensure_image(job.environment)
            return self._in_turn(job)

    def _in_turn(self, job: Job) -> Execution:
        first, ran = self._turns.begin(), self._ran
        turn: Slot | None = first
        well = False
        try:
            try:
                execution = self._run(job)
            except EnvironmentMissing:
                raise
            except SandboxError as error:
                if self._lost >= HOPELESS:
                    raise
                turn = None
                turn = self._next_try(first, error, others_ran=self._ran > ran)
                with self._counting:
                    self._lost += 1
                execution = self._run(job)
            if turn is not None and self._in_vain < HOPELESS and host.may_be_load(job.limits, execution):
                _LOG.warning("a job ran out of time on a busy machine, and is run once more, alone")
                waiting, turn = turn, None
                turn = self._turns.alone(waiting)
                execution = self._run(job)
                with self._counting:
                    self._in_vain = self._in_vain + 1 if host.may_be_load(job.limits, execution) else 0
            well = True
            with self._counting:
                self._lost = 0
                self._ran += 1
            return execution
        finally:
            if turn is not None:
                self._turns.end(turn, well=well)

    def _next_try(self, turn: Slot, error: SandboxError, *, others_ran: bool) -> Slot | None:
        """If others ran in the meantime, it is this job's own trouble, which is not to slow them down."""
        _LOG.warning("a sandbox could not be had, its job is tried once more: %s", error)
        load = Overload.NONE if others_ran else Overload.BROKEN
        trouble = Backoff(load=load, why=f"{self.name} struggles", seconds=self._pause, everybody=not others_ran)
        return self._turns.next_try(turn, trouble)

    def _run(self, job: Job) -> Execution:
        execution = self._run_once(job)
        if execution.exit_code not in KILLED or execution.timed_out or execution.oom:
            return execution
        if self._stop.wait(HEARING):
            # Who ends a whole tree of processes ends tests too: what they came to says nothing of what was tested.
            raise Stopped(self._stop.reason)
        _LOG.warning("a job was killed, and is run once more", extra={"exit_code": execution.exit_code})
        return self._run_once(job)

    def _run_once(self, job: Job) -> Execution:
        execution = self._sandbox.run(job)
        ended = {"exit_code": execution.exit_code, "timed_out": execution.timed_out, "oom": execution.oom}
        _LOG.debug("job", extra={"in": job.environment.name, "seconds": round(execution.seconds, 3), **ended})
        return execution

    def _digest(self, environment: Environment) -> str:
        try:
            return self._sandbox.digest(environment)
        except EnvironmentMissing:
            if not environment.tree:
                raise
        self.ensure_image(environment)
        return self._sandbox.digest(environment)

    def ensure_image(self, environment: Environment) -> None:
        """Bring the image that holds a task's tree, unless it is there; other environments were made ready before.

        Raises: EnvironmentMissing, and the next time without trying; SandboxError when the sandbox does not hold.
        """
        if not environment.tree:
            return
        self._stop.raise_if_set()
        with self._bringing.setdefault(environment, threading.Lock()):
            self.environments.refuse_broken(environment)
            try:
                self._sandbox.prepare(environment, self.environments.say)
            except EnvironmentMissing as error:
                self.environments.broken[environment] = str(error)
                raise
            now = self._sandbox.digest(environment)
            if self.environments.digest(environment) not in (None, now):
                # Verdicts are already being kept under the old name.
                raise SandboxError(f"The image {environment.image} is another one than before: run this once more.")
            self.environments.note(environment, now)
        self._probe(environment)

    def _probe(self, environment: Environment) -> None:
        from retrial.sandboxes.probe import probe_walls

        with self._probing:
            if not self._holds:
                probe_walls(self._sandbox, environment, paths.cache())
                self._holds = True
