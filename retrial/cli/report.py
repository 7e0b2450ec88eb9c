"""report.py: bundle the predictions, score each in a fresh sandbox, write results."""

from __future__ import annotations

from collections.abc import Sequence

from retrial.benchmarks import shards
from retrial.cli import arguments, compare, gate, score_groups
from retrial.cli.calibrate import calibrate
from retrial.cli.doctor import examine
from retrial.errors import ExitCode, UsageError
from retrial.options import ReportOptions
from retrial.reports import headline, write
from retrial.reports.analysis import repeats
from retrial.sandboxes.prepare import remove_orphans
from retrial.score import inputs, rescore
from retrial.score.inputs import ScoringInput
from retrial.score.run import score_run
from retrial.store.runs import find_run
from retrial.system import console, paths, scratch

ALONE = ("gold", "null", "calibrate", "doctor")
DESCRIPTION = "Score predictions in fresh sandboxes with the acceptance tests, and write results.json."


def main(argv: Sequence[str]) -> int:
    options, rest = arguments.parse(ReportOptions, argv, DESCRIPTION, positional="RUN|FILE")
    texts = shards.expand_to_shards(paths.home(), rest)
    several = len(texts) > 1 or texts != rest
    _refuse(options, rest, several)
    scratch.refuse_missing()
    remove_orphans()
    if options.calibrate or options.doctor:
        return calibrate(options, argv) if options.calibrate else examine(options)
    if options.compare:
        return compare.run(options, rest)
    group = None if options.gold or options.null or several else inputs.find_group(rest)
    if group is not None:
        return score_groups.score(options, group)
    return _score(options, inputs.from_runs(options, texts) if several else inputs.from_command(options, rest))


def _score(options: ReportOptions, scoring: ScoringInput) -> int:
    """One run: scored, told, written for others, and judged."""
    write.refuse(options, scoring.run)
    score = rescore.score if options.repeat > 1 else score_run
    report, content = score(options, scoring)
    told = filter(None, [report.agent_failed, repeats.told(content), headline.render(report, content)])
    print(console.painted("\n\n".join(told)))
    print(f"\nResults: {scoring.run.results_path}")
    write.write(options, scoring.run, content)
    incomplete = report.not_measured or report.shards.get("missing") or scoring.problems
    return gate.check(options, content) or (ExitCode.NOT_MEASURED if incomplete else ExitCode.DONE)


def _refuse(options: ReportOptions, rest: Sequence[str], several: bool) -> None:
    """Raises: UsageError for what does not go together, or cannot be: before anything is scored."""
    if options.run and not several and not options.compare:
        raise UsageError("--run names the one result of several runs: give two of them, or more.")
    alone = [name for name in ALONE if getattr(options, name)]
    if len(alone) > 1 or (alone and rest):
        raise UsageError(
            "--gold, --null, --calibrate and --doctor stand alone: they need no predictions, and exclude each other."
        )
    if options.repeat > 1 and (options.calibrate or options.doctor):
        raise UsageError("--repeat scores predictions several times: leave --calibrate and --doctor out.")
    write.refuse(options)
    gate.refuse(options, () if alone else rest)
    if alone in ([], ["doctor"]) and (options.task or options.filter_category) and not _is_file(rest, several):
        raise UsageError(
            "--task and --filter-category go with --gold, --null, --calibrate and a predictions file; "
            "a run is scored whole."
        )


def _is_file(rest: Sequence[str], several: bool) -> bool:
    """Whether predictions made elsewhere are to be scored. Raises: UsageError when there is nothing of that name."""
    return len(rest) == 1 and not several and find_run(paths.home(), rest[0]) is None
