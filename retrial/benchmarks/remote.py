"""The same environment, benchmark and sandbox on another machine: what a worker there takes over and opens."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from retrial.benchmarks import open_benchmark
from retrial.errors import UsageError
from retrial.options import HarnessOptions, ReportOptions
from retrial.protocols import Benchmark, Context
from retrial.sandboxes.prepare import RemoteSandbox, remove_orphans
from retrial.system import paths
from retrial.system.secrets import MASKER
from retrial.types import Environment

VARIABLES = ("RETRIAL_CACHE", "RETRIAL_BASE_IMAGE")
"""Those of ours that mean the same on every machine, where they are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBenchmark:
    """The benchmark that was opened here, for another machine; it can be pickled."""

    options: HarnessOptions | ReportOptions
    source: str
    digest: str

    @classmethod
    def of(cls, options: HarnessOptions | ReportOptions, benchmark: Benchmark) -> RemoteBenchmark:
        about = benchmark.provenance
        return cls(options=options, source=about["source"], digest=about["digest"])

    def open(self) -> Benchmark:
        """Open it there. Raises: UsageError when it is not the same."""
        found = open_benchmark(Context(options=self.options, name=self.source))
        if found.provenance["digest"] != self.digest:
            raise UsageError(f"The benchmark {self.source} is another one there: bring both machines to one version.")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteParts:
    """All that a worker needs of this machine; it can be pickled. Its variables hold keys: never show it."""

    benchmark: RemoteBenchmark
    sandbox: RemoteSandbox
    folder: str
    """What paths in the options are relative to."""
    variables: Mapping[str, str] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    guesses: frozenset[str] = field(repr=False)

    @classmethod
    def of(
        cls,
        options: HarnessOptions | ReportOptions,
        benchmark: Benchmark,
        sandbox: str,
        environments: Iterable[Environment],
        variables: Iterable[str] = (),
    ) -> RemoteParts:
        """`sandbox` is the name of the one that was chosen here; `variables` are those that the work needs, beside
        `VARIABLES`."""
        found = {name: os.environ[name] for name in {*VARIABLES, *variables} if name in os.environ}
        return cls(
            benchmark=RemoteBenchmark.of(options, benchmark),
            sandbox=RemoteSandbox.of(options, sandbox, environments),
            folder=os.getcwd(),
            # There too, agents may not see what lies at home.
            variables={"RETRIAL_HOME": str(paths.home()), **found},
            secrets=MASKER.values,
            guesses=MASKER.guesses,
        )

    def enter(self) -> None:
        """Take over the environment. To be called first, by a process that does nothing else."""
        with suppress(OSError):
            os.chdir(self.folder)
        os.environ.update(self.variables)
        MASKER.add(*self.secrets, shortest=1)
        MASKER.guess(*self.guesses, shortest=1)
        sys.stderr = MASKER.redacting_stream(sys.stderr)
        remove_orphans()
