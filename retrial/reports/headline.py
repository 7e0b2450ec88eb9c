"""What report.py prints at the end: tables, what to know of them, and last the few lines that people paste."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from retrial import __version__
from retrial.models.prices import no_price
from retrial.reports import console_tables
from retrial.reports.analysis import ladder_value, pick_quality
from retrial.reports.analysis.selected_tasks import what_was_left
from retrial.reports.console_tables import LISTED, reasons
from retrial.reports.results import Report, totals
from retrial.system.console import first_few, money, one_line


def render(report: Report, content: Mapping[str, Any]) -> str:
    remarks = [] if report.agent_failed else _remarks(report, content)
    told = ("\n".join(map(one_line, lines)) for lines in (remarks, summary(report, content)))
    return "\n\n".join(filter(None, [*console_tables.of_run(content), *told]))


def _remarks(report: Report, content: Mapping[str, Any]) -> list[str]:
    """Besides the headline: where it comes from, and what else the same numbers say."""
    whole, shown = content["rate_of_benchmark"], content["rate"]
    lines = [*reasons("skipped", report.skipped), *reasons("not measured", report.not_measured)]
    lines += _calibrated(report, content)
    if whole["of"] != shown["of"]:
        lines.append(
            f"of benchmark  {_percent(whole)} of all {whole['of']} tasks, the missing ones counted as unresolved"
        )
    if report.prior:
        lines.append(f"selection     {what_was_left(report.prior)}; the rate covers only those")
    if report.official_differs:
        lines.append(f"differs       from the official verdict: {', '.join(report.official_differs)}")
    if report.records:
        lines += _statistics(content["statistics"])
    lines += [*pick_quality.said(content["picker"]), *ladder_value.said(content["economics"])]
    return lines + _unmeasured_attempts(content["not_measured_attempts"])


def summary(report: Report, content: Mapping[str, Any]) -> list[str]:
    """Ten lines at the most, which say by themselves what was measured, how, and with what result."""
    shown, counted = content["rate"], totals(report)
    why = Counter(str(row.verdict.outcome) for row in report.measured if not row.verdict.resolved)
    details = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in why.most_common())
    return [
        f"{content['benchmark']}, {', '.join(content['by_model']) or 'nothing'}, {_date(report)}Retrial {__version__}",
        f"resolved      {counted['resolved']}",
        f"unresolved    {counted['unresolved']}" + (f"  ({details})" if details else ""),
        f"not measured  {counted['not_measured']}",
        f"skipped       {counted['skipped']}",
        f"rate          {_measured(shown)}"
        f"{', the visible tests are the acceptance tests' if shown['visible_is_hidden'] else ''}"
        f"{', visible tests by the hidden ones (original)' if 'original' in str(content['visible_tests']) else ''}"
        f"{', with retries' if shown['attempts'] == '2+' else ''}",
        *_turns(content["aider"]),
        *_tamper(content["tamper"]),
        *(_cost(content, report) if report.records else ()),
    ]


def _measured(shown: Mapping[str, Any]) -> str:
    return f"{_percent(shown)} of {shown['of']} measured" if shown["of"] else "none: nothing was measured"


def _date(report: Report) -> str:
    return f"{report.started[:10]}, " if report.started else ""


def _turns(aider: Mapping[str, Any]) -> list[str]:
    """Of first attempts, as leaderboards count."""
    names = {"pass_rate_1": "first", "pass_rate_2": "second"}
    passed = [f"{title} {aider[name]:.1f} %" for name, title in names.items() if name in aider]
    if not passed:
        return []
    return [f"turns         {', '.join(passed)}; well formed {aider['percent_cases_well_formed']:.1f} %"]


def _unmeasured_attempts(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """They count nowhere: what they are stays unknown."""
    why = {f"{each['instance_id']} {each['try']}": each["reason"] for each in found}
    told = f"attempts      {len(found)} that were not chosen could not be measured: the same command tries again"
    return [told, *reasons("not measured", why)] if found else []


def _calibrated(report: Report, content: Mapping[str, Any]) -> list[str]:
    """The rate without tasks that are void here, and whether anybody has looked which these are."""
    found, ran = content["rate_calibrated"], any(row.verdict.seconds for row in report.measured)
    never = ran and not totals(report)["calibrated"]
    command = f"report.py --calibrate -b {_source(report)}"
    if not report.void:
        return [f"calibrated    never here: {command}"] if never else []
    told = f" (never calibrated: {command})" if never else ""
    lines = [f"calibrated    {_percent(found)} of {found['of']}, without {len(report.void)} void here{told}"]
    return lines + [f"  void: {name}: {why}" for name, why in list(report.void.items())[:LISTED]]


def _source(report: Report) -> str:
    """What `-b` takes."""
    benchmark = report.provenance.get("benchmark")
    return str(benchmark["source"]) if isinstance(benchmark, Mapping) else report.benchmark


def _tamper(found: Mapping[str, Any]) -> list[str]:
    """Nothing to say is not said."""
    said = {
        "tampered": "tampered with their tests",
        "touched": "touched what they may not",
        "suspicious": "have lines to look at",
    }
    parts = [f"{found[name]} {text}" for name, text in said.items() if found[name]]
    return [f"tamper        {', '.join(parts)} (of these patches: {first_few(found['review'])})"] if parts else []


def _unsettled(more: float | None) -> str:
    if more == 0.0:
        return ""
    return f", and {'nobody knows what' if more is None else f'up to {money(more)}'} for replies that did not arrive"


def _statistics(found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"plus one      {found['plus_one_percent']:.1f} %, were one more measured and resolved",
        f"plausible     {_share(found, 'plausible')}, of which resolved {_share(found, 'resolved_plausible')}",
        f"gold files    found in {_share(found, 'gold_files_found')}, "
        f"of which resolved {found['resolved_gold_files_found']}",
    ]
    if found["unverified"]:
        lines.insert(2, f"unverified    {found['unverified']}, of which resolved {found['resolved_unverified']}")
    return lines


def _cost(content: Mapping[str, Any], report: Report) -> list[str]:
    found = content["statistics"]
    if found["spent"] is None:
        why = no_price(report.unpriced) if report.unpriced else "some costs were not reported"
        return [f"cost          unknown ({why})"]
    spent, each, expected = (money(found[name]) for name in ("spent", "cost_per_instance", "expected_cost"))
    more = f"{each} a task, expected for all {report.benchmark_size}: {expected}"
    return [f"cost          {spent}{_unsettled(report.unsettled)}; {more}"]


def _share(found: Mapping[str, Any], name: str) -> str:
    percent = found[f"{name}_percent"]
    return f"{found[name]}" + ("" if percent is None else f" ({percent:.1f} %)")


def _percent(shown: Mapping[str, Any]) -> str:
    return f"{shown['percent']:.1f} % (95 % interval {shown['low']:.1f} to {shown['high']:.1f})"
