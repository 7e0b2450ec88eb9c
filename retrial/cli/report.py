"""report.py: bundle the predictions, score each in a fresh sandbox, write results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from retrial.benchmarks import shards
from retrial.cli import gate
from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports import terminal, write
from retrial.reports.analysis import repeats
from retrial.reports.write import Outputs
from retrial.sandboxes.prepare import remove_orphans
from retrial.score import inputs
from retrial.score.inputs import ScoringInput
from retrial.score.run import score_run
from retrial.store.history import find_run
from retrial.system import paths
from retrial.system.files import refuse_missing_scratch

ALONE = ("gold", "null", "calibrate", "doctor")


def main(options: ReportOptions, rest: tuple[str, ...], argv: Sequence[str]) -> int:
    texts = shards.expand_to_shards(paths.home(), rest)
    several = len(texts) > 1 or texts != rest
    outputs = _check(options, rest, several)
    refuse_missing_scratch()
    remove_orphans()
    if options.calibrate:
        return _calibrate(options, argv)
    if options.doctor:
        from retrial.cli.doctor import examine

        return examine(options)
    if options.compare:
        from retrial.cli import compare

        return compare.run(options, rest)
    if options.gold or options.null:
        return _score(options, outputs, inputs.from_answers(options))
    if several:
        return _score(options, outputs, inputs.from_runs(options, texts))
    run = find_run(paths.home(), rest[0]) if rest else inputs.latest()
    if run is None:
        return _score(options, outputs, inputs.from_file(options, Path(rest[0])))
    if run.manifest().group:
        from retrial.cli import score_groups

        return score_groups.score(options, run)
    return _score(options, outputs, inputs.from_run(options, run))


def _calibrate(options: ReportOptions, argv: Sequence[str]) -> int:
    from retrial.reports import calibration_table
    from retrial.score.calibrate import calibrate

    run, found = calibrate(options, argv)
    print(calibration_table.render(found))
    print(f"\nResults: {run.results_path}")
    return ExitCode.NOT_MEASURED if found.not_measured else ExitCode.DONE


def _score(options: ReportOptions, outputs: Outputs, scoring: ScoringInput) -> int:
    """One run: scored, told, written for others, and judged."""
    outputs.refuse_other_run(scoring.run)
    report, results = score_run(options, scoring)
    flaky = repeats.told(results.repeats) if results.repeats else ""
    told = filter(None, [report.agent_failed, flaky, terminal.render(report, results)])
    print(terminal.painted("\n\n".join(told)))
    print(f"\nResults: {scoring.run.results_path}")
    print("\n".join(write.write(outputs, scoring.run, results)))
    incomplete = report.not_measured or (results.shards and results.shards.missing) or scoring.problems
    missed = gate.check(options, results) if _is_gated(options) else ExitCode.DONE
    return missed or (ExitCode.NOT_MEASURED if incomplete else ExitCode.DONE)


def _is_gated(options: ReportOptions) -> bool:
    return options.fail_under is not None or bool(options.baseline)


def _check(options: ReportOptions, rest: Sequence[str], several: bool) -> Outputs:
    """Return where to write what was asked for.

    Raises: UsageError for what does not go together, or cannot be: before anything is scored.
    """
    if options.run and not several and not options.compare:
        raise UsageError("--run names the one result of several runs: give two of them, or more.")
    alone = [name for name in ALONE if getattr(options, name)]
    if len(alone) > 1 or (alone and rest):
        raise UsageError(
            "--gold, --null, --calibrate and --doctor stand alone: they need no predictions, and exclude each other."
        )
    if options.repeat > 1 and (options.calibrate or options.doctor):
        raise UsageError("--repeat scores predictions several times: leave --calibrate and --doctor out.")
    outputs = write.outputs(options)
    if _is_gated(options):
        gate.refuse(options, () if alone else rest)
    if alone in ([], ["doctor"]) and (options.task or options.filter_category) and not _is_file(rest, several):
        raise UsageError(
            "--task and --filter-category go with --gold, --null, --calibrate and a predictions file; "
            "a run is scored whole."
        )
    return outputs


def _is_file(rest: Sequence[str], several: bool) -> bool:
    """Whether predictions made elsewhere are to be scored. Raises: UsageError when there is nothing of that name."""
    return len(rest) == 1 and not several and find_run(paths.home(), rest[0]) is None
