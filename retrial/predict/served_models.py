"""Which models answered, as their providers name them: a name can lead to another model from one day to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from retrial.attempts import Attempt

SHOWN = 4

Served = dict[str, list[str]]
"""Model → who answered for it, in the order of their coming."""


def add(served: Served, attempts: Iterable[Attempt]) -> None:
    for attempt in attempts:
        _add(served, attempt.model, attempt.served)


def so_far(stored: Served, records: Iterable[Mapping[str, Any]]) -> Served:
    """With those of finished tasks: a process that was killed has not said them."""
    served = {model: list(names) for model, names in stored.items()}
    for record in records:
        for attempt in record["all_results"]:
            _add(served, attempt["model"], attempt.get("served", ()))
    return served


def _add(served: Served, model: str, answered: Sequence[str]) -> None:
    names = served.setdefault(model, []) if answered else []
    names += [name for name in answered if name not in names]


def changes(served: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """One sentence for each model that more than one answered for."""
    for model, names in served.items():
        if len(names) > 1:
            more = len(names) - SHOWN
            shown = [*names[:SHOWN], *([f"{more} more"] if more > 0 else [])]
            yield f"note: {model} was served as {', '.join(shown[:-1])} and {shown[-1]}"
