"""Sources of tasks, one folder each, with their graders. `make(context)` returns None for a name it does not know.

Imports `grading` and what is below; `agents` and the folders above may import it.
"""

from __future__ import annotations

import difflib

from retrial import registry
from retrial.errors import UsageError
from retrial.protocols import Benchmark, Context


def open_benchmark(context: Context) -> Benchmark:
    """The benchmark that `-b` names."""
    known: list[str] = []
    modules = [registry.module("benchmarks", part) for part in registry.names("benchmarks")]
    for module in sorted(modules, key=lambda module: getattr(module, "TAKES_ANY_FOLDER", False)):
        benchmark: Benchmark | None = module.make(context)
        if benchmark is not None:
            return benchmark
        known += module.known()
    close = difflib.get_close_matches(context.name, known, n=1)
    hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}."
    raise UsageError(f"Unknown benchmark '{context.name}', and no such file or folder; {hint}")
