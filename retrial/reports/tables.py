"""Tables, for a terminal and for Markdown, and those that both programs print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrial.reports.analysis.aider_summary import Quality
from retrial.reports.analysis.cases import Took
from retrial.reports.analysis.rungs import GroupRow, LadderRow, SideBySide
from retrial.reports.records import InstanceRow, LanguageRow, Results
from retrial.system.console import money, one_line, percent, printable
from retrial.types import Status

SHOWN = 100
"""Characters of a reason."""
REASONS = 8
LISTED = 60
"""Runs with more instances than this are summed up only; results.json lists them all."""
WORDS = {Status.XFAILED: "expected to fail"}
"""For a status whose name does not speak for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    header: Sequence[str]
    rows: Sequence[Sequence[object]]

    def aligned(self) -> str:
        """Return it with columns as wide as they need to be, the last one free."""
        lines = [[str(cell) for cell in cells] for cells in (self.header, *self.rows)]
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
    return Table(header=("instance", "outcome", "tests", "try", "reason"), rows=rows).aligned()


def _references(instances: Sequence[InstanceRow]) -> str:
    """What the reference solutions showed: there is no try to tell of, but a proof."""
    rows = []
    for row in instances:
        why = short(row.reason or "; ".join(each.of for each in row.canaries))
        rows.append((row.instance_id, row.outcome, tests_cell(row), f"{row.seconds:.2f}", row.proof or "-", why))
    header = ("instance", "outcome", "tests", "seconds", "proof", "canaries, or reason")
    return Table(header=header, rows=rows).aligned()


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
    return Table(header=("language", "measured", "resolved", "rate", "tests"), rows=rows).aligned()


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
    return Table(header=header, rows=rows).aligned()


def comparison(found: SideBySide) -> str:
    """The runs of a grid side by side."""
    header = (
        *("model", "format", "resolved", "rate", "common", "turn 1", "turn 2", "well formed", "malformed"),
        *("lazy", "syntax", "tokens in / out", "cost", "each resolved", "s/case"),
    )
    rows = [_compared(row.model, row.edit_format, row.row) for row in found.runs]
    if len(found.by_model) > 1:
        rows += [_compared("all", name, row) for name, row in found.by_format.items()]
    if len(found.by_format) > 1:
        rows += [_compared(name, "all", row) for name, row in found.by_model.items()]
    common = found.common
    lines = [
        f"measured by all {common.measured_by_all} of {common.of} tasks (column common: of these alone)",
        *(f"not measured    {row.not_measured} in {row.run}" for row in found.runs if row.not_measured),
        *(f"not started     {name}" for name in found.not_started),
    ]
    return f"{Table(header=header, rows=rows).aligned()}\n\n" + "\n".join(lines)


def _compared(model: str, edit_format: str, row: GroupRow) -> tuple[object, ...]:
    columns, took = row.columns, row.columns.took
    rates = (columns.rate.share, columns.rate.short, row.rate_common.share)
    costs = (tokens(took), money(took.cost), money(columns.cost_per_resolved, "-"))
    seconds = columns.quality.seconds_per_case if columns.quality else "-"
    return (model, edit_format, *rates, *_written(columns.quality), *costs, seconds)


def _written(quality: Quality | None) -> tuple[object, ...]:
    """Where nothing was answered, nothing was written."""
    if quality is None:
        return ("-", "-", "-", "-", "-", "0")
    shares = (quality.pass_rate(1), quality.pass_rate(2), quality.percent_cases_well_formed)
    wrong = quality.syntax_errors + quality.indentation_errors
    return (*map(percent, shares), quality.num_malformed_responses, quality.lazy_comments, wrong)


def tokens(took: Took) -> str:
    return f"{took.prompt_tokens:,} / {took.completion_tokens:,}"


def reasons(title: str, found: Mapping[str, str]) -> list[str]:
    """Each reason once, with how many it holds for."""
    counted = Counter(short(why) for why in found.values())
    return [f"  {title}: {number} × {why}" for why, number in counted.most_common(REASONS)]
