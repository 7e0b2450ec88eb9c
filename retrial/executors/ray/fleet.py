"""Who of a Ray cluster works for us: machines are found, waited for, left out, and done without when they are lost."""

from __future__ import annotations

import logging
import pickle
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from retrial.errors import UsageError
from retrial.executors.ray.member import RESOURCE, ClusterNode, Member, declare, machines
from retrial.system.console import NOTE, say

LOSSES = 3
"""A machine on which our actor was lost so often is left alone."""
LOOK_SECONDS = 3.0
"""How often new machines are looked for."""
PATIENCE_SECONDS = 10.0
"""For slots that others have, before it is said."""
REASON_CHARACTERS = 300

_LOG = logging.getLogger(__name__)


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

    def _then(self, do: Callable[[Member, Any], object], member: Member) -> Callable[[Future[Any]], None]:
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
