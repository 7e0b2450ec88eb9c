"""What a cluster would do with many attempts: a small simulation, event by event, fed with measured costs.

One driver writes everything down; a provider has its limits; nodes have slots for sandboxes and are lost now and then.
It says how long all of it takes, how busy everybody is, and so who would have to be more or faster first.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field, fields

HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Times are in seconds. What is marked so is measured (docs/scale.md says how); the rest are assumptions."""

    nodes: int = 500
    slots: int = 4
    """Sandboxes at once on a node."""
    seats: int = 16
    """Attempts under way on a node: most wait for a model."""
    attempts: int = 100_000
    calls: int = 6
    """Questions in one attempt."""
    checks: int = 2
    """Runs of tests in one attempt, each after as many calls."""
    latency: float = 15.0
    """Median of one answer; some take much longer."""
    spread: float = 0.7
    tokens: int = 12_000
    """Of one question and its answer."""
    at_once: int = 4_000
    """Questions under way (`--jobs`)."""
    requests_a_minute: float = 20_000.0
    tokens_a_minute: float = 200e6
    sandbox: float = 30.0
    """One run of tests."""
    stragglers: float = 0.01
    """Share of runs that take until their time limit."""
    limit: float = 1800.0
    call_cost: float = 0.0015
    """Of the driver for one question, from leave to ask to its answer on disk. Measured."""
    finish_cost: float = 0.008
    """Of the driver for one finished task. Measured."""
    lost_an_hour: float = 0.01
    """Chance of a node to be lost within an hour."""
    back: float = 600.0
    """Until another stands in its place."""
    seed: int = 0


class Station:
    """So many are served at once, who comes first is first."""

    def __init__(self, name: str, servers: int) -> None:
        self.name, self.servers, self.free = name, servers, servers
        self.busy = 0.0
        self.waiting: deque[tuple[Process, float]] = deque()


Process = Generator[tuple[Station | None, float], None, None]
"""Asks to be served somewhere (or just waits) for so long, again and again."""


class Node:
    def __init__(self, setting: Setting, chance: random.Random) -> None:
        self.sandboxes = Station("sandboxes", setting.slots)
        self._rate, self._random = setting.lost_an_hour / HOUR, chance
        self._lost, self._next = 0, self._lasts()

    def lost(self, now: float) -> int:
        """How often it was lost by now."""
        while now >= self._next:
            self._lost, self._next = self._lost + 1, self._next + self._lasts()
        return self._lost

    def _lasts(self) -> float:
        return self._random.expovariate(self._rate) if self._rate else math.inf


@dataclass(slots=True, kw_only=True)
class Told:
    """What came of it."""

    seconds: float = 0.0
    nearly: float = 0.0
    """When all but one in a hundred were finished."""
    finished: int = 0
    asked: int = 0
    """Questions that were answered."""
    begun_again: int = 0
    """Attempts whose node was lost."""
    shares: dict[str, float] = field(default_factory=dict)
    """How busy everybody was until nearly all were finished."""

    @property
    def busiest(self) -> str:
        return max(self.shares, key=lambda name: self.shares[name])


class World:
    def __init__(self, setting: Setting) -> None:
        self.setting, self.told = setting, Told()
        self._random = random.Random(setting.seed)
        self._now, self._order = 0.0, itertools.count()
        self._events: list[tuple[float, int, Process, Station | None, float]] = []
        self._driver, self._limits = Station("driver", 1), Station("provider's limits", 1)
        self._gap = 60 / min(setting.requests_a_minute, setting.tokens_a_minute / setting.tokens)
        self._model = Station("questions at once", setting.at_once)
        self._nodes = [Node(setting, self._random) for _ in range(setting.nodes)]
        self._left = iter(range(setting.attempts))

    def run(self) -> Told:
        for _, node in itertools.product(range(self.setting.seats), self._nodes):
            self._go_on(self._seat(node))
        while self._events:
            self._now, _, process, station, seconds = heapq.heappop(self._events)
            if station is not None:
                station.free += 1
                station.busy += seconds
                if station.waiting:
                    self._serve(station, *station.waiting.popleft())
            self._go_on(process)
        self.told.seconds = self._now
        return self.told

    def _go_on(self, process: Process) -> None:
        for station, seconds in itertools.islice(process, 1):
            if station is None or station.free:
                self._serve(station, process, seconds)
            else:
                station.waiting.append((process, seconds))

    def _serve(self, station: Station | None, process: Process, seconds: float) -> None:
        if station is not None:
            station.free -= 1
        heapq.heappush(self._events, (self._now + seconds, next(self._order), process, station, seconds))

    def _seat(self, node: Node) -> Process:
        """One attempt after the other, as long as there are any."""
        for _ in self._left:
            yield from self._attempt(node)
            yield self._driver, self.setting.finish_cost
            self.told.finished += 1
            if self.told.finished == math.ceil(0.99 * self.setting.attempts):
                self.told.nearly, self.told.shares = self._now, self._shares()

    def _attempt(self, node: Node) -> Process:
        """Again from the start where its node was lost, but for what is in the journal by then."""
        setting, known = self.setting, 0
        while True:
            lost = node.lost(self._now)
            for number in range(setting.calls):
                if number >= known:
                    yield from self._question()
                    # Else nobody was there to hear it.
                    known += node.lost(self._now) == lost
                if node.lost(self._now) == lost and (number + 1) % (setting.calls // setting.checks) == 0:
                    yield node.sandboxes, self._tests()
                if node.lost(self._now) != lost:
                    break
            else:
                return
            self.told.begun_again += 1
            yield None, setting.back

    def _question(self) -> Process:
        setting = self.setting
        yield self._driver, setting.call_cost
        yield self._limits, self._gap
        yield self._model, self._random.lognormvariate(math.log(setting.latency), setting.spread)
        self.told.asked += 1

    def _tests(self) -> float:
        slow = self._random.random() < self.setting.stragglers
        return self.setting.limit if slow else self._random.expovariate(1 / self.setting.sandbox)

    def _shares(self) -> dict[str, float]:
        stations = [self._driver, self._limits, self._model, *(node.sandboxes for node in self._nodes)]
        names = dict.fromkeys(station.name for station in stations)
        groups = {name: [each for each in stations if each.name == name] for name in names}
        return {
            name: sum(each.busy for each in group) / self._now / sum(each.servers for each in group)
            for name, group in groups.items()
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 500, 2000], help="nodes")
    for each in fields(Setting):
        if each.name != "nodes":
            kind = type(each.default)
            parser.add_argument(f"--{each.name.replace('_', '-')}", type=kind, default=each.default)
    options = vars(parser.parse_args())
    for nodes in options.pop("sizes"):
        tell(Setting(nodes=nodes, **options))


def tell(setting: Setting) -> None:
    told = World(setting).run()
    assert told.finished == setting.attempts
    shares = ", ".join(f"{name} {share:.0%}" for name, share in sorted(told.shares.items(), key=lambda each: -each[1]))
    print(
        f"{setting.nodes:,} nodes: {told.seconds / HOUR:.2f} h, 99 % of it after {told.nearly / HOUR:.2f} h "
        f"({0.99 * setting.attempts / told.nearly:.1f} tasks a second); "
        f"{told.begun_again} begun again for a lost node; busy: {shares}",
        flush=True,
    )


if __name__ == "__main__":
    main()
