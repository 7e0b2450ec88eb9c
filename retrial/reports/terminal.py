"""What both programs print on a terminal: tables, and what report.py says at the end.

Last come the few lines that people paste.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from retrial import __version__
from retrial.models.prices import no_price
from retrial.system.console import first_few, money, one_line, percent, printable
from retrial.types import Outcome, Status

if TYPE_CHECKING:
    # Phase 1 prints a table of its ladder, and has no use for the records of results.json.
    from retrial.reports.analysis.aider_summary import Quality, Statistics
    from retrial.reports.analysis.cases import Took
    from retrial.reports.analysis.rungs import LadderRow
    from retrial.reports.records import InstanceRow, LanguageRow, Results, TamperTotals, UnmeasuredAttempt
    from retrial.reports.results import Report

SHOWN = 100
"""Characters of a reason."""
REASONS = 8
LISTED = 60
"""Runs with more instances than this are summed up only; results.json lists them all."""
WORDS = {Status.XFAILED: "expected to fail"}
"""For a status whose name does not speak for itself."""
GREEN, RED, YELLOW, BOLD, PLAIN = "\033[32m", "\033[31m", "\033[33m", "\033[1m", "\033[0m"
_FAMILIES = {"resolved": GREEN, "unresolved": RED, "not measured": YELLOW}
_OUTCOMES = {str(each): _FAMILIES[each.family] for each in Outcome}
_CELL = re.compile(rf"(?<=  )({'|'.join(_OUTCOMES)})(?=  |$)", re.MULTILINE)
_RATE = re.compile(r"^rate  .*$", re.MULTILINE)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return it with columns as wide as they need to be, the last one free."""
    lines = [[str(cell) for cell in cells] for cells in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    padded = ([one_line(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)] for cells in lines)
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def of_run(results: Results) -> list[str]:
    """Instances, if they are not too many; languages; rungs."""
    parts = []
    if 0 < len(results.instances) <= LISTED:
        shown = _references if results.provenance.get("kind") == "gold" else _instances
        parts.append(shown(results.instances))
    if len(results.by_language) > 1:
        parts.append(_languages(results.by_language))
    if results.ladder:
        parts.append(ladder(results.ladder, scored=True))
    return parts


def _instances(instances: Sequence[InstanceRow]) -> str:
    rows = []
    for row in instances:
        tries = f"{row.number} of {row.tries}" if row.tries else "-"
        rows.append((row.instance_id, row.outcome, tests_cell(row), tries, short(row.reason)))
    return table(("instance", "outcome", "tests", "try", "reason"), rows)


def _references(instances: Sequence[InstanceRow]) -> str:
    """What the reference solutions showed: there is no try to tell of, but a proof."""
    rows = []
    for row in instances:
        why = short(row.reason or "; ".join(each.of for each in row.canaries))
        rows.append((row.instance_id, row.outcome, tests_cell(row), f"{row.seconds:.2f}", row.proof or "-", why))
    header = ("instance", "outcome", "tests", "seconds", "proof", "canaries, or reason")
    return table(header, rows)


def passed_tests(row: InstanceRow) -> tuple[int, int]:
    """Of the tests that are required, where the task says which these are; else of all."""
    if row.tests_required is None or row.tests_required_passed is None:
        return row.tests_passed, len(row.tests)
    return row.tests_required_passed, row.tests_required


def tests_cell(row: InstanceRow, nothing: str = "-") -> str:
    """`36/37`; beside *resolved* with what became of the others, which did not stand in its way."""
    if not row.tests:
        return nothing
    own, total = passed_tests(row)
    return f"{own}/{total}" + (f" ({_others(row, total - own)})" if row.resolved and own < total else "")


def _others(row: InstanceRow, number: int) -> str:
    if row.tests_required is not None:
        return f"{number} accepted: not passed by the reference either"
    found = Counter(status for status in row.tests.values() if status != Status.PASSED)
    return ", ".join(f"{times} {WORDS.get(status, status)}" for status, times in found.most_common())


def short(text: str) -> str:
    """One line; of a long one both ends, for what is wrong may stand at either."""
    line = printable(text)
    return line if len(line) <= SHOWN else f"{line[: SHOWN // 2]} … {line[-(SHOWN // 2 - 3) :]}"


def _languages(by_language: Mapping[str, LanguageRow]) -> str:
    rows = [
        (name, row.rate.of, row.rate.resolved, percent(row.rate.percent), f"{row.tests.passed}/{row.tests.total}")
        for name, row in by_language.items()
    ]
    return table(("language", "measured", "resolved", "rate", "tests"), rows)


def ladder(rungs: Sequence[LadderRow], *, scored: bool) -> str:
    """What each rung brought; what is resolved is known only when it was scored."""
    rows = []
    for row in rungs:
        brought, took = row.brought, row.brought.took
        plausible = f"{brought.plausible}" + (f" + {brought.unverified} unverified" if brought.unverified else "")
        right = (brought.resolved,) if scored else ()
        costs = (tokens(took), money(took.cost), money(row.cost_per_plausible, "-"))
        rows.append((row.rung, took.attempts, plausible, *right, brought.num_malformed_responses, *costs))
    resolved = ("resolved",) if scored else ()
    header = ("rung", "attempts", "plausible", *resolved, "malformed", "tokens in / out", "cost", "each plausible")
    return table(header, rows)


def tokens(took: Took) -> str:
    return f"{took.prompt_tokens:,} / {took.completion_tokens:,}"


def reasons(title: str, found: Mapping[str, str]) -> list[str]:
    """Each reason once, with how many it holds for."""
    counted = Counter(short(why) for why in found.values())
    return [f"  {title}: {number} × {why}" for why, number in counted.most_common(REASONS)]


def render(report: Report, results: Results) -> str:
    remarks = [] if report.agent_failed else _remarks(report, results)
    told = ("\n".join(map(one_line, lines)) for lines in (remarks, summary(report, results)))
    return "\n\n".join(filter(None, [*of_run(results), *told]))


def _remarks(report: Report, results: Results) -> list[str]:
    """Besides the headline: where it comes from, and what else the same numbers say."""
    from retrial.reports.analysis import ladder_value
    from retrial.reports.analysis.selected_tasks import what_was_left

    whole = results.rate_of_benchmark
    lines = [*reasons("skipped", report.skipped), *reasons("not measured", report.not_measured)]
    lines += _calibrated(report, results)
    if whole.of != results.rate.of:
        lines.append(f"of benchmark  {whole.text} of all {whole.of} tasks, the missing ones counted as unresolved")
    if results.prior:
        lines.append(f"selection     {what_was_left(results.prior)}; the rate covers only those")
    if results.official_differs:
        lines.append(f"differs       from the official verdict: {', '.join(results.official_differs)}")
    if report.records:
        lines += _statistics(results.statistics)
    lines += [*ladder_value.describe_picker(results.picker), *ladder_value.describe_economics(results.economics)]
    return lines + _unmeasured_attempts(results.not_measured_attempts)


def summary(report: Report, results: Results) -> list[str]:
    """Ten lines at the most, which say by themselves what was measured, how, and with what result."""
    shown, counted = results.rate, results.totals
    why = Counter(str(row.verdict.outcome) for row in report.measured if not row.verdict.resolved)
    details = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in why.most_common())
    date = f"{report.manifest.started[:10]}, " if report.manifest.started else ""
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
    passed = [f"{title} {percent(rate)}" for title, rate in rates.items() if rate is not None]
    if not passed:
        return []
    return [f"turns         {', '.join(passed)}; well formed {percent(quality.percent_cases_well_formed)}"]


def _unmeasured_attempts(found: Sequence[UnmeasuredAttempt]) -> list[str]:
    """They count nowhere: what they are stays unknown."""
    why = {f"{each.instance_id} {each.number}": each.reason for each in found}
    told = f"attempts      {len(found)} that were not chosen could not be measured: the same command tries again"
    return [told, *reasons("not measured", why)] if found else []


def _calibrated(report: Report, results: Results) -> list[str]:
    """The rate without tasks that are void here, and whether anybody has looked which these are."""
    found, ran = results.rate_calibrated, any(row.verdict.seconds for row in report.measured)
    never = ran and not results.totals.calibrated
    benchmark = report.provenance.get("benchmark")
    source = benchmark["source"] if isinstance(benchmark, Mapping) else report.benchmark
    command = f"report.py --calibrate -b {source}"
    if not report.void:
        return [f"calibrated    never here: {command}"] if never else []
    told = f" (never calibrated: {command})" if never else ""
    lines = [f"calibrated    {found.text} of {found.of}, without {len(report.void)} void here{told}"]
    return lines + [f"  void: {name}: {why}" for name, why in list(report.void.items())[:LISTED]]


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
        f"plus one      {percent(found.plus_one_percent)}, were one more measured and resolved",
        f"plausible     {plausible}, of which resolved {right}",
        f"gold files    found in {gold}, of which resolved {found.resolved_gold_files_found}",
    ]
    if found.unverified:
        lines.insert(2, f"unverified    {found.unverified}, of which resolved {found.resolved_unverified}")
    return lines


def _cost(found: Statistics, report: Report) -> list[str]:
    if found.spent is None:
        why = no_price(report.manifest.unpriced) if report.manifest.unpriced else "some costs were not reported"
        return [f"cost          unknown ({why})"]
    more = (
        f"{money(found.cost_per_instance)} a task, "
        f"expected for all {report.benchmark_size}: {money(found.expected_cost)}"
    )
    return [f"cost          {money(found.spent)}{_unsettled(report.unsettled)}; {more}"]


def _share(number: int | None, share: float | None) -> str:
    return f"{number}" + ("" if share is None else f" ({percent(share)})")


def painted(text: str) -> str:
    """Cells of tables that hold an outcome, and the headline."""
    # As https://no-color.org asks.
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    text = _CELL.sub(lambda found: f"{_OUTCOMES[found[1]]}{found[1]}{PLAIN}", text)
    return _RATE.sub(lambda found: f"{BOLD}{found[0]}{PLAIN}", text)
