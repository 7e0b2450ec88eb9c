"""What report.py prints at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from retrial.calibration import ADVICE, MORE_TIME, Worth
from retrial.summary import Report, totals
from retrial.words import printable, some

SHOWN = 100
"""Characters of a reason."""
REASONS = 8
LISTED = 60
"""Runs with more instances than this are summed up only; results.json lists them all."""


def render(report: Report, content: Mapping[str, Any]) -> str:
    parts = []
    if 0 < len(report.scored) <= LISTED:
        shown = _references if report.provenance.get("kind") == "gold" else _instances
        parts.append(shown(content["instances"]))
    if len(content["by_language"]) > 1:
        parts.append(_languages(content["by_language"]))
    if content["ladder"]:
        parts.append(ladder(content["ladder"], scored=True))
    parts.append(_headline(report, content))
    return "\n\n".join(parts)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be, the last one free."""
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *(line(row) for row in rows)])


def _instances(instances: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for row in instances:
        tries = f"{row['try']} of {row['tries']}" if row["tries"] else "-"
        rows.append((row["instance_id"], row["outcome"], _passed(row), tries, _short(row["reason"])))
    return aligned(("instance", "outcome", "tests", "try", "reason"), rows)


def _references(instances: Sequence[Mapping[str, Any]]) -> str:
    """What the reference solutions showed: there is no try to tell of, but a proof."""
    rows = [
        (
            row["instance_id"],
            row["outcome"],
            _passed(row),
            f"{row['seconds']:.2f}",
            row["proof"] or "-",
            _short(row["reason"] or "; ".join(each["of"] for each in row["canaries"])),
        )
        for row in instances
    ]
    return aligned(("instance", "outcome", "tests", "seconds", "proof", "canaries, or reason"), rows)


def _passed(row: Mapping[str, Any]) -> str:
    shown = (row.get("tests_required_passed", row["tests_passed"]), row.get("tests_required", len(row["tests"])))
    return f"{shown[0]}/{shown[1]}" if row["tests"] else "-"


def _short(text: str) -> str:
    """One line; of a long one both ends, for what is wrong may stand at either."""
    line = printable(text)
    return line if len(line) <= SHOWN else f"{line[: SHOWN // 2]} … {line[-(SHOWN // 2 - 3) :]}"


def _languages(by_language: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            name,
            str(row["of"]),
            str(row["resolved"]),
            f"{row['percent']:.1f} %",
            f"{row['tests']['passed']}/{row['tests']['total']}",
        )
        for name, row in by_language.items()
    ]
    return aligned(("language", "measured", "resolved", "rate", "tests"), rows)


def ladder(rungs: Sequence[Mapping[str, Any]], *, scored: bool) -> str:
    """What each rung brought; what is resolved is known only when it was scored."""
    rows = [
        (
            row["rung"],
            str(row["attempts"]),
            f"{row['plausible']}" + (f" + {row['unverified']} unverified" if row["unverified"] else ""),
            *((str(row["resolved"]),) if scored else ()),
            str(row["num_malformed_responses"]),
            _tokens(row),
            money(row["cost"]),
            _each(row["cost_per_plausible"]),
        )
        for row in rungs
    ]
    resolved = ("resolved",) if scored else ()
    header = ("rung", "attempts", "plausible", *resolved, "malformed", "tokens in / out", "cost", "each plausible")
    return aligned(header, rows)


def comparison(content: Mapping[str, Any]) -> str:
    """The runs of a grid side by side."""
    header = (
        *("model", "format", "resolved", "rate", "common", "turn 1", "turn 2", "well formed", "malformed"),
        *("lazy", "syntax", "tokens in / out", "cost", "each resolved", "s/case"),
    )
    by_format, by_model, common = content["by_format"], content["by_model"], content["common"]
    rows = [_compared(row["model"], row["edit_format"], row) for row in content["runs"]]
    if len(by_model) > 1:
        rows += [_compared("all", name, row) for name, row in by_format.items()]
    if len(by_format) > 1:
        rows += [_compared(name, "all", row) for name, row in by_model.items()]
    lines = [
        f"measured by all {common['measured_by_all']} of {common['of']} tasks (column common: of these alone)",
        *(f"not measured    {row['not_measured']} in {row['run']}" for row in content["runs"] if row["not_measured"]),
        *(f"not started     {name}" for name in content["not_started"]),
    ]
    return f"{aligned(header, rows)}\n\n" + "\n".join(lines)


def _compared(model: str, edit_format: str, row: Mapping[str, Any]) -> tuple[str, ...]:
    common = row["rate_common"]
    return (
        model,
        edit_format,
        f"{row['resolved']}/{row['of']}",
        f"{row['percent']:.1f} % ({row['low']:.0f} to {row['high']:.0f})",
        f"{common['resolved']}/{common['of']}",
        _share_of_cases(row, "pass_rate_1"),
        _share_of_cases(row, "pass_rate_2"),
        _share_of_cases(row, "percent_cases_well_formed"),
        str(row.get("num_malformed_responses", "-")),
        str(row.get("lazy_comments", "-")),
        str(row.get("syntax_errors", 0) + row.get("indentation_errors", 0)),
        _tokens(row),
        money(row["cost"]),
        _each(row["cost_per_resolved"]),
        str(row.get("seconds_per_case", "-")),
    )


def calibration(content: Mapping[str, Any]) -> str:
    """What report.py --calibrate found out, and what to do about it."""
    instances = content["instances"]
    listed = instances if len(instances) <= LISTED else [row for row in instances if row["advice"]]
    rows = [
        (
            row["instance_id"],
            row["worth"].replace("_", " "),
            f"{row['gold_passed']}/{len(row['gold'])}",
            row["stub"]["outcome"].replace("_", " "),
            " / ".join(f"{row['seconds'][name]:.2f}" for name in ("min", "median", "max")),
            f"{row['seconds']['limit']:g}",
            row["proof"] or "-",
        )
        for row in listed
    ]
    header = ("instance", "worth", "gold", "stub", "seconds min / median / max", "limit", "proof")
    return "\n\n".join([*([aligned(header, rows)] if rows else []), _found(content)])


def _found(content: Mapping[str, Any]) -> str:
    """How many there are of each, and of those that need somebody's care what was seen and what to do."""
    totals, instances = content["totals"], content["instances"]
    lines = [f"sound         {totals['sound']}"]
    for worth in (Worth.FLAKY, Worth.BROKEN, Worth.STUB_PASSES):
        rows = [row for row in instances if row["worth"] == worth]
        lines.append(f"{worth.replace('_', ' '):13} {len(rows)}" + (f": {ADVICE[worth]}" if rows else ""))
        lines += [f"  {row['instance_id']}: {row['void']}" for row in rows]
    slow = [(row["instance_id"], row["seconds"]) for row in instances if row["seconds"]["slow"]]
    lines.append(f"slow          {len(slow)}" + (f": {MORE_TIME}" if slow else ""))
    lines += [f"  {name}: its reference took {took['max']:.1f} of {took['limit']:g} s" for name, took in slow]
    for name in ("not_measured", "skipped"):
        title = name.replace("_", " ")
        lines += [f"{title:13} {totals[name]}", *_reasons(title, content[name])]
    proofs = ", ".join(f"{name} {number}" for name, number in sorted(content["proofs"].items()))
    return "\n".join([*lines, f"proof         {proofs or '-'}"])


def _share_of_cases(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name]:.1f} %" if name in row else "-"


def _tokens(row: Mapping[str, Any]) -> str:
    return f"{row['prompt_tokens']:,} / {row['completion_tokens']:,}"


def _each(cost: float | None) -> str:
    """Unknown, or of nothing."""
    return "-" if cost is None else money(cost)


def money(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.4f} USD"


def _headline(report: Report, content: Mapping[str, Any]) -> str:
    shown, counted = content["rate"], totals(report)
    why = Counter(str(row.verdict.outcome) for row in report.measured if not row.verdict.resolved)
    details = ", ".join(f"{name.replace('_', ' ')} {number}" for name, number in why.most_common())
    lines = [
        f"resolved      {counted['resolved']}",
        f"unresolved    {counted['unresolved']}" + (f"  ({details})" if details else ""),
        f"not measured  {counted['not_measured']}",
        f"skipped       {counted['skipped']}",
        *_reasons("skipped", report.skipped),
        f"rate          {_percent(shown)} of {shown['of']} measured"
        f"{', the visible tests are the acceptance tests' if shown['visible_is_hidden'] else ''}"
        f"{', visible tests by the hidden ones (original)' if 'original' in str(content['visible_tests']) else ''}"
        f"{', with retries' if shown['attempts'] == '2+' else ''}",
    ]
    lines += _reasons("not measured", report.not_measured)
    lines += _calibrated(report, content)
    whole = content["rate_of_benchmark"]
    if whole["of"] != shown["of"]:
        lines.append(
            f"of benchmark  {_percent(whole)} of all {whole['of']} tasks, the missing ones counted as unresolved"
        )
    if report.official_differs:
        lines.append(f"differs       from the official verdict: {', '.join(report.official_differs)}")
    lines += _tamper(content["tamper"])
    if report.records:
        lines += _statistics(content["statistics"], report.benchmark_size, report.unsettled)
    return "\n".join(lines)


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
    return [f"tamper        {', '.join(parts)} (of these patches: {some(found['review'])})"] if parts else []


def _unsettled(more: float | None) -> str:
    if more == 0.0:
        return ""
    return f", and {'nobody knows what' if more is None else f'up to {money(more)}'} for replies that did not arrive"


def _statistics(found: Mapping[str, Any], size: int, more: float | None) -> list[str]:
    lines = [
        f"plus one      {found['plus_one_percent']:.1f} %, were one more measured and resolved",
        f"plausible     {_share(found, 'plausible')}, of which resolved {_share(found, 'resolved_plausible')}",
        f"gold files    found in {_share(found, 'gold_files_found')}, "
        f"of which resolved {found['resolved_gold_files_found']}",
        f"cost          {money(found['spent'])}{_unsettled(more)}; {money(found['cost_per_instance'])} a task, "
        f"expected for all {size}: {money(found['expected_cost'])}",
    ]
    if found["unverified"]:
        lines.insert(2, f"unverified    {found['unverified']}, of which resolved {found['resolved_unverified']}")
    return lines


def _share(found: Mapping[str, Any], name: str) -> str:
    percent = found[f"{name}_percent"]
    return f"{found[name]}" + ("" if percent is None else f" ({percent:.1f} %)")


def _reasons(title: str, reasons: Mapping[str, str]) -> list[str]:
    """Each reason once, with how many it holds for."""
    counted = Counter(_short(why) for why in reasons.values())
    return [f"  {title}: {number} × {why}" for why, number in counted.most_common(REASONS)]


def _percent(shown: Mapping[str, Any]) -> str:
    return f"{shown['percent']:.1f} % (95 % interval {shown['low']:.1f} to {shown['high']:.1f})"
