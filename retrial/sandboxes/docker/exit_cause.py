"""What ended a container before its supervisor finished: the job itself, this program, or something outside.

What a job does to itself is its own failure; it must not be able to pass for ours. So the engine is asked, and only
what the engine has seen from outside counts: nothing in a container can make it write `kill` into its events.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from docker.api import APIClient
from docker.errors import NotFound
from requests.exceptions import ConnectionError, ReadTimeout

from retrial.errors import SandboxError

SETTLE_SECONDS = 60
"""For the engine to write down what the end of a stream has told us; to unmount what a job has written takes time."""
GONE = "The container was killed from outside: somebody removed it while the job ran."


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
