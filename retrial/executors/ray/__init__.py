"""The machines of a Ray cluster that is there already: one actor on each works at many jobs, this process writes."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from retrial.errors import Stopped, UsageError
from retrial.executors.ray.dispatch import Dispatch
from retrial.executors.ray.node import Distant
from retrial.protocols import Context, Stop
from retrial.system import shutdown
from retrial.system.paths import PROJECT
from retrial.system.shutdown import interruptible

J = TypeVar("J")
R = TypeVar("R")
S = TypeVar("S")

SHIPPED = ("retrial", "docker", "tasks", "requirements-aider.txt")
"""What of this project nodes are sent: packages they have already, and all that is ours is of one version."""
CONNECT_SECONDS = 5.0
HELP = (
    "start one with 'ray start --head --disable-usage-stats' (see docs/scale.md), or name its head's host:port "
    "with --ray-address"
)


class Ray:
    def __init__(self, workers: int, most_slots: int, stop: Stop) -> None:
        self._workers, self._most_slots, self._stop = workers, most_slots, stop
        self._services: list[object] = []

    def share(self, service: S) -> S:
        self._services.append(service)
        return cast(S, _Shared(service, len(self._services) - 1))

    def run(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[tuple[J, R | Exception]]:
        """Raises: KeyboardInterrupt or Stopped when it was asked for, and what was under way has been handed out;
        UsageError when no machine of the cluster has anything to give."""
        from ray import cloudpickle

        maker = cloudpickle.dumps(work.elsewhere() if hasattr(work, "elsewhere") else lambda site: work)
        dispatch = Dispatch(maker, jobs, self._services, self._stop, workers=self._workers, most_slots=self._most_slots)
        with interruptible(self._stop), dispatch:
            for job, result in dispatch.results():
                if not isinstance(result, Stopped):
                    yield job, result
        self._stop.end()


class _Shared:
    """A service of this process: here it is itself, elsewhere whoever calls it asks us."""

    def __init__(self, service: object, number: int) -> None:
        self._service, self._number = service, number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def __reduce__(self) -> tuple[type[Distant], tuple[int]]:
        return Distant, (self._number,)


def make(context: Context) -> Ray:
    """Raises: UsageError when there is no cluster, or no package to reach one."""
    if importlib.util.find_spec("ray") is None:
        raise UsageError("Executor 'ray' needs the package 'ray': pip install -r requirements-ray.txt")
    options = context.options
    _connect(getattr(options, "ray_address", ""))
    return Ray(context.workers, getattr(options, "test_jobs", 0), context.stop or shutdown.Stop())


def _connect(address: str) -> None:
    handler, factory = signal.getsignal(signal.SIGTERM), logging.getLogRecordFactory()
    # Before the package is imported, which reads it then.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    if ray.is_initialized():
        return
    found = _found(address)
    try:
        ray.init(
            address=found,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"working_dir": str(PROJECT), "excludes": _left_out()},
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        why = str(error).strip().splitlines()[0]
        raise UsageError(f"The Ray cluster at {found} cannot be used: {why}") from error
    finally:
        # It brings its own: one ends the process, the other writes into every line that is logged.
        signal.signal(signal.SIGTERM, handler)
        logging.setLogRecordFactory(factory)


def _found(address: str) -> str:
    """Where the head of the cluster listens. Ray itself waits for minutes, then ends the process.

    Raises: UsageError.
    """
    from ray._private.services import canonicalize_bootstrap_address_or_die

    named = address or os.environ.get("RAY_ADDRESS") or "auto"
    if "://" in named or named == "local":
        raise UsageError(f"'{named}' is no address of a cluster's head: give host:port, and start on one of its nodes.")
    try:
        found: str = canonicalize_bootstrap_address_or_die(named)
        host, _, port = found.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (ConnectionError, OSError, ValueError) as error:
        where = "here" if named == "auto" else f"at {named}"
        raise UsageError(f"There is no Ray cluster {where}: {HELP}.") from error
    return found


def _left_out() -> list[str]:
    return [f"/{path.name}" for path in PROJECT.iterdir() if path.name not in SHIPPED]
