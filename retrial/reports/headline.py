"""What report.py prints at the end: tables, what to know of them, and last the few lines that people paste."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence

from retrial import __version__
from retrial.models.prices import no_price
from retrial.reports import tables
from retrial.reports.analysis import ladder_value
from retrial.reports.analysis.aider_summary import Quality, Statistics
from retrial.reports.analysis.selected_tasks import what_was_left
from retrial.reports.records import Results, TamperTotals, UnmeasuredAttempt
from retrial.reports.results import Report
from retrial.reports.tables import LISTED, reasons
from retrial.system.console import first_few, money, one_line
from retrial.types import Outcome

GREEN, RED, YELLOW, BOLD, PLAIN = "\033[32m", "\033[31m", "\033[33m", "\033[1m", "\033[0m"
_FAMILIES = {"resolved": GREEN, "unresolved": RED, "not measured": YELLOW}
_OUTCOMES = {str(each): _FAMILIES[each.family] for each in Outcome}
_CELL = re.compile(rf"(?<=  )({'|'.join(_OUTCOMES)})(?=  |$)", re.MULTILINE)
_RATE = re.compile(r"^rate  .*$", re.MULTILINE)


def render(report: Report, results: Results) -> str:
    remarks = [] if report.agent_failed else _remarks(report, results)
    told = ("\n".join(map(one_line, lines)) for lines in (remarks, summary(report, results)))
    return "\n\n".join(filter(None, [*tables.of_run(results), *told]))


def _remarks(report: Report, results: Results) -> list[str]:
    """Besides the headline: where it comes from, and what else the same numbers say."""
    whole = results.rate_of_benchmark
    lines = [*reasons("skipped", report.skipped), *reasons("not measured", report.not_measured)]
    lines += _calibrated(report, results)
    if whole.of != results.rate.of:
        lines.append(f"of benchmark  {whole.text} of all {whole.of} tasks, the missing ones counted as unresolved")
    if report.prior:
        lines.append(f"selection     {what_was_left(report.prior)}; the rate covers only those")
    if report.official_differs:
        lines.append(f"differs       from the official verdict: {', '.join(report.official_differs)}")
    if report.records:
        lines += _statistics(results.statistics)
    lines += [*ladder_value.describe_picker(results.picker), *ladder_value.describe_economics(results.economics)]
    return lines + _unmeasured_attempts(results.not_measured_attempts)


def summary(report: Report, results: Results) -> list[str]:
    """Ten lines at the most, which say by themselves what was measured, how, and with what result."""
    shown, counted = results.rate, results.totals
    why = Counter(str(row.verdict.outcome) for row in report.measured if not row.verdict.resolved)
    details = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in why.most_common())
    date = f"{report.started[:10]}, " if report.started else ""
    return [
        f"{results.benchmark}, {', '.join(results.by_model) or 'nothing'}, {date}Retrial {__version__}",
        f"resolved      {counted.resolved}",
        f"unresolved    {counted.unresolved}" + (f"  ({details})" if details else ""),
        f"not measured  {counted.not_measured}",
        f"skipped       {counted.skipped}",
        f"rate          {f'{shown.text} of {shown.of} measured' if shown.of else 'none: nothing was measured'}"
        f"{', the visible tests are the acceptance tests' if shown.visible_is_hidden else ''}"
        f"{', visible tests by the hidden ones (original)' if 'original' in str(results.visible_tests) else ''}"
        f"{', with retries' if shown.attempts == '2+' else ''}",
        *(_turns(results.aider.quality) if results.aider else ()),
        *_tamper(results.tamper),
        *(_cost(results.statistics, report) if report.records else ()),
    ]


def _turns(quality: Quality) -> list[str]:
    """Of first attempts, as leaderboards count."""
    rates = {"first": quality.pass_rate(1), "second": quality.pass_rate(2)}
    passed = [f"{title} {rate:.1f} %" for title, rate in rates.items() if rate is not None]
    if not passed:
        return []
    return [f"turns         {', '.join(passed)}; well formed {quality.percent_cases_well_formed:.1f} %"]


def _unmeasured_attempts(found: Sequence[UnmeasuredAttempt]) -> list[str]:
    """They count nowhere: what they are stays unknown."""
    why = {f"{each.instance_id} {each.number}": each.reason for each in found}
    told = f"attempts      {len(found)} that were not chosen could not be measured: the same command tries again"
    return [told, *reasons("not measured", why)] if found else []


def _calibrated(report: Report, results: Results) -> list[str]:
    """The rate without tasks that are void here, and whether anybody has looked which these are."""
    found, ran = results.rate_calibrated, any(row.verdict.seconds for row in report.measured)
    never = ran and not results.totals.calibrated
    command = f"report.py --calibrate -b {_source(report)}"
    if not report.void:
        return [f"calibrated    never here: {command}"] if never else []
    told = f" (never calibrated: {command})" if never else ""
    lines = [f"calibrated    {found.text} of {found.of}, without {len(report.void)} void here{told}"]
    return lines + [f"  void: {name}: {why}" for name, why in list(report.void.items())[:LISTED]]


def _source(report: Report) -> str:
    """What `-b` takes."""
    benchmark = report.provenance.get("benchmark")
    return str(benchmark["source"]) if isinstance(benchmark, Mapping) else report.benchmark


def _tamper(found: TamperTotals) -> list[str]:
    """Nothing to say is not said."""
    said = {
        "tampered with their tests": found.tampered,
        "touched what they may not": found.touched,
        "have lines to look at": found.suspicious,
    }
    parts = [f"{number} {text}" for text, number in said.items() if number]
    return [f"tamper        {', '.join(parts)} (of these patches: {first_few(found.review)})"] if parts else []


def _unsettled(more: float | None) -> str:
    if more == 0.0:
        return ""
    return f", and {'nobody knows what' if more is None else f'up to {money(more)}'} for replies that did not arrive"


def _statistics(found: Statistics) -> list[str]:
    plausible = _share(found.plausible, found.plausible_percent)
    right = _share(found.resolved_plausible, found.resolved_plausible_percent)
    gold = _share(found.gold_files_found, found.gold_files_found_percent)
    lines = [
        f"plus one      {found.plus_one_percent:.1f} %, were one more measured and resolved",
        f"plausible     {plausible}, of which resolved {right}",
        f"gold files    found in {gold}, of which resolved {found.resolved_gold_files_found}",
    ]
    if found.unverified:
        lines.insert(2, f"unverified    {found.unverified}, of which resolved {found.resolved_unverified}")
    return lines


def _cost(found: Statistics, report: Report) -> list[str]:
    if found.spent is None:
        why = no_price(report.unpriced) if report.unpriced else "some costs were not reported"
        return [f"cost          unknown ({why})"]
    more = (
        f"{money(found.cost_per_instance)} a task, "
        f"expected for all {report.benchmark_size}: {money(found.expected_cost)}"
    )
    return [f"cost          {money(found.spent)}{_unsettled(report.unsettled)}; {more}"]


def _share(number: int | None, percent: float | None) -> str:
    return f"{number}" + ("" if percent is None else f" ({percent:.1f} %)")


def _has_colours() -> bool:
    """As https://no-color.org asks."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str) -> str:
    """Cells of tables that hold an outcome, and the headline."""
    if not _has_colours():
        return text
    text = _CELL.sub(lambda found: f"{_OUTCOMES[found[1]]}{found[1]}{PLAIN}", text)
    return _RATE.sub(lambda found: f"{BOLD}{found[0]}{PLAIN}", text)
