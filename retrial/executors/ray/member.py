"""One machine of a Ray cluster, and the actor that works on it for us."""

from __future__ import annotations

import logging
import math
import pickle
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from retrial.executors.ray.node import Halt, Node, NodeJob, ServiceReply

RESOURCE = "retrial_sandbox"
"""What whoever starts a node may declare it to have; else one for each CPU."""
AHEAD = 2
"""More jobs than sandboxes: some get ready while the others' tests run."""
THREADS = 4
"""Of the actor, for what is given and taken; jobs have their own."""

News = Callable[[Future[Any]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """A living node as the cluster knows it."""

    id: str
    name: str
    resource: str
    slots: int
    """How many sandboxes at once it is asked for."""


def declare(nodes: Iterable[Mapping[str, Any]]) -> bool:
    """Whether any of them is said to have sandboxes: then the others are not asked for any."""
    return any(node["Alive"] and node["Resources"].get(RESOURCE) for node in nodes)


def machines(nodes: Iterable[Mapping[str, Any]], most_slots: int, *, declared: bool) -> list[ClusterNode]:
    """Those that have something to give, out of what Ray says of its nodes; 0 slots at most is any number."""
    alive = [node for node in nodes if node["Alive"]]
    resource = RESOURCE if declared else "CPU"
    found = []
    for node in alive:
        slots = int(node["Resources"].get(resource, 0))
        name = f"{node['NodeManagerHostname']}/{node['NodeID'][:6]}"
        if slots:
            wanted = min(slots, most_slots or slots)
            found.append(ClusterNode(id=node["NodeID"], name=name, resource=resource, slots=wanted))
    return found


class Member:
    """Our actor on one machine; what is meant for it goes out together."""

    def __init__(self, machine: ClusterNode) -> None:
        self.machine = machine
        self.jobs: dict[int, NodeJob] = {}
        self.calls = 0
        """Of services, under way for it."""
        self.ready = self.gone = False
        self.waits_since: float | None = time.monotonic()
        """For its machine's slots; None when it has them."""
        self._parcel: list[NodeJob | ServiceReply | Halt] = []
        self._actor = _actor(machine)

    def arrive(self, heard: News) -> None:
        self._actor.here.remote().future().add_done_callback(heard)

    def begin(self, maker: bytes, heard: News) -> None:
        self.waits_since = None
        level = logging.getLogger("retrial").level
        self._actor.begin.remote(maker, self.machine.slots, level).future().add_done_callback(heard)

    def listen(self, heard: News) -> None:
        self._actor.take.remote().future().add_done_callback(heard)

    def free(self, workers: int, slots: int) -> int:
        """How many more jobs it can have, if so many workers are shared out over all those slots."""
        share = math.ceil(workers * self.machine.slots / slots)
        return max(self.machine.slots + AHEAD, share) - len(self.jobs) if self.ready else 0

    def give(self, job: NodeJob) -> None:
        self.jobs[job.number] = job
        self.send(job)

    def send(self, each: NodeJob | ServiceReply | Halt) -> None:
        self._parcel.append(each)

    def flush(self, heard: News) -> None:
        if self._parcel:
            parcel, self._parcel = pickle.dumps(self._parcel), []
            self._actor.give.remote(parcel).future().add_done_callback(heard)

    def dismiss(self) -> None:
        """Let it end by itself: it has nothing more to do."""
        self._actor.end.remote()

    def kill(self) -> None:
        """It may be there still, and merely out of our sight."""
        import ray

        ray.kill(self._actor)


def _actor(machine: ClusterNode) -> Any:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    own = machine.resource == "CPU"
    return (
        ray.remote(Node)
        .options(
            num_cpus=machine.slots if own else 0,
            resources={} if own else {machine.resource: machine.slots},
            scheduling_strategy=NodeAffinitySchedulingStrategy(machine.id, soft=False),
            max_concurrency=THREADS,
            max_restarts=0,
            max_task_retries=0,
        )
        .remote()
    )
