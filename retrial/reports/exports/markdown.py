"""A summary for the page of a CI's job, such as that of $GITHUB_STEP_SUMMARY."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from retrial.reports.analysis.rungs import LadderRow, ModelRow
from retrial.reports.analysis.stats import Rate
from retrial.reports.exports import NAMED, CaseKind, Export, ExportedCase, code, every, objections
from retrial.reports.records import InstanceRow, LanguageRow, Results
from retrial.reports.tables import Table, passed_tests, tokens
from retrial.store.runs import Run
from retrial.system.console import first_few, money, percent, pluralise

ROWS = 300
"""Of unresolved tasks. With every cell as long as it may be, all of it stays below the 1 MiB that GitHub takes."""
FEW = 50
"""Of any other table."""
NAMES = 10
FAILURE = 500
"""Characters of why an agent did not work."""


def render(run: Run, results: Results) -> bytes:
    cases = every(results)
    parts = [
        *_head(run, results),
        *_titled("By language", _languages(results.by_language)),
        *_titled("By rung", _ladder(results.ladder)),
        *_titled("By model", [] if results.ladder else _models(results.by_model)),
        *_titled("Not measured", _reasons(case for case in cases if case.kind is CaseKind.NOT_MEASURED)),
        *_titled("Skipped", _reasons(case for case in cases if case.kind is CaseKind.SKIPPED)),
        *_titled("Void here", _reasons(case for case in cases if case.kind is CaseKind.VOID)),
        *_titled("Patches to look at", _tampering(results)),
        *_unresolved([case for case in cases if case.kind is CaseKind.UNRESOLVED]),
    ]
    return ("\n".join(parts).rstrip() + "\n").encode()


def _head(run: Run, results: Results) -> Iterator[str]:
    rate = results.rate
    yield f"## {rate.percent:.1f} % resolved" if rate.of else "## Nothing was measured"
    yield ""
    measured = f"{_percent(rate)} measured" if rate.of else "no rate"
    yield f"{code(run.name)} on {code(results.benchmark)}: {measured}."
    if results.agent_failed:
        yield ""
        yield code(results.agent_failed, FAILURE)
    yield ""
    yield from (f"- {fact}" for fact in _facts(results))
    yield ""


def _facts(results: Results) -> Iterator[str]:
    rate, whole, clean = results.rate, results.rate_of_benchmark, results.rate_calibrated
    if whole.of != rate.of:
        yield f"Of the whole benchmark, what is missing counted as unresolved: {_percent(whole)}."
    if results.prior:
        yield (
            f"Only the tasks for which {_names(results.prior)} found no plausible edit were run (--prior); "
            "the rate covers only those."
        )
    if results.void:
        yield f"Without tasks that are void here: {_percent(clean)}."
    if rate.attempts != "1":
        yield "Tasks were tried again from scratch."
    if rate.visible_is_hidden:
        yield "The visible tests are the acceptance tests."
    if objections.hidden_known(results):
        yield "**The visible tests were chosen by the hidden ones.**"
    if results.agent_isolated is False:
        yield "**The agent was not isolated.**"
    if results.official_differs:
        yield f"**The official verdict is another** for {_names(results.official_differs)}."
    if results.ladder:
        yield f"Spent: {money(results.spent.cost)}."
    sandbox = results.provenance.get("sandbox", {})
    yield f"Scored by Retrial {results.provenance.get('retrial', '')} in {code(sandbox.get('sandbox', 'unknown'))}."


def _percent(rate: Rate) -> str:
    return f"{rate.text}, {rate.resolved} of {rate.of}"


def _titled(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### {title}", "", *lines, ""] if lines else []


def _languages(found: Mapping[str, LanguageRow]) -> list[str]:
    rows = []
    for name, row in found.items():
        passed = f"{row.tests.passed} of {row.tests.total}"
        rows.append((code(name, NAMED), row.rate.of, row.rate.resolved, percent(row.rate.percent), passed))
    return Table(header=("language", "measured", "resolved", "rate", "tests passed"), rows=rows).markdown(FEW)


def _ladder(rungs: Sequence[LadderRow]) -> list[str]:
    rows = []
    for row in rungs:
        brought, took = row.brought, row.brought.took
        counts = (row.tasks, took.attempts, brought.plausible, brought.resolved, brought.num_malformed_responses)
        rows.append((code(row.rung, NAMED), *counts, tokens(took), money(took.cost)))
    header = ("rung", "tasks", "attempts", "plausible", "resolved", "malformed", "tokens in / out", "cost")
    return Table(header=header, rows=rows).markdown(FEW)


def _models(found: Mapping[str, ModelRow]) -> list[str]:
    rows = [(code(name, NAMED), _percent(row.rate)) for name, row in found.items() if row.rate]
    return Table(header=("model", "resolved"), rows=rows).markdown(FEW)


def _reasons(cases: Iterable[ExportedCase]) -> list[str]:
    """Each reason once, with what it holds for."""
    found = dict[str, list[str]]()
    for case in cases:
        found.setdefault(code(case.reason), []).append(case.instance_id)
    most_first = sorted(found.items(), key=lambda item: -len(item[1]))
    rows = [(len(ids), why, _names(ids)) for why, ids in most_first]
    return Table(header=("tasks", "reason", "which"), rows=rows).markdown(FEW)


def _names(ids: Sequence[str]) -> str:
    return first_few([code(name, NAMED) for name in ids], NAMES)


def _tampering(results: Results) -> list[str]:
    review = set(results.tamper.review)
    rows = []
    for row in (row for row in results.instances if row.instance_id in review):
        tamper = row.tamper
        touched = ", ".join(each.path for each in tamper.touched)
        said = f"tampered ({tamper.rule})" if tamper.rule else row.outcome
        counts = (len(tamper.changed), len(tamper.suspicious))
        rows.append((code(row.instance_id, NAMED), code(said, NAMED), code(touched), *counts))
    return Table(header=("task", "verdict", "touched", "tests changed", "suspicious lines"), rows=rows).markdown(FEW)


def _passed(row: InstanceRow | None) -> str:
    """Of those that must pass, where the benchmark says which these are."""
    return "{} of {}".format(*passed_tests(row)) if row else ""


def _unresolved(cases: Sequence[ExportedCase]) -> list[str]:
    rows = [
        (code(case.instance_id, NAMED), case.outcome.replace("_", " "), _passed(case.row), code(case.reason))
        for case in cases
    ]
    if not rows:
        return []
    listed = Table(header=("task", "outcome", "tests passed", "reason"), rows=rows).markdown(ROWS)
    return ["<details>", f"<summary>{pluralise(len(rows), 'unresolved task')}</summary>", "", *listed, "", "</details>"]


def make() -> Export:
    return render
