"""`--fail-under` and `--baseline`: whether a result is good enough for whoever asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports.analysis import selected_tasks
from retrial.reports.analysis.pairs import Pair, pair
from retrial.reports.analysis.run_conditions import (
    Side,
    read_back,
    read_config,
    read_results,
    refuse_other_benchmark,
    unscored,
)
from retrial.reports.analysis.stats import Rate
from retrial.reports.records import Results
from retrial.store.history import find_run
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.console import NOTE, one_line, say


def refuse(options: ReportOptions, texts: Sequence[str] = ()) -> None:
    """What cannot be judged is not worth scoring; `texts` are what is to be scored, as far as it was named.

    Raises: UsageError.
    """
    if options.fail_under is not None and not 0 <= options.fail_under <= 100:
        raise UsageError(f"--fail-under takes a percentage, 0 to 100, not {options.fail_under:g}.")
    if not options.baseline:
        return
    path, before = _baseline(options.baseline)
    for run in (find_run(paths.home(), text) for text in texts):
        if run is None:
            continue
        if len(texts) == 1 and run.results_path.resolve() == path.resolve():
            raise UsageError(f"{_own(run.name)}: name another run with --baseline, or a copy of its results.json.")
        _refuse_incomparable(before, run)


def check(options: ReportOptions, results: Results) -> int:
    """The exit code of what was missed; 0 when nothing was. Says of each gate how it went."""
    below = options.fail_under is not None and _below(options.fail_under, results.rate)
    worse = bool(options.baseline) and _worse(options.baseline, results)
    return ExitCode.MISSED if below or worse else ExitCode.DONE


def _below(wanted: float, rate: Rate) -> bool:
    if not rate.of:
        print(f"--fail-under {wanted:g}: missed. Nothing was measured.")
        return True
    # Not what is rounded for people: 2 of 6 are a third.
    missed = 100 * rate.resolved / rate.of < wanted
    print(f"--fail-under {wanted:g}: {'missed' if missed else 'kept'}. {rate.percent:g} % are resolved.")
    return missed


def _worse(text: str, results: Results) -> bool:
    """Significantly, and not just by chance; also when that cannot be told at all."""
    try:
        path, before = _baseline(text)
        run = Run(paths.home(), results.run)
        if run.results_path.resolve() == path.resolve():
            raise UsageError(f"{_own(run.name)}.")
        # An earlier result of the same run has its name.
        name = f"{run.name} (now)" if run.name == before.name else run.name
        now = Side(name=name, results=read_back(results), config=read_config(run.config_path))
        found = _pair(before, now)
    except UsageError as error:
        print(one_line(f"--baseline {text}: missed. {error}"))
        return True
    for warning in found.differences.warnings:
        say(one_line(f"{NOTE}{warning}"))
    missed = not found.common or bool(found.withheld) or (found.more_than_chance and found.difference < 0)
    print(one_line(f"--baseline {text}: {'missed' if missed else 'kept'}. {found.sentence}"))
    return missed


def _pair(before: Side, now: Side) -> Pair:
    """The two, each with the runs that selected its tasks.

    Raises: UsageError when one of those has no results here.
    """
    known = {before.run: before, now.run: now}

    def find(whose: str, name: str) -> Side:
        if name in known:
            return known[name]
        selected_tasks.refuse_unknown(whose, [Run(paths.home(), name)])
        return _baseline(name)[1]

    return pair(*(selected_tasks.completed(side, partial(find, side.name)) for side in (before, now)))


def _baseline(text: str) -> tuple[Path, Side]:
    """What is compared with: a run, a results.json, or a folder that has one.

    Raises: UsageError.
    """
    run = find_run(paths.home(), text)
    given = Path(text)
    path = run.results_path if run else given / "results.json" if given.is_dir() else given
    if not path.is_file():
        first = f": score it first with 'report.py {run.name}'" if run else ""
        raise UsageError(f"The baseline '{text}' has no results.json{first}.")
    results = read_results(path)
    config = read_config(path.with_name("run.json"))
    return path, Side(name=results.run or path.parent.name, results=results, config=config)


def _refuse_incomparable(before: Side, run: Run) -> None:
    """As far as it is known before it is scored. Raises: UsageError."""
    config = read_config(run.config_path)
    now = unscored(run.name, config, config.setting("benchmark"), config.setting("benchmark_digest"))
    if config.setting("benchmark") is not None:
        refuse_other_benchmark(before, now)
    if now.contains(before) or before.contains(now):
        later, first = (now, before) if now.contains(before) else (before, now)
        raise UsageError(
            f"Run '{later.name}' is made of '{first.name}', or ran only the tasks that it left (--prior): "
            "neither can be the baseline of the other. Name another, or run all tasks without --prior."
        )


def _own(name: str) -> str:
    return f"Run '{name}' cannot be its own baseline"
