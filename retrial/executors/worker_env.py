"""The same work on another machine: what is bound to a machine is made anew there, and seen to be the same."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from retrial.benchmarks import open_benchmark
from retrial.errors import EnvironmentMissing, UsageError
from retrial.executors.limiter import sandboxes_at_once
from retrial.models.endpoints import OPENAI, find
from retrial.options import HarnessOptions, ReportOptions
from retrial.protocols import Benchmark, Context, Site
from retrial.sandboxes import Bounded, choose, make_ready
from retrial.system import cleanup, paths
from retrial.system.console import say
from retrial.system.secrets import KNOWN
from retrial.types import Environment

VARIABLES = ("RETRIAL_CACHE", "RETRIAL_BASE_IMAGE")
"""Those of ours that mean the same on every machine, where they are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """What to make it from. Its variables hold keys: it is for who is to do the work, and for nobody's eyes."""

    options: HarnessOptions | ReportOptions
    source: str
    """Names the benchmark."""
    digest: str
    """Of the benchmark."""
    sandbox: str
    """Which one was chosen."""
    environments: frozenset[Environment]
    """What is needed, and was found here; of images that hold a task's tree, one stands for all."""
    folder: str
    """What paths in the options are relative to."""
    variables: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    guesses: frozenset[str] = field(repr=False)

    def arrive(self) -> None:
        """To be called first, by a process that does nothing else."""
        with suppress(OSError):
            os.chdir(self.folder)
        os.environ.update(self.variables)
        KNOWN.learn(*self.secrets, shortest=1)
        KNOWN.guess(*self.guesses, shortest=1)
        sys.stderr = KNOWN.masking(sys.stderr)
        cleanup.remove()

    def open(self) -> Benchmark:
        """Raises: UsageError when it is not the same."""
        found = open_benchmark(Context(options=self.options, name=self.source))
        if found.provenance["digest"] != self.digest:
            raise UsageError(f"The benchmark {self.source} is another one there: bring both machines to one version.")
        return found

    def bounded(self, site: Site, used: Bounded, *, finishing: bool = False) -> Bounded:
        """`used`: the driver's, which is told what is used. `finishing`: jobs are begun also when all else stops.

        Raises: UsageError or SandboxError when what was found here is not there, or does not hold.
        """
        sandbox = choose(self.sandbox, self.environments, Context(options=self.options), say)
        for why in filter(None, map(sandbox.missing, self.environments)):
            raise EnvironmentMissing(why)
        ready = make_ready(sandbox, self.environments, paths.cache(), say)
        for why in ready.broken.values():
            raise EnvironmentMissing(why)
        at_once = min(site.slots, sandboxes_at_once(self.options.test_jobs, sandbox.machine()))
        return Bounded(sandbox, at_once, stop=None if finishing else site.stop, noted=used.note)


def elsewhere(
    options: HarnessOptions | ReportOptions,
    benchmark: Benchmark,
    sandbox: str,
    environments: Iterable[Environment],
    models: Iterable[str] = (),
) -> Elsewhere:
    """The same as here."""
    given = options.agent_env if isinstance(options, HarnessOptions) else ()
    names = {*VARIABLES, *given, *(name for model in models for name in _variables(model))}
    found = {name: os.environ[name] for name in names if name in os.environ}
    wanted = set(environments)
    images = sorted((each for each in wanted if each.tree), key=lambda each: each.name)
    return Elsewhere(
        options=options,
        source=benchmark.provenance["source"],
        digest=benchmark.provenance["digest"],
        sandbox=sandbox,
        environments=frozenset(wanted.difference(images[1:])),
        folder=os.getcwd(),
        # There too, what lies at home is not for agents' eyes.
        variables={"RETRIAL_HOME": str(paths.home()), **found},
        secrets=KNOWN.values,
        guesses=KNOWN.guesses,
    )


def _variables(model: str) -> tuple[str, ...]:
    """Where its key and its address are looked for."""
    provider = find(model.removeprefix("litellm/").partition("/")[0]) or OPENAI
    return (*provider.keys, *provider.bases)
