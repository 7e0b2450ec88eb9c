"""Adaptive concurrency limit (AIMD): fewer calls at once after an overload, more again while calls succeed.

Pure but for what it remembers: every moment is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from retrial.chat import Backoff, Overload

CUTS: Mapping[Overload, float] = {Overload.RATE: 0.5, Overload.STRAIN: 0.8, Overload.BROKEN: 0.5}
"""How many at once are left of those that were too many."""
GROWTH = 0.1
"""How many more at once after one round (all at once, done once); ever more with every round that goes well."""
MARGIN = 1.1
"""By how much the pause between two is longer than what was refused."""
LONGEST_PAUSE = 600.0
SHRINKING = 0.005
"""The share of that pause that goes with the first that goes well; ever more with the next ones."""


class AdaptiveLimit:
    """Of one who is given work."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken = 0
        self.done = 0
        self.why = ""
        """Why there are not as many as might be."""
        self._allowed = float(most)
        self._pause = 0.0
        """Between two beginnings, where even one at a time is too much."""
        self._opens = self._slowed = -math.inf
        self._rounds = 0.0

    @property
    def allowed(self) -> int:
        return int(self._allowed)

    @property
    def full(self) -> bool:
        return self.allowed == self.most and not self._pause

    def opens_in(self, now: float) -> float:
        """Seconds before anybody may begin."""
        return max(0.0, self._opens - now)

    def free(self, now: float) -> bool:
        return self.taken < self.allowed and now >= self._opens

    def begin(self, now: float) -> None:
        self.taken += 1
        self._opens = max(self._opens, now + self._pause)

    def end(self) -> None:
        self.taken -= 1

    def on_success(self, begun: float, now: float) -> None:
        """What had begun then is done now."""
        self.done += 1
        if begun <= self._slowed:
            # It tells how it went before.
            return
        self._rounds += 1.0 / self._allowed
        if self._pause:
            self._pause *= max(0.0, 1.0 - SHRINKING * self._rounds)
            if self._pause <= now - begun:
                self._pause = 0.0
            return
        self._allowed = min(float(self.most), self._allowed + GROWTH * self._rounds / self._allowed)

    def on_failure(self, trouble: Backoff, begun: float, now: float) -> None:
        """What had begun then has failed. Of all that was under way when it was slowed, the first has said it."""
        if trouble.everybody:
            self._opens = max(self._opens, now + trouble.seconds)
        if trouble.load is Overload.NONE or begun <= self._slowed:
            return
        if trouble.load is Overload.RATE and self.taken <= 1:
            self._pause = min(LONGEST_PAUSE, MARGIN * (max(self._pause, now - begun) + trouble.seconds))
        self._allowed = max(1.0, min(self._allowed, self.taken) * CUTS[trouble.load])
        self._slowed, self._rounds, self.why = now, 0.0, trouble.why
