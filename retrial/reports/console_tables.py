"""Tables that both programs print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from retrial.grading.calibration import ADVICE, MORE_TIME, TaskQuality
from retrial.reports import tally
from retrial.system.console import money, one_line, printable

SHOWN = 100
"""Characters of a reason."""
REASONS = 8
LISTED = 60
"""Runs with more instances than this are summed up only; results.json lists them all."""


def of_run(content: Mapping[str, Any]) -> list[str]:
    """Instances, if they are not too many; languages; rungs."""
    parts = []
    if 0 < len(content["instances"]) <= LISTED:
        shown = _references if content["provenance"].get("kind") == "gold" else _instances
        parts.append(shown(content["instances"]))
    if len(content["by_language"]) > 1:
        parts.append(_languages(content["by_language"]))
    if content["ladder"]:
        parts.append(ladder(content["ladder"], scored=True))
    return parts


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need to be, the last one free."""
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(one_line(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *(line(row) for row in rows)])


def _instances(instances: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for row in instances:
        tries = f"{row['try']} of {row['tries']}" if row["tries"] else "-"
        rows.append((row["instance_id"], row["outcome"], tally.shown(row), tries, short(row["reason"])))
    return aligned(("instance", "outcome", "tests", "try", "reason"), rows)


def _references(instances: Sequence[Mapping[str, Any]]) -> str:
    """What the reference solutions showed: there is no try to tell of, but a proof."""
    rows = [
        (
            row["instance_id"],
            row["outcome"],
            tally.shown(row),
            f"{row['seconds']:.2f}",
            row["proof"] or "-",
            short(row["reason"] or "; ".join(each["of"] for each in row["canaries"])),
        )
        for row in instances
    ]
    return aligned(("instance", "outcome", "tests", "seconds", "proof", "canaries, or reason"), rows)


def short(text: str) -> str:
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


def rate(found: Mapping[str, Any]) -> str:
    """With its interval, in short; of nothing there is none."""
    return f"{found['percent']:.1f} % ({found['low']:.0f} to {found['high']:.0f})" if found["of"] else "-"


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
        rate(row),
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
    for worth in (TaskQuality.FLAKY, TaskQuality.BROKEN, TaskQuality.STUB_PASSES):
        rows = [row for row in instances if row["worth"] == worth]
        lines.append(f"{worth.replace('_', ' '):13} {len(rows)}" + (f": {ADVICE[worth]}" if rows else ""))
        lines += [f"  {row['instance_id']}: {row['void']}" for row in rows]
    slow = [(row["instance_id"], row["seconds"]) for row in instances if row["seconds"]["slow"]]
    lines.append(f"slow          {len(slow)}" + (f": {MORE_TIME}" if slow else ""))
    lines += [f"  {name}: its reference took {took['max']:.1f} of {took['limit']:g} s" for name, took in slow]
    for name in ("not_measured", "skipped"):
        title = name.replace("_", " ")
        lines += [f"{title:13} {totals[name]}", *reasons(title, content[name])]
    proofs = ", ".join(f"{name} {number}" for name, number in sorted(content["proofs"].items()))
    return "\n".join([*lines, f"proof         {proofs or '-'}"])


def _share_of_cases(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name]:.1f} %" if name in row else "-"


def _tokens(row: Mapping[str, Any]) -> str:
    return f"{row['prompt_tokens']:,} / {row['completion_tokens']:,}"


def _each(cost: float | None) -> str:
    """Unknown, or of nothing."""
    return "-" if cost is None else money(cost)


def reasons(title: str, found: Mapping[str, str]) -> list[str]:
    """Each reason once, with how many it holds for."""
    counted = Counter(short(why) for why in found.values())
    return [f"  {title}: {number} × {why}" for why, number in counted.most_common(REASONS)]
