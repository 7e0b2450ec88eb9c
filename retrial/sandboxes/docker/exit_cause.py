"""What ended a container before its supervisor finished: the job itself, this program, or something outside.

What a job does to itself is its own failure; it must not be able to pass for ours. So the engine is asked, and only
what the engine has seen from outside counts: nothing in a container can make it write `kill` into its events.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from typing import Any

from docker.api import APIClient
from docker.errors import APIError, NotFound
from requests.exceptions import ConnectionError, ReadTimeout

from retrial.errors import SandboxError

SETTLE_SECONDS = 60
"""For the engine to write down what the end of a stream has told us; to unmount what a job has written takes time."""
GONE = "The container was killed from outside: somebody removed it while the job ran."
WATCH_SECONDS = 2.0
"""Between two questions; the fastest disks take a few gigabytes in that time."""
FULL = "\nThe job wrote more than {megabytes} MB into its image, and was ended.\n"

Engine = Callable[[], AbstractContextManager[APIClient]]


def by_memory(client: APIClient, container: str) -> bool:
    """Raises: SandboxError when the container is not there any more."""
    try:
        return bool(client.inspect_container(container)["State"].get("OOMKilled"))
    except NotFound as error:
        raise SandboxError(GONE) from error


def refuse_if_from_outside(client: APIClient, container: str, patience: int = SETTLE_SECONDS) -> None:
    """Raises: SandboxError unless the container ended by itself."""
    try:
        client.wait(container, timeout=patience)
        seen = client.inspect_container(container)
    except NotFound as error:
        raise SandboxError(GONE) from error
    except (ReadTimeout, ConnectionError) as error:
        # A container's streams end with the container, even if all that is in it closes them.
        raise SandboxError("The connection to the engine broke while the job ran.") from error
    _refuse_killed(client, seen)


def _refuse_killed(client: APIClient, seen: Mapping[str, Any]) -> None:
    """Of a container that has ended, what the engine has seen up to that end; by the engine's clock."""
    begun, ended = int(_seconds(seen["Created"])), _seconds(seen["State"]["FinishedAt"])
    about = {"container": seen["Id"], "event": ["kill", "die"]}
    listen: Any = client.events
    with closing(listen(since=begun, until=int(ended + SETTLE_SECONDS), filters=about, decode=True)) as events:
        for event in events:
            if event["Action"] == "die":
                return
            if event["Action"].startswith("kill"):
                signal = event.get("Actor", {}).get("Attributes", {}).get("signal", "") or "unknown"
                raise SandboxError(f"The container was killed from outside while the job ran (signal {signal}).")
    # Events live in the engine's memory, and every end is one of them.
    raise SandboxError("The engine was restarted while the job ran.")


def _seconds(stamp: str) -> float:
    """Of an engine's time stamp, which has nine digits after the point or none, and may have a zone."""
    return datetime.datetime.fromisoformat(stamp).timestamp()


class DiskWatch:
    """Sees to it that a container with a writable layer does not fill the disk that it shares with everybody.

    Most engines cannot limit such a layer, and a limit for each file is none for all of them. So the engine is asked,
    in a thread, how large the layer is, again and again, and the container is ended when it is too large.
    """

    def __init__(self, engine: Engine, container: str, megabytes: int) -> None:
        self._engine, self._container, self._most = engine, container, megabytes << 20
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.full = False
        """It was ended for that."""

    def __enter__(self) -> DiskWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        try:
            while not self._over.wait(WATCH_SECONDS):
                with self._engine() as client:
                    if self._written(client) > self._most:
                        self.full = True
                        client.kill(self._container)
                        return
        except (SandboxError, APIError):
            # The code that talks to the container notices that too, and reports what it means.
            return

    def _written(self, client: APIClient) -> int:
        found = client.containers(size=True, filters={"name": self._container})
        return max((int(each.get("SizeRw", 0)) for each in found), default=0)
