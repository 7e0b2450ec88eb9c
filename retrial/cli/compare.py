"""`report.py --compare A B …`: runs side by side, and whether they differ by more than chance."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from retrial import __version__
from retrial.benchmarks import shards
from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports import write
from retrial.reports.analysis import pairs, selected_tasks
from retrial.reports.analysis.run_conditions import (
    EarlierResults,
    Side,
    read_config,
    read_results,
    refuse_other_benchmark,
    unscored,
)
from retrial.reports.comparison_table import Comparison, render, row
from retrial.reports.records import SCHEMA
from retrial.score import inputs, predictions_file
from retrial.score.inputs import ScoringInput
from retrial.score.run import score_run
from retrial.store import history
from retrial.store.history import find_run
from retrial.store.json_io import masked, read_json
from retrial.store.manifest import Manifest
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.console import NOTE, command_line, say

KIND = "comparison"
LONGEST = 200
ALL_PAIRS = 4
"""Of more runs than this, each is compared with the first alone."""
NOT_WITH = (
    *("gold", "null", "calibrate", "doctor", "attempts", "repeat", "task", "filter_category"),
    *("fail_under", "baseline", "submission", "junit", "markdown", "csv"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    run: Run
    scoring: ScoringInput | None = None
    """Of a predictions file, which is no run before it is scored."""
    group: str = ""
    """The grid or the repeats that it was named by."""


def run(options: ReportOptions, texts: Sequence[str]) -> int:
    """Score what is not scored yet, print and write what differs; 1 when scoring left something not measured."""
    _refuse(options)
    entries = _entries(options, texts)
    target = _target(options.run, [entry.run.name for entry in entries])
    _refuse_other_benchmarks(entries)
    scored = {entry.run.name: _scored(options, entry) for entry in _with_prior(entries)}
    sides = {name: side for name, (side, _) in scored.items()}
    found = compared(
        target.name,
        [sides[entry.run.name] for entry in entries],
        [entry.group for entry in entries],
        sides.__getitem__,
    )
    target.write_results(found)
    print(render(found))
    print("\n".join(write.write_comparison(target, found)))
    return ExitCode.DONE if all(whole for _, whole in scored.values()) else ExitCode.NOT_MEASURED


def compared(
    name: str, sides: Sequence[Side], groups: Sequence[str] = (), find: selected_tasks.Find | None = None
) -> Comparison:
    """`find` knows also the runs of `--prior`."""
    whole = [selected_tasks.completed(side, find or {each.name: each for each in sides}.__getitem__) for side in sides]
    found = pairs.corrected([pairs.pair(a, b) for a, b in _pairs(whole, groups)])
    return Comparison(
        schema=SCHEMA,
        kind=KIND,
        run=name,
        benchmark=sides[0].results.benchmark,
        command=command_line(),
        runs=tuple(map(row, sides)),
        pairs=tuple(map(pairs.row, found)),
        warnings=tuple(dict.fromkeys(warning for each in found for warning in each.differences.warnings)),
        retrial=__version__,
    )


def _pairs(sides: Sequence[Side], groups: Sequence[str]) -> list[tuple[Side, Side]]:
    """All, of few; of many each with the first. Those of one group with each other only where there is nothing else."""
    chosen = combinations(range(len(sides)), 2) if len(sides) <= ALL_PAIRS else ((0, at) for at in range(1, len(sides)))
    places = list(chosen)
    apart = [(a, b) for a, b in places if not groups or not groups[a] or groups[a] != groups[b]]
    return [(sides[a], sides[b]) for a, b in apart or places]


def _refuse(options: ReportOptions) -> None:
    """Raises: UsageError for what does not go together."""
    plain = ReportOptions()
    given = [name for name in NOT_WITH if getattr(options, name) != getattr(plain, name)]
    if given:
        raise UsageError(f"--compare does not go with --{given[0].replace('_', '-')}: leave one of them out.")


def _entries(options: ReportOptions, texts: Sequence[str]) -> list[ComparedRun]:
    """Raises: UsageError for fewer than two, for what is named twice, and for what holds no predictions."""
    entries = [entry for text in texts for entry in _named(options, text)]
    names = [entry.run.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"Run '{name}' is named twice: a run cannot be compared with itself.")
    if len(entries) < 2:
        raise UsageError("--compare needs two runs or prediction files, or more: name them.")
    return entries


def _named(options: ReportOptions, text: str) -> Iterator[ComparedRun]:
    """A run or a file; for a grid or repeats, their runs."""
    home = paths.home()
    if not (home / "predictions" / text).exists() and shards.expand_to_shards(home, (text,)) != (text,):
        raise UsageError(f"'{text}' is there in shards only: make one result of them first with 'report.py {text}'.")
    run = find_run(home, text)
    if run is None:
        scoring = inputs.from_file(options, Path(text))
        yield ComparedRun(run=scoring.run, scoring=scoring)
        return
    manifest = run.manifest()
    if not manifest.group:
        yield ComparedRun(run=run)
        return
    for member in (Run(home, each.run) for each in manifest.runs):
        if member.exists():
            yield ComparedRun(run=member, group=run.name)
        else:
            say(f"{NOTE}'{member.name}' of '{run.name}' was never started: it is left out")


def _with_prior(entries: Sequence[ComparedRun]) -> list[ComparedRun]:
    """These, and all runs whose results selected their tasks.

    Raises: UsageError when one of them is missing.
    """
    found = {entry.run.name: entry for entry in entries}
    queue = list(entries)
    for entry in queue:
        prior = entry.run.manifest().prior if entry.run.exists() else ()
        more = [ComparedRun(run=Run(paths.home(), name)) for name in prior if name not in found]
        selected_tasks.refuse_unknown(entry.run.name, (each.run for each in more))
        found.update((each.run.name, each) for each in more)
        queue += more
    return list(found.values())


def _target(name: str, names: Sequence[str]) -> Run:
    """Where the comparison is kept.

    Raises: UsageError when something else is there.
    """
    whole = name or "--".join(("compare", *names))
    if not name and len(whole) > LONGEST:
        digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
        whole = f"{whole[: LONGEST - 9]}-{digest}"
    found = Run(paths.home(), whole)
    earlier = read_json(found.results_path) if found.results_path.is_file() else {"kind": KIND}
    if found.exists() or not isinstance(earlier, dict) or earlier.get("kind") != KIND:
        raise UsageError(f"There is a run '{whole}' already: give the comparison another name with --run.")
    return found


def _refuse_other_benchmarks(entries: Sequence[ComparedRun]) -> None:
    """Before anything is scored.

    Raises: UsageError.
    """
    known = [_benchmark(entry) for entry in entries]
    for other in known[1:]:
        refuse_other_benchmark(known[0], other)


def _benchmark(entry: ComparedRun) -> Side:
    """What is known of a run before it is scored: its benchmark."""
    if entry.scoring:
        provenance = entry.scoring.benchmark.provenance
        return unscored(entry.run.name, Manifest(), provenance["source"], provenance["digest"])
    manifest = history.identified(entry.run)
    return unscored(entry.run.name, Manifest(), manifest.setting("benchmark"), manifest.setting("benchmark_digest"))


def _scored(options: ReportOptions, entry: ComparedRun) -> tuple[Side, bool]:
    """With its results, and whether nothing is left out of them."""
    run, whole = entry.run, entry.scoring is None or not entry.scoring.problems
    results = None if options.fresh else _scored_before(entry)
    if results is None:
        say(f"Compare: {run.name} is scored")
        _, scored = score_run(options, entry.scoring or inputs.from_run(options, run))
        write.write_beside(run, masked(scored))
        results = read_results(run.results_path)
    whole = whole and not results.not_measured and not results.shards.missing
    return Side(name=run.name, results=results, config=read_config(run.config_path)), whole


def _scored_before(entry: ComparedRun) -> EarlierResults | None:
    """Its results, if they are of exactly the predictions that it has now."""
    run = entry.run
    if not run.exists() or not run.results_path.is_file():
        return None
    with suppress(UsageError):
        # What cannot be read is made anew.
        results = read_results(run.results_path)
        return results if _covers(entry, results) else None
    return None


def _covers(entry: ComparedRun, results: EarlierResults) -> bool:
    run = entry.run
    scored, skipped = {each.instance_id for each in results.instances}, set(results.skipped)
    missing = set[str]()
    if run.manifest().holds_predictions:
        found = history.read(run)
        predicted, missing = set(found.records), set(found.not_predicted)
        files = [run.prediction_path(instance_id) for instance_id in predicted]
    else:
        predicted, files = _in_bundle(entry, scored | skipped), [run.bundle_path]
    newest = max((path.stat().st_mtime_ns for path in files), default=0)
    return (
        scored <= predicted <= scored | skipped
        and set(results.not_measured) - scored == missing
        and newest <= run.results_path.stat().st_mtime_ns
        # A file may have been scored as another benchmark's before.
        and (entry.scoring is None or results.provenance.benchmark == dict(entry.scoring.benchmark.provenance))
    )


def _in_bundle(entry: ComparedRun, known: Collection[str]) -> set[str]:
    """Predictions made elsewhere.

    Raises: UsageError when there are others than those that are known.
    """
    if entry.scoring:
        return {each.instance_id for each in entry.scoring.submissions}
    return set(predictions_file.read_bundle(entry.run.bundle_path, known))
