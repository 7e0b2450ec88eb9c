"""Get a sandbox ready before anything is paid for, here or on another machine; remove what killed programs left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retrial.errors import EnvironmentMissing
from retrial.executors.limiter import sandboxes_at_once
from retrial.options import HarnessOptions, ReportOptions
from retrial.protocols import Context, Sandbox, WorkerNode
from retrial.sandboxes import choose
from retrial.sandboxes.throttled import ThrottledSandbox, UsedEnvironments
from retrial.system import cleanup, paths
from retrial.system.console import say
from retrial.system.locks import ResourceKind
from retrial.types import Environment, EnvironmentFacts, Task


def unsupported_tasks(tasks: Iterable[Task], sandbox: Sandbox) -> dict[str, str]:
    """Tasks whose toolchain is missing or too old here, with the reason."""
    reasons = {task.instance_id: sandbox.missing(task.environment) for task in tasks}
    return {instance_id: why for instance_id, why in reasons.items() if why}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedEnvironments:
    """Environments after they were prepared: the versions of their tools, or why they are not ready."""

    versions: Mapping[Environment, tuple[str, ...]] = field(default_factory=dict)
    """What the tools in them say of themselves."""
    broken: Mapping[Environment, str] = field(default_factory=dict)
    """Why nothing can be measured there."""

    def record(self, sandbox: Sandbox) -> dict[str, EnvironmentFacts]:
        """For run.json and results.json."""
        return {
            each.name: {"digest": sandbox.digest(each), "versions": list(said)} for each, said in self.versions.items()
        }


def prepare_all(
    sandbox: Sandbox, environments: Iterable[Environment], cache: Path, say: Callable[[str], None]
) -> PreparedEnvironments:
    """Build what is missing and see that the sandbox holds, before anything is paid for.

    Images that hold a task's tree are left to `ThrottledSandbox`: all of them at once would fill a disk.

    Raises: SandboxError when the sandbox itself is not to be trusted here.
    """
    from retrial.sandboxes.probe import probe

    versions, broken = dict[Environment, tuple[str, ...]](), dict[Environment, str]()
    for environment in sorted((each for each in environments if not each.tree), key=lambda each: each.name):
        try:
            sandbox.prepare(environment, say)
            versions[environment] = probe(sandbox, environment, cache)
        except EnvironmentMissing as error:
            # The other languages' tasks can be measured all the same.
            say(f"Environment {environment.name} is not ready: {error}")
            broken[environment] = str(error)
    return PreparedEnvironments(versions=versions, broken=broken)


def remove_orphans() -> None:
    """Remove what killed programs left, containers and cgroups among it."""
    cleanup.remove({ResourceKind.CONTAINERS: _containers, ResourceKind.CGROUPS: _cgroups})


def _containers(owner: str, place: str) -> Iterator[str]:
    from retrial.sandboxes import docker

    yield from docker.remove_orphans(owner, place)


def _cgroups(owner: str, place: str) -> Iterator[str]:
    from retrial.sandboxes.bwrap import limits

    yield from limits.remove_orphans(owner, Path(place))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSandbox:
    """The sandbox that was chosen here, for another machine; it can be pickled."""

    options: HarnessOptions | ReportOptions
    name: str
    environments: frozenset[Environment]
    """What is needed, and was found here; of images that hold a task's tree, one stands for all."""

    @classmethod
    def of(
        cls, options: HarnessOptions | ReportOptions, name: str, environments: Iterable[Environment]
    ) -> RemoteSandbox:
        wanted = set(environments)
        images = sorted((each for each in wanted if each.tree), key=lambda each: each.name)
        return cls(options=options, name=name, environments=frozenset(wanted.difference(images[1:])))

    def open(self, site: WorkerNode, used: UsedEnvironments, *, must_finish: bool = False) -> ThrottledSandbox:
        """Open it there. `used`: the driver's, which is told what is used. `must_finish`: jobs start also when all else
        stops.

        Raises: UsageError or SandboxError when what was found here is not there, or does not hold.
        """
        sandbox = choose(self.name, self.environments, Context(options=self.options), say)
        for why in filter(None, map(sandbox.missing, self.environments)):
            raise EnvironmentMissing(why)
        ready = prepare_all(sandbox, self.environments, paths.cache(), say)
        for why in ready.broken.values():
            raise EnvironmentMissing(why)
        at_once = min(site.slots, sandboxes_at_once(self.options.test_jobs, sandbox.machine()))
        environments = UsedEnvironments(driver=used)
        return ThrottledSandbox(sandbox, at_once, environments, None if must_finish else site.stop)
