"""What a model may ask of its caller, where no session makes the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retrial.chat import Backoff, Unmetered


@dataclass(frozen=True, slots=True)
class Losing(Unmetered):
    """Tells of every reply that was lost, and whether it is asked for again."""

    tell: Callable[[bool], object]

    def lose(self, again: bool) -> None:
        self.tell(again)


class Hasty(Unmetered):
    """Tries again at once."""

    def next_try(self, trouble: Backoff) -> bool:
        return True
