"""What tests share: a home of their own, real sandboxes, and the rule for parts that are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retrial import paths, registry
from retrial.protocols import Context, Sandbox
from retrial.types import Environment
from tests import clusters
from tests.clusters import TwoNodes

PROJECT = Path(__file__).resolve().parent.parent
PYTHON = Environment(name="python", image="python", language="python")


def require(name: str, why_not: str) -> None:
    """Skip for a part that cannot be had here, or fail where RETRIAL_REQUIRE (as in CI) names it."""
    if not why_not:
        return
    if name in os.environ.get("RETRIAL_REQUIRE", "").split(","):
        pytest.fail(f"{name} is required here: {why_not}")
    pytest.skip(f"{name}: {why_not}")


@pytest.fixture(params=registry.names("sandboxes"))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Every sandbox found, ready to run Python jobs."""
    return ready(request.param)


@pytest.fixture
def bwrap() -> Sandbox:
    """The quick one, for tests that need any real sandbox."""
    return ready("bwrap")


def ready(name: str, environment: Environment = PYTHON) -> Sandbox:
    part: Sandbox = registry.module("sandboxes", name).make(Context(options=None))
    require(name, part.unavailable((environment,)))
    part.prepare(environment, lambda text: None)
    return part


@pytest.fixture(scope="session")
def cluster() -> Iterator[TwoNodes]:
    require("ray", clusters.unavailable())
    with clusters.two_nodes() as started:
        yield started


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a cache of the test's own."""
    own = own_cache(tmp_path / "cache")
    monkeypatch.setenv("RETRIAL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("RETRIAL_CACHE", str(own))
    return tmp_path / "home"


def own_cache(folder: Path) -> Path:
    """One in which only what was fetched is shared with others."""
    folder.mkdir()
    for fetched in ("weights", "stores", "aider"):
        shared = paths.cache() / fetched
        shared.mkdir(parents=True, exist_ok=True)
        (folder / fetched).symlink_to(shared.resolve())
    return folder


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(home: Path) -> Run:
    """Runs harness.py or report.py as a user does: a process of its own."""

    def program(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(PROJECT / script), *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **environment}, cwd=home.parent, timeout=600
        )

    return program
