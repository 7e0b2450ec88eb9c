"""What is to be said of a run, whichever way it was judged."""

from __future__ import annotations

from dataclasses import dataclass

from retrial.types import Outcome


@dataclass(frozen=True, slots=True)
class Finding:
    outcome: Outcome
    reason: str = ""
    rule: str = ""
    """That was broken, where something was tampered with."""
