"""Runs that belong together, the cells of a grid: each is scored, then they are put side by side."""

from __future__ import annotations

from collections.abc import Sequence

from retrial import __version__, paths, program, table, trials
from retrial.comparison import Compared, side_by_side
from retrial.config import ReportOptions
from retrial.progress import say
from retrial.score_run import score_run
from retrial.store import Run
from retrial.summary import SCHEMA, compared


def score(options: ReportOptions, grid: Run) -> int:
    """Score every run of a grid, and put them side by side; returns the worst exit code."""
    listed = grid.config()["runs"]
    found, missing = list[Compared](), list[str]()
    for place, each in enumerate(listed, start=1):
        run = Run(paths.home(), each["run"])
        if not run.exists():
            missing.append(run.name)
            continue
        say(f"Grid {grid.name}: run {place} of {len(listed)}, {run.name}")
        report, _ = score_run(options, trials.from_run(options, run))
        found.append(compared(report, each["model"], each["edit_format"]))
    content = _grid_results(grid, found, missing)
    grid.write_results(content)
    print(table.comparison(content))
    print(f"\nResults: {grid.results_path}")
    return program.NOT_MEASURED if missing or any(each.not_measured for each in found) else program.DONE


def _grid_results(grid: Run, found: Sequence[Compared], missing: Sequence[str]) -> dict[str, object]:
    stored = grid.config()
    return {
        "schema": SCHEMA,
        "kind": "grid",
        "run": grid.name,
        "command": stored["command"],
        "identity": stored["identity"],
        **side_by_side(found, missing),
        "retrial": __version__,
    }
