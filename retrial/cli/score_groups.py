"""Runs that belong together, the cells of a grid or repeats: each is scored, then they are put side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retrial import __version__
from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports import console_tables, write
from retrial.reports.analysis import repeats as repeat_statistics
from retrial.reports.analysis.repeats import IDENTICAL, Repeat
from retrial.reports.analysis.rungs import Compared, side_by_side
from retrial.reports.analysis.selected_tasks import what_was_left
from retrial.reports.results import SCHEMA, Report, compared
from retrial.score import inputs, rescore
from retrial.score.inputs import ScoringInput
from retrial.score.run import score_run
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.console import money, pluralise, say

OF_ONE_RUN = ("fail_under", "baseline", "submission", "junit", "markdown", "csv")
"""Options that take one run's results."""

Listed = Mapping[str, Any]
"""What a group's run.json says of one of its runs."""


def score(options: ReportOptions, group: Run) -> int:
    """Score every run of a group, and put them side by side; returns the worst exit code."""
    stored = group.config()
    _refuse(options, group.name, stored["runs"])
    missing = [each["run"] for each in stored["runs"] if not Run(paths.home(), each["run"]).exists()]
    if stored["kind"] == "repeats":
        repeats = [rescore.of_run(report, scoring, each["seed"]) for each, scoring, report in _scored(options, group)]
        unmeasured = any(each.not_measured for each in repeats)
        content, shown = _repeats_results(group, repeats, missing)
    else:
        found = [compared(report, each["model"], each["edit_format"]) for each, _, report in _scored(options, group)]
        unmeasured = any(each.not_measured for each in found)
        content, shown = _grid_results(group, found, missing)
    group.write_results(content)
    print("\n".join([shown, *(f"note: {each}" for each in content["selection"])]))
    write.write_comparison(group, content)
    return ExitCode.NOT_MEASURED if missing or unmeasured else ExitCode.DONE


def _refuse(options: ReportOptions, name: str, runs: Sequence[Listed]) -> None:
    """A gate that judges nothing would be taken for one that was passed. Raises: UsageError."""
    for option in OF_ONE_RUN:
        if getattr(options, option) not in (None, ""):
            flag = option.replace("_", "-")
            raise UsageError(f"--{flag} is about one run, and '{name}' is {len(runs)}: name one, '{runs[0]['run']}'.")


def _scored(options: ReportOptions, group: Run) -> Iterator[tuple[Listed, ScoringInput, Report]]:
    """Each run that has files, one after the other."""
    stored = group.config()
    score_one = rescore.score if options.repeat > 1 else score_run
    for place, each in enumerate(stored["runs"], start=1):
        run = Run(paths.home(), each["run"])
        if run.exists():
            title = f"{stored['kind'].capitalize()} {group.name}"
            say(f"{title}: run {place} of {len(stored['runs'])}, {run.name}")
            scoring = inputs.from_run(options, run)
            report, content = score_one(options, scoring)
            write.write(options, run, content)
            if report.agent_failed:
                print(f"{run.name}: {report.agent_failed}\n")
            if said := repeat_statistics.told(content):
                print(f"{run.name}\n{said}\n")
            yield each, scoring, report


def _grid_results(grid: Run, found: Sequence[Compared], missing: Sequence[str]) -> tuple[dict[str, Any], str]:
    content = _results(grid, side_by_side(found, missing))
    return content, console_tables.comparison(content)


def _repeats_results(group: Run, found: Sequence[Repeat], missing: Sequence[str]) -> tuple[dict[str, Any], str]:
    content = _results(group, repeat_statistics.together(found, missing))
    return content, repeats_table(content)


def _results(group: Run, own: Mapping[str, Any]) -> dict[str, Any]:
    stored = group.config()
    head = {name: stored[name] for name in ("kind", "run", "command", "identity")}
    return {"schema": SCHEMA, **head, **own, "selection": _selection(stored["runs"]), "retrial": __version__}


def _selection(runs: Sequence[Listed]) -> list[str]:
    """Of runs that were started with `--prior`: what their rates are about."""
    members = [run for run in (Run(paths.home(), each["run"]) for each in runs) if run.exists()]
    prior = {run.name: run.config().get("prior", ()) for run in members}
    return [
        f"{name} ran only {what_was_left(found)}; its rate covers only those" for name, found in prior.items() if found
    ]


def repeats_table(content: Mapping[str, Any]) -> str:
    """Repeats side by side, and what they say together."""
    rows = [
        (
            row["run"],
            str(row["seed"]),
            f"{row['resolved']}/{row['of']}",
            console_tables.rate(row),
            f"{row['rate_common']['resolved']}/{row['rate_common']['of']}",
            money(row["cost"]),
        )
        for row in content["runs"]
    ]
    shown = console_tables.aligned(("run", "seed", "resolved", "rate", "common", "cost"), rows)
    return f"{shown}\n\n" + "\n".join([*_summary(content), *_remarks(content)])


def _summary(content: Mapping[str, Any]) -> list[str]:
    common, spread = content["common"], content["spread"]
    lines = [f"measured by all {common['measured_by_all']} of {common['of']} tasks (column common: of these alone)"]
    if spread is None:
        return [*lines, "mean            none: there is no task that all runs have measured"]
    k, twice = str(spread["runs"]), sum(len(content[name]) for name in ("always", "never", "flips"))
    if spread["runs"] < 2:
        return [*lines, f"mean            {content['mean']:.1f} %, of one run: there is nothing to compare it with"]
    return [
        *lines,
        f"mean            {content['mean']:.1f} % (spread {spread['standard_deviation']:.1f} points over {k} runs; "
        f"{spread['min']:.1f} to {spread['max']:.1f}); pass@{k} {content['pass_at'][k]:.1f} %; "
        f"{len(content['flips'])} of {pluralise(twice, 'task')} flipped",
        f"always, never   {len(content['always'])} resolved in every run, {len(content['never'])} in none",
    ]


def _remarks(content: Mapping[str, Any]) -> list[str]:
    differing = ", ".join(content["conditions_differ"])
    void = [name for name in content["flips"] if name in content["void"]]
    return [
        *(f"not measured    {row['not_measured']} in {row['run']}" for row in content["runs"] if row["not_measured"]),
        *(f"not started     {name}" for name in content["not_started"]),
        *([f"void here       {len(void)} of those that flipped: it may be the tests"] if void else []),
        *([f"note: runs differ in more than their seeds: {differing} (conditions_differ)"] if differing else []),
        *([f"note: {IDENTICAL}"] if content["identical"] else []),
    ]
