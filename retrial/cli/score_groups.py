"""Runs that belong together, the cells of a grid or repeats: each is scored, then they are put side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports import comparison_table, write
from retrial.reports.analysis import repeats
from retrial.reports.analysis.repeats import Together
from retrial.reports.analysis.rungs import GroupMember, SideBySide, side_by_side
from retrial.reports.analysis.selected_tasks import what_was_left
from retrial.reports.records import GroupResults
from retrial.reports.results import group_member
from retrial.reports.write import Outputs
from retrial.score import inputs
from retrial.score.run import score_run
from retrial.store.manifest import ListedRun
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.console import say

OF_ONE_RUN = ("fail_under", "baseline", "submission", "junit", "markdown", "csv")
"""Options that take one run's results."""


def score(options: ReportOptions, group: Run) -> int:
    """Score every run of a group, and put them side by side; returns the worst exit code."""
    manifest = group.manifest()
    _refuse(options, group.name, manifest.runs)
    missing = [each.run for each in manifest.runs if not Run(paths.home(), each.run).exists()]
    members = list(_scored(options, group))
    if manifest.kind == "repeats":
        together = repeats.together(members, missing)
        results, shown = _results(group, together), comparison_table.render_repeats(together)
    else:
        grid = side_by_side(members, missing)
        results, shown = _results(group, grid), comparison_table.render_grid(grid)
    group.write_results(results)
    print("\n".join([shown, *(f"note: {each}" for each in results.selection)]))
    print("\n".join(write.write_comparison(group, results)))
    return ExitCode.NOT_MEASURED if missing or any(each.not_measured for each in members) else ExitCode.DONE


def _refuse(options: ReportOptions, name: str, runs: Sequence[ListedRun]) -> None:
    """A gate that judges nothing would be taken for one that was passed. Raises: UsageError."""
    for option in OF_ONE_RUN:
        if getattr(options, option) not in (None, ""):
            flag = option.replace("_", "-")
            raise UsageError(f"--{flag} is about one run, and '{name}' is {len(runs)}: name one, '{runs[0].run}'.")


def _scored(options: ReportOptions, group: Run) -> Iterator[GroupMember]:
    """Each run that has files, one after the other."""
    manifest = group.manifest()
    for place, each in enumerate(manifest.runs, start=1):
        run = Run(paths.home(), each.run)
        if run.exists():
            title = f"{manifest.kind.capitalize()} {group.name}"
            say(f"{title}: run {place} of {len(manifest.runs)}, {run.name}")
            report, results = score_run(options, inputs.from_run(options, run))
            print("\n".join(write.write(Outputs(), run, results)))
            if report.agent_failed:
                print(f"{run.name}: {report.agent_failed}\n")
            if results.repeats:
                print(f"{run.name}\n{repeats.told(results.repeats)}\n")
            yield group_member(each, report)


def _results(group: Run, found: SideBySide | Together) -> GroupResults:
    manifest = group.manifest()
    return GroupResults(
        kind=manifest.kind,
        run=manifest.run,
        command=manifest.command,
        identity=manifest.identity or {},
        found=found,
        selection=_selection(manifest.runs),
    )


def _selection(runs: Sequence[ListedRun]) -> list[str]:
    """Of runs that were started with `--prior`: what their rates are about."""
    members = [run for run in (Run(paths.home(), each.run) for each in runs) if run.exists()]
    prior = {run.name: run.manifest().prior for run in members}
    return [
        f"{name} ran only {what_was_left(found)}; its rate covers only those" for name, found in prior.items() if found
    ]
