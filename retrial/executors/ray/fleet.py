"""Who of a Ray cluster works for us: machines are found, waited for, left out, and done without when they are lost.

On each of them an actor works for us, a member of the fleet.
"""

from __future__ import annotations

import logging
import math
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from retrial.errors import UsageError
from retrial.executors.ray.node import Halt, Node, NodeJob, ServiceReply
from retrial.system.console import NOTE, say

RESOURCE = "retrial_sandbox"
"""What whoever starts a node may declare it to have; else one for each CPU."""
AHEAD = 2
"""More jobs than sandboxes: some get ready while the others' tests run."""
THREADS = 4
"""Of the actor, for what is given and taken; jobs have their own."""
LOSSES = 3
"""A machine on which our actor was lost so often is left alone."""
LOOK_SECONDS = 3.0
"""How often new machines are looked for."""
PATIENCE_SECONDS = 10.0
"""For slots that others have, before it is said."""
REASON_CHARACTERS = 300

_LOG = logging.getLogger(__name__)

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


class Fleet:
    """All is done by the one thread that calls it; what Ray says in others comes to that thread by `later`."""

    def __init__(
        self,
        maker: bytes,
        most_slots: int,
        *,
        later: Callable[[Callable[[], object]], None],
        hear: Callable[[Member, Any], None],
        lose: Callable[[Member], None],
    ) -> None:
        """`hear` gets what members say; `lose`, those that are lost."""
        self._maker, self._most_slots = maker, most_slots
        self._later, self._hear, self._lose = later, hear, lose
        self._members: dict[str, Member] = {}
        self._left_out: dict[str, str] = {}
        self._losses = Counter[str]()
        self._looked = -LOOK_SECONDS
        self._declared = False

    @property
    def members(self) -> list[Member]:
        return list(self._members.values())

    @property
    def why_none(self) -> str:
        return "; ".join(self._left_out.values()) or "all of them are lost"

    def look_around(self) -> None:
        """Raises: UsageError when there is nobody and never was."""
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        import ray

        nodes = ray.nodes()
        # Once and for all: of those who have declared them, all may be lost.
        self._declared = self._declared or declare(nodes)
        found = machines(nodes, self._most_slots, declared=self._declared)
        if not (found or self._members or self._losses or self._left_out):
            raise UsageError(f"No node of the Ray cluster has CPUs or '{RESOURCE}' slots to give: see docs/scale.md.")
        for machine in found:
            if machine.id not in self._members and machine.id not in self._left_out:
                self._enlist(machine)
        for member in self._members.values():
            self._complain(member, now)

    def flush(self) -> None:
        """Send what is meant for them."""
        for member in self._members.values():
            member.flush(self._then(lambda member, _: None, member))

    def trust(self, member: Member) -> None:
        """It has finished a job."""
        self._losses.pop(member.machine.id, None)

    def dismiss(self) -> None:
        for member in self._members.values():
            member.dismiss()
        self._members.clear()

    def _enlist(self, machine: ClusterNode) -> None:
        member = self._members[machine.id] = Member(machine)
        member.arrive(self._then(self._arrived, member))

    def _arrived(self, member: Member, _: None) -> None:
        member.begin(self._maker, self._then(self._begun, member))
        member.listen(self._then(self._taken, member))

    def _begun(self, member: Member, why: str) -> None:
        if why:
            self._leave_out(member, why)
            return
        member.ready = True
        _LOG.info("a node is ready", extra={"node": member.machine.name, "slots": member.machine.slots})

    def _taken(self, member: Member, events: list[bytes]) -> None:
        member.listen(self._then(self._taken, member))
        for event in map(pickle.loads, events):
            self._hear(member, event)

    def _then(self, do: Callable[[Member, Any], object], member: Member) -> News:
        """What to do with its answer; `do` is not called when it is lost."""
        return lambda future: self._later(partial(self._answered, do, member, future))

    def _answered(self, do: Callable[[Member, Any], object], member: Member, future: Future[Any]) -> None:
        from ray.exceptions import RayTaskError

        error = future.exception()
        if member.gone:
            return
        if error is None:
            do(member, future.result())
        elif isinstance(error, RayTaskError):
            # It is there, and broke down over what it was asked to do.
            self._leave_out(member, f"{type(error.cause).__name__}: {error.cause}")
        else:
            self._remove(member)
            self._losses[member.machine.id] += 1
            _LOG.warning("a node is lost: %s", error, extra={"node": member.machine.name})
            if member.ready:
                # Of a machine that is gone the cluster speaks for some more seconds.
                say(f"{NOTE}node {member.machine.name} is lost; what it worked at is done elsewhere")
            if self._losses[member.machine.id] >= LOSSES:
                self._left_out[member.machine.id] = f"{member.machine.name}: lost {LOSSES} times"

    def _leave_out(self, member: Member, why: str) -> None:
        self._left_out[member.machine.id] = f"{member.machine.name}: {why[:REASON_CHARACTERS]}"
        say(f"{NOTE}node {member.machine.name} is left out: {why[:REASON_CHARACTERS]}")
        self._remove(member)

    def _remove(self, member: Member) -> None:
        del self._members[member.machine.id]
        member.gone = True
        # At once: this one may have been the last.
        self._looked = -LOOK_SECONDS
        member.kill()
        self._lose(member)

    def _complain(self, member: Member, now: float) -> None:
        if member.waits_since is not None and now - member.waits_since > PATIENCE_SECONDS:
            member.waits_since = None
            machine = member.machine
            what = f"{machine.slots} {'CPUs' if machine.resource == 'CPU' else 'slots'}"
            say(f"Waiting for node {machine.name}: others have its {what} (--test-jobs N asks for fewer)")
