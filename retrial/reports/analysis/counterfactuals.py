"""What another ladder, made of attempts that were recorded, would have solved and cost: nothing is asked again.

Every attempt is from scratch, so one that was made may stand anywhere. One that was never made, and a verdict that was
never asked for, are unknown: then there are bounds in place of a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations

from retrial.reports.analysis.cases import AttemptOutcome, LadderPosition, TaskAttempts
from retrial.reports.analysis.stats import percent, rounded, total
from retrial.store.json_io import FLAT
from retrial.system.console import first_few, pluralise

FEW = 0.1
"""Of all tasks so many may be unknown in what is said to people."""
LISTED = 12
ORDERS = 32
"""Orders of models that are looked at, short ones first: each is gone through with all tasks."""
ROUNDS = 5
"""Of each of them."""

Steps = tuple[LadderPosition, ...]
Recorded = Sequence[Mapping[LadderPosition, AttemptOutcome]]
"""The attempts at each task, by their place."""
Titles = Mapping[tuple[int, int], str]
"""Of models, by the run and the place in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a ladder solved and cost, or would have: the same when the same was made, in whatever order it is summed."""

    resolved_low: int
    resolved_high: int
    percent_low: float
    percent_high: float
    cost_low: float | None
    """None: a price is unknown."""
    cost_high: float | None
    """None: a price is, or an attempt was never made."""
    attempts: int
    """At least."""
    unknown: int
    """Tasks."""
    exact: bool
    of: int = field(repr=False)
    cost: float | None = field(repr=False, compare=False)
    """Of what was made, not rounded."""
    complete: bool = field(repr=False, compare=False)
    """Every attempt was made."""

    @property
    def rate(self) -> str:
        """For people."""
        return f"{self.percent_low:.1f} %" if self.exact else f"{self.percent_low:.1f} to {self.percent_high:.1f} %"


def make_bounds(
    of: int, resolved_low: int, resolved_high: int, *, attempts: int, cost: float | None, complete: bool = True
) -> Bounds:
    return Bounds(
        resolved_low=resolved_low,
        resolved_high=resolved_high,
        percent_low=percent(resolved_low, of) or 0.0,
        percent_high=percent(resolved_high, of) or 0.0,
        cost_low=rounded(cost),
        cost_high=rounded(cost) if complete else None,
        attempts=attempts,
        unknown=resolved_high - resolved_low,
        exact=resolved_high == resolved_low,
        of=of,
        cost=cost,
        complete=complete,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    label: str
    rungs: Sequence[str]
    bounds: Bounds = field(metadata=FLAT)
    sentence: str
    steps: Steps = field(repr=False)

    def only_prolongs(self, other: WhatIf) -> bool:
        """It begins as the other, and no task ever came to the rest."""
        return self.steps[: len(other.steps)] == other.steps and self.bounds == other.bounds


def actual(tasks: Sequence[TaskAttempts]) -> Bounds:
    """What was: every chosen patch has its verdict, and every attempt was paid for."""
    resolved = sum(task.resolved for task in tasks)
    attempts = [attempt for task in tasks for attempt in task.attempts]
    cost = total(attempt.cost for attempt in attempts)
    return make_bounds(len(tasks), resolved, resolved, attempts=len(attempts), cost=cost)


def recorded(tasks: Sequence[TaskAttempts]) -> Recorded:
    return [{attempt.at: attempt for attempt in task.attempts} for task in tasks]


def bounds(found: Recorded, steps: Steps, *, cut: bool = False) -> Bounds:
    """Of the ladder of these steps. `cut`: it is the beginning of the recorded one, and ends where that ended."""
    low = high = attempts = 0
    costs, complete = list[float | None](), True
    for task in found:
        made, whole = _climbed(task, steps, cut=cut)
        # Of equals the earliest, as ever.
        resolved = min(made, key=lambda attempt: attempt.rank).resolved if whole else None
        low += resolved is True
        high += resolved is not False
        attempts += len(made)
        costs.append(total(each.cost for each in made))
        complete = complete and whole
    return make_bounds(len(found), low, high, attempts=attempts, cost=total(costs), complete=complete)


def _climbed(
    attempts: Mapping[LadderPosition, AttemptOutcome], steps: Steps, *, cut: bool
) -> tuple[list[AttemptOutcome], bool]:
    """What would have been made, as far as that is known, and whether it is."""
    made = list[AttemptOutcome]()
    for step in steps:
        attempt = attempts.get(step)
        if attempt is not None:
            made.append(attempt)
            if attempt.settled:
                return made, True
        elif not (cut and any(at.source == step.source for at in attempts)):
            return made, False
    # As in a real one: without an edit that ends it, a broken attempt leaves it open.
    return made, bool(made) and not any(attempt.error for attempt in made)


def find(tasks: Recorded, rungs: Mapping[LadderPosition, str], was: Bounds) -> list[WhatIf]:
    """All that are looked at; `rungs` are those of the recorded ladder, in order, with their titles."""
    titles = {(at.source, at.place): title for at, title in rungs.items()}
    reached = Counter((at.source, at.place) for task in tasks for at in task if at.round == 1)
    starts = {each for each, number in reached.items() if len(tasks) - number <= FEW * len(tasks)}
    found = dict[Steps, WhatIf]()
    for label, steps, cut in (*_prefixes(tuple(rungs), titles), *_orders(tuple(rungs), titles, starts)):
        if steps not in found:
            would = bounds(tasks, steps, cut=cut)
            names, sentence = [rungs.get(at, "") for at in steps], f"{label}: {_instead(would, was)}"
            found[steps] = WhatIf(label=label, rungs=names, bounds=would, sentence=sentence, steps=steps)
    return list(found.values())


def _prefixes(rungs: Steps, titles: Titles) -> Iterator[tuple[str, Steps, bool]]:
    """The recorded ladder is none of its own; of several runs each was climbed to its end, which one would not be."""
    several = len({at.source for at in rungs}) > 1
    for length in range(1, len(rungs) + several):
        steps = rungs[:length]
        order = list(dict.fromkeys((at.source, at.place) for at in steps))
        if steps == _rounds(order, steps[-1].round):
            label = _label([titles[each] for each in order], steps[-1].round, alone=len(titles) > 1)
        else:
            label = f"the first {length} rungs ({first_few([titles[at.source, at.place] for at in steps])})"
        yield label, steps, True


def _orders(rungs: Steps, titles: Titles, starts: Collection[tuple[int, int]]) -> Iterator[tuple[str, Steps, bool]]:
    """Models in any order, in one round or more; of one that few tasks came to, nobody knows how it starts."""
    firsts = [each for each in titles if each in starts]
    orders = (
        (first, *rest)
        for size in range(len(titles))
        for first in firsts
        for rest in permutations([each for each in titles if each != first], size)
    )
    for order in islice(orders, ORDERS):
        for tries in range(1, min(ROUNDS, max(at.round for at in rungs)) + 1):
            label = _label([titles[each] for each in order], tries, alone=len(titles) > 1)
            yield label, _rounds(order, tries), False


def _rounds(order: Sequence[tuple[int, int]], tries: int) -> Steps:
    return tuple(
        LadderPosition(source=source, round=round_, place=place)
        for round_ in range(1, tries + 1)
        for source, place in order
    )


def _label(titles: Sequence[str], tries: int, *, alone: bool) -> str:
    counted = "1 try" if tries == 1 else f"{tries} tries"
    if len(titles) == 1:
        return f"{titles[0]}{' alone' if alone else ''}, {counted}"
    return f"{titles[0]} first, then {', '.join(titles[1:])}, {counted}"


def told(found: Sequence[WhatIf], was: Bounds) -> list[WhatIf]:
    """Those worth a sentence: enough of them is known, and each says something else than what was and the others.

    The surest first, then those that solve most, then the cheapest.
    """
    known = [each for each in found if each.bounds.unknown <= FEW * was.of]
    different = list[WhatIf]()
    for each in sorted(known, key=lambda each: len(each.steps)):
        if each.bounds != was and not any(each.only_prolongs(other) for other in different):
            different.append(each)
    return sorted(different, key=_worth)[:LISTED]


def _worth(each: WhatIf) -> tuple[bool, int, float, int, int]:
    found = each.bounds
    cost = float("inf") if found.cost is None else found.cost
    return not found.exact, -found.resolved_low, cost, found.attempts, len(each.steps)


def _instead(found: Bounds, was: Bounds) -> str:
    priced = bool(was.cost) and found.cost is not None
    unknown = "" if found.exact else f" ({found.unknown} of {found.of} tasks unknown)"
    return f"{_said(found, priced)}{unknown} instead of {_said(was, priced)}"


def _said(found: Bounds, priced: bool) -> str:
    least = "" if found.complete else "at least "
    if priced and found.cost is not None:
        return f"{found.rate} for {least}{money(found.cost)}"
    return f"{found.rate} in {least}{pluralise(found.attempts, 'attempt')}"


def money(cost: float) -> str:
    return f"{cost:.2f} USD" if cost >= 1 or not cost else f"{cost:.4f} USD"
