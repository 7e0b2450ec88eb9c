"""Runs whose tasks were selected by the results of other runs (`--prior`), for a fair comparison.

Such a run was asked only what an earlier one had failed: on these tasks the earlier run looks bad by selection alone.
So it is compared together with the runs that selected its tasks, as if all of them were one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from retrial.errors import UsageError
from retrial.reports.analysis.run_conditions import EarlierInstance, EarlierResults, Side
from retrial.store.runs import Run

Find = Callable[[str], Side]
"""Return the scored run of that name. Raises: UsageError."""


def completed(side: Side, find: Find, seen: Sequence[str] = ()) -> Side:
    """Return a run together with those that selected its tasks, and with those that selected theirs.

    A task has the result of this run if the run was asked it, and else that of the earlier runs.
    Raises: UsageError when an earlier run cannot be found.
    """
    seen = (*seen, side.run)
    earlier = [completed(find(name), find, seen) for name in side.prior if name not in seen]
    if not earlier:
        return side
    names = dict.fromkeys((*(each.run for each in earlier), side.run))
    others = frozenset(name for each in earlier for name in (each.run, *each.sources, *each.includes))
    return replace(
        side,
        name="+".join(names),
        results=_united(side, earlier),
        includes=(side.includes | others) - {side.run},
        selection=f"{side.name} ran only {what_was_left(side.prior)}: they are compared as one run",
    )


def what_was_left(prior: Sequence[str]) -> str:
    """For people: the tasks of a run that was started with `--prior`."""
    return f"the tasks for which {' and '.join(prior)} found no plausible edit (--prior)"


def refuse_unknown(name: str, prior: Iterable[Run]) -> None:
    """Raises: UsageError when a run that selected the tasks of run `name` is missing."""
    for each in prior:
        if not each.exists():
            raise UsageError(
                f"Run '{name}' ran only {what_was_left([each.name])}, and can be compared only together with it, "
                f"but there is no run '{each.name}' here."
            )


def _united(side: Side, earlier: Sequence[Side]) -> EarlierResults:
    """The results of all these runs."""
    own, rows, found = side.selected, dict[str, EarlierInstance](), side.results
    for row in (row for each in earlier for row in each.results.instances):
        if row.instance_id not in own:
            # As when several runs are made one result: of equals the earliest.
            rows[row.instance_id] = min(rows.get(row.instance_id, row), row, key=_rank)
    left = own | set(rows)

    def with_earlier(own: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> dict[str, str]:
        return {**{key: why for each in others for key, why in each.items() if key not in left}, **own}

    return replace(
        found,
        instances=(*found.instances, *rows.values()),
        not_measured=with_earlier(found.not_measured, (each.results.not_measured for each in earlier)),
        skipped=with_earlier(found.skipped, (each.results.skipped for each in earlier)),
    )


def _rank(row: EarlierInstance) -> int:
    return 0 if row.plausible else 1 if row.unverified else 2
