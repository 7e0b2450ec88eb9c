"""Fixtures that tests share: a home of their own, real sandboxes, the two programs."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retrial import registry
from retrial.protocols import Sandbox
from retrial.system import paths
from tests.parts import ready, require
from tests.support import clusters
from tests.support.clusters import TwoNodes
from tests.tiers import (
    pytest_collection_modifyitems,
    pytest_terminal_summary,
    pytest_testnodedown,
    pytest_xdist_make_scheduler,
    refuse_unknown,
)

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_terminal_summary",
    "pytest_testnodedown",
    "pytest_xdist_make_scheduler",
]
PROJECT = Path(__file__).resolve().parent.parent
RUN_CACHE = "RETRIAL_TEST_CACHE"


@pytest.fixture(params=registry.names("sandboxes"))
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Every sandbox found, ready to run Python jobs."""
    return ready(request.param)


@pytest.fixture
def bwrap() -> Sandbox:
    """The quick one, for tests that need any real sandbox."""
    return ready("bwrap")


@pytest.fixture
def root() -> None:
    """For tests of what only root does, such as giving its files to another user."""
    require("root", "" if os.geteuid() == 0 else "the tests run as an ordinary user")


@pytest.fixture
def inheritable(tmp_path: Path) -> Iterator[int]:
    """A descriptor that every child process would inherit, as a shell may pass one (`9<file`)."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    yield descriptor
    os.close(descriptor)


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
    """Make a cache for one test. It shares only downloads and the record of probes that passed."""
    folder.mkdir()
    fetched = [paths.cache() / name for name in ("weights", "stores", "aider")]
    for shared in (*fetched, run_cache() / "probes"):
        shared.mkdir(parents=True, exist_ok=True)
        (folder / shared.name).symlink_to(shared.resolve())
    return folder


def run_cache() -> Path:
    """Return the cache of this test run, which all workers share: for tests that are not about caches."""
    return Path(os.environ[RUN_CACHE])


def pytest_configure(config: pytest.Config) -> None:
    refuse_unknown()
    if not hasattr(config, "workerinput"):
        os.environ[RUN_CACHE] = tempfile.mkdtemp(prefix="retrial-tests-")
        config.add_cleanup(functools.partial(shutil.rmtree, run_cache(), ignore_errors=True))


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
