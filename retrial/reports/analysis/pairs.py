"""Two runs on the same tasks: what one solves and the other does not, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from retrial.reports.analysis import stats
from retrial.reports.analysis.run_conditions import Differences, Side, differences, refuse_other_benchmark
from retrial.reports.analysis.stats import Rate
from retrial.store.json_io import FLAT
from retrial.system.console import pluralise


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """A pair, as results.json has it."""

    a: str
    b: str
    common: int
    rate_a: Rate
    rate_b: Rate
    difference: float
    low: float
    high: float
    p: float | None
    p_adjusted: float | None
    more_than_chance: bool
    untested: str | None
    tasks_needed: int | None
    sentence: str
    pair: Pair = field(metadata=FLAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Run `b` against run `a`; only tasks that both measured are compared. Lists are of ids."""

    a: str = field(repr=False)
    b: str = field(repr=False)
    gained: tuple[str, ...]
    """Resolved by `b` alone."""
    lost: tuple[str, ...]
    """Resolved by `a` alone."""
    both: tuple[str, ...]
    neither: tuple[str, ...]
    only_in_a: tuple[str, ...] = ()
    """Measured there alone."""
    only_in_b: tuple[str, ...] = ()
    pairs: int = field(default=1, repr=False)
    """How many are compared at once."""
    adjusted: float = field(default=1.0, repr=False)
    """The p for that; of one pair, its own."""
    untested: str = field(default="", repr=False)
    """Why no significance test applies, as a sentence; empty where one does."""
    failed_by: str = field(default="", repr=False)
    """Of the two the run that resolved no common task, but others: they may have been chosen for that."""
    differences: Differences = field(default_factory=Differences, metadata=FLAT)

    @property
    def common(self) -> int:
        return len(self.gained) + len(self.lost) + len(self.both) + len(self.neither)

    @property
    def p(self) -> float:
        return stats.mcnemar(len(self.gained), len(self.lost))

    @property
    def difference(self) -> float:
        """In points: what `b` resolves more."""
        return 100 * (len(self.gained) - len(self.lost)) / self.common if self.common else 0.0

    @property
    def more_than_chance(self) -> bool:
        return not self.withheld and self.adjusted < stats.LEVEL

    @property
    def withheld(self) -> str:
        """Why a difference cannot be put down to anything but the selection of tasks; empty where it can."""
        if self.untested or not self.failed_by or self.p >= stats.LEVEL:
            return self.untested
        return (
            f"{self.failed_by} resolved none of the {pluralise(self.common, 'common task')}, but did resolve others: "
            "these tasks look chosen for its failures, so no significance test applies. Run both on the same tasks."
        )

    @property
    def needed(self) -> int | None:
        """Tasks on which a difference of this size would probably be seen; None where there is none."""
        if not self.difference:
            return None
        share = (len(self.gained) + len(self.lost)) / self.common
        return stats.tasks_needed(share, self.difference / 100, self.pairs)

    @property
    def sentence(self) -> str:
        """What can be said, and no more."""
        a, b, tasks = self.a, self.b, pluralise(self.common, "task")
        if not self.common:
            return f"{b} and {a} have measured no task in common: they cannot be compared."
        if not self.gained and not self.lost:
            return f"{b} and {a} solve the same on the {tasks} that both measured: no difference is seen."
        if not self.difference:
            each = len(self.gained)
            return (
                f"{b} and {a} solve equally many of the {tasks} that both measured ({each} only {b}, {each} only {a}): "
                "no difference is seen."
            )
        size = f"{_points(self.difference)} points {'more' if self.difference > 0 else 'less'}"
        if self.withheld:
            return f"{b} solves {size} than {a} on the {tasks} that both measured. {self.withheld}"
        if self.more_than_chance:
            return (
                f"{b} solves {size} than {a} on the {tasks} that both measured; that is more than chance ({self.said})."
            )
        more = _rounded_up(max(1, (self.needed or 0) - self.common))
        return (
            f"Cannot tell {b} from {a} on {pluralise(self.common, 'common task')} ({b} {size}, {self.said}): "
            f"to see a difference of that size you would need about {pluralise(more, 'more task')}."
        )

    @property
    def said(self) -> str:
        """Its p, as people read it."""
        if self.pairs == 1:
            return _shown(self.p)
        return f"{_shown(self.p)}; for {self.pairs} pairs at once, by Holm, {_shown(self.adjusted)}"


def pair(a: Side, b: Side) -> Pair:
    """The two side by side.

    Raises: UsageError when they are about different benchmarks.
    """
    refuse_other_benchmark(a, b)
    first, second = a.measured, b.measured
    common = sorted(first.keys() & second.keys())

    def ids(in_a: bool, in_b: bool) -> tuple[str, ...]:
        return tuple(key for key in common if (first[key], second[key]) == (in_a, in_b))

    found = Pair(
        a=a.name,
        b=b.name,
        gained=ids(False, True),
        lost=ids(True, False),
        both=ids(True, True),
        neither=ids(False, False),
        only_in_a=tuple(sorted(first.keys() - second.keys())),
        only_in_b=tuple(sorted(second.keys() - first.keys())),
        differences=differences(a, b),
        untested=_untested(a, b),
        failed_by=next((each.name for each in (a, b) if _failed_all(each, common)), ""),
    )
    return replace(found, adjusted=found.p)


def _untested(a: Side, b: Side) -> str:
    whole, part = (a, b) if a.contains(b) else (b, a)
    if not whole.contains(part):
        return ""
    if whole.selection:
        return (
            f"No significance test applies: {whole.run} ran only the tasks that {part.name} left, so this is what it "
            f"adds to {part.name}, and not how the two compare. To compare them, run {whole.run} without --prior."
        )
    return f"No significance test applies: the results of {part.name} are part of {whole.name}."


def _failed_all(side: Side, common: Sequence[str]) -> bool:
    """Whether it resolved other tasks, but none of these."""
    measured = side.measured
    return any(measured.values()) and not any(measured[key] for key in common)


def corrected(found: Sequence[Pair]) -> list[Pair]:
    """Pairs that are looked at together: of many, one looks different by chance alone.

    Those with nothing in common are not looked at, nor those to which no test applies.
    """
    tested = [each for each in found if each.common and not each.withheld]
    adjusted = dict(zip(map(id, tested), stats.holm([each.p for each in tested]), strict=True))
    return [replace(each, pairs=len(tested) or 1, adjusted=adjusted.get(id(each), 1.0)) for each in found]


def row(found: Pair) -> PairRow:
    low, high = stats.paired_interval(len(found.gained), len(found.lost), found.common)
    return PairRow(
        a=found.a,
        b=found.b,
        common=found.common,
        rate_a=stats.rate(len(found.both) + len(found.lost), found.common),
        rate_b=stats.rate(len(found.both) + len(found.gained), found.common),
        difference=round(found.difference, 2),
        low=round(100 * low, 2),
        high=round(100 * high, 2),
        p=None if found.withheld else found.p,
        p_adjusted=None if found.withheld else found.adjusted,
        more_than_chance=found.more_than_chance,
        untested=found.withheld or None,
        tasks_needed=None if found.withheld else found.needed,
        sentence=found.sentence,
        pair=found,
    )


def _points(difference: float) -> str:
    """Never none where there are some."""
    return f"{abs(difference):.1f}" if abs(difference) >= 0.05 else f"{abs(difference):.1g}"


def _shown(p: float) -> str:
    """With more digits where they matter."""
    if p < 0.001:
        return "p < 0.001"
    at_the_level = 4 if round(p, 3) == stats.LEVEL else 3
    return f"p = {p:.{at_the_level if p < 0.1 else 2}f}"


def _rounded_up(number: int) -> int:
    """To two digits: it is a guess."""
    step = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // step) * step
