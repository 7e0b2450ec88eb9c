"""How the reading of a reply ends when it cannot be carried out."""

from __future__ import annotations

from retrial.protocols import Edits, Fault

QUOTED = 200
"""Characters of a line."""


class Refused(Exception):
    """Nothing of a reply counts; holds what the model is told. Never leaves a format's `parse`."""

    def __init__(self, problem: str, fault: Fault = Fault.MALFORMED) -> None:
        super().__init__(problem)
        self.edits = Edits(problem=problem, fault=fault)


def shown(text: str) -> str:
    """As much of a line of a reply as a problem quotes."""
    return text if len(text) <= QUOTED else text[:QUOTED] + "…"
