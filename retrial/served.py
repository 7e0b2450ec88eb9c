"""Which models answered, as their providers name them: a name can lead to another model from one day to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from retrial.attempts import Attempt

SHOWN = 4

Served = dict[str, list[str]]
"""Model → who answered for it, in the order of their coming."""


def add(served: Served, attempts: Iterable[Attempt]) -> None:
    for attempt in attempts:
        names = served.setdefault(attempt.model, []) if attempt.served else []
        names += [name for name in attempt.served if name not in names]


def changes(served: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One sentence for each model that more than one answered for."""
    for model, names in served.items():
        if len(names) > 1:
            more = len(names) - SHOWN
            shown = [*names[:SHOWN], *([f"{more} more"] if more > 0 else [])]
            yield f"note: {model} was served as {', '.join(shown[:-1])} and {shown[-1]}"
