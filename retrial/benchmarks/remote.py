"""The same benchmark and sandbox on another machine: what a worker there opens for itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from retrial.benchmarks import open_benchmark
from retrial.errors import UsageError
from retrial.executors import worker_env
from retrial.executors.worker_env import WorkerEnv
from retrial.options import HarnessOptions, ReportOptions
from retrial.protocols import Benchmark, Context
from retrial.sandboxes.prepare import RemoteSandbox, remove_orphans
from retrial.types import Environment


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
    """All that a worker needs of this machine; it can be pickled."""

    env: WorkerEnv
    benchmark: RemoteBenchmark
    sandbox: RemoteSandbox

    @classmethod
    def of(
        cls,
        options: HarnessOptions | ReportOptions,
        benchmark: Benchmark,
        sandbox: str,
        environments: Iterable[Environment],
        variables: Iterable[str] = (),
    ) -> RemoteParts:
        """`sandbox` is the name of the one that was chosen here; `variables` are those that the work needs."""
        return cls(
            env=worker_env.current(variables),
            benchmark=RemoteBenchmark.of(options, benchmark),
            sandbox=RemoteSandbox.of(options, sandbox, environments),
        )

    def enter(self) -> None:
        """Take over the environment. To be called first, by a process that does nothing else."""
        self.env.enter()
        remove_orphans()
