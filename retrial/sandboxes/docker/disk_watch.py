"""Keeps a container with a writable layer from filling the disk that it shares with everything else.

Most engines cannot limit such a layer, and a limit for each file is none for all of them. So the engine is asked how
large the layer is, again and again, and the container is ended when it is too large.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from docker.api import APIClient
from docker.errors import APIError

from retrial.errors import SandboxError

SECONDS = 2.0
"""Between two questions; the fastest disks take a few gigabytes in that time."""
FULL = "\nThe job wrote more than {megabytes} MB into its image, and was ended.\n"

Engine = Callable[[], AbstractContextManager[APIClient]]


class DiskWatch:
    """Watches one container in a thread."""

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
            while not self._over.wait(SECONDS):
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
