"""Download and build what a tier of tests needs, and print the seconds of each step.

    python -m tests.prepare test|all

What is not available is reported here, and tests that need it are skipped with the same reason.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from retrial import registry
from retrial.agents.aider import install
from retrial.errors import EnvironmentMissing, ModelError, SandboxError, UsageError
from retrial.language import Language
from retrial.models import weights
from retrial.system import paths
from tests.parts import PYTHON, a_sandbox, unavailable
from tests.support import image_task

Step = tuple[str, Callable[[], object]]


def main(tier: str) -> None:
    # The engine builds one image at a time; meanwhile the host can be made ready.
    with ThreadPoolExecutor() as pool:
        for _ in pool.map(run, (host_steps(), image_steps(tier))):
            pass


def refuse(reason: str) -> None:
    """Raise EnvironmentMissing unless the reason is empty."""
    if reason:
        raise EnvironmentMissing(reason)


def run(steps: Iterable[Step]) -> None:
    for name, work in steps:
        started = time.monotonic()
        try:
            work()
            outcome = "ready"
        except (ModelError, EnvironmentMissing, SandboxError, UsageError) as error:
            outcome = f"not available: {error}"
        print(f"== {name}: {outcome} ({time.monotonic() - started:.0f} s)", flush=True)


def host_steps() -> Iterator[Step]:
    yield "weights of the embedded model", lambda: weights.weights(paths.cache())
    yield "aider in an environment of its own", lambda: install.own(paths.cache(), _quiet)
    yield "bubblewrap", lambda: refuse(unavailable("bwrap", PYTHON))
    if unavailable("bwrap", PYTHON):
        return
    for language in languages():
        yield f"packages for {language.name} under bubblewrap", _prepare("bwrap", language)


def image_steps(tier: str) -> Iterator[Step]:
    yield "Docker engine", lambda: refuse(unavailable("docker", PYTHON))
    if unavailable("docker", PYTHON):
        return
    # `make test` builds no image but Python's and the small one of our own SWE-bench task.
    for language in languages():
        if tier == "all" or language.name == "python":
            yield f"image for {language.name}", _prepare("docker", language)
    yield "image of our SWE-bench task", image_task.image


def languages() -> list[Language]:
    return [registry.module("languages", name).make() for name in registry.names("languages")]


def _prepare(sandbox: str, language: Language) -> Callable[[], object]:
    def prepare() -> None:
        refuse(unavailable(sandbox, language.environment))
        a_sandbox(sandbox).prepare(language.environment, _quiet)

    return prepare


def _quiet(line: str) -> None:
    """Progress of a single step is not shown."""


if __name__ == "__main__":
    main(sys.argv[1])
