"""Score a run several times, to find verdicts and tests that flip (`report.py --repeat`)."""

from __future__ import annotations

from dataclasses import replace

from retrial.options import ReportOptions
from retrial.reports.analysis.repeats import CONDITIONS, Repeat, flaky
from retrial.reports.records import Results
from retrial.reports.results import Report
from retrial.score.inputs import ScoringInput
from retrial.score.run import score_run
from retrial.system.console import say


def score(options: ReportOptions, scoring: ScoringInput) -> tuple[Report, Results]:
    """Scores a run `--repeat` times, each time anew. The first is the result; the others say what of it is chance."""
    times, anew = options.repeat, replace(options, fresh=True)
    say(f"Scoring 1 of {times} of {scoring.run.name}: this one counts")
    report, content = score_run(anew, scoring)
    scorings = [report.scored]
    for number in range(2, times + 1):
        say(f"Scoring {number} of {times} of {scoring.run.name}: to see what differs")
        apart = scoring.run.with_logs_in(f"scoring-{number}")
        again = replace(scoring, run=apart, merged=None, keep_first_results=True)
        scorings.append(score_run(replace(anew, attempts=False), again)[0].scored)
    content = replace(content, repeats=flaky(scorings))
    scoring.run.write_results(content)
    return report, content


def of_run(report: Report, scoring: ScoringInput, seed: int) -> Repeat:
    manifest = scoring.run.manifest()
    return Repeat(
        run=report.run,
        seed=seed,
        resolved={row.task.instance_id: row.verdict.resolved for row in report.measured},
        not_measured=report.not_measured,
        skipped=report.skipped,
        void=report.void,
        spent=report.spent,
        patches={each.instance_id: each.patch for each in scoring.submissions},
        conditions={name: getattr(manifest, name) for name in CONDITIONS},
    )
