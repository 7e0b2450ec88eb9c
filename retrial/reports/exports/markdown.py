"""A summary for the page of a CI's job, such as that of $GITHUB_STEP_SUMMARY."""

from __future__ import annotations

from collections.abc import Iterable

from retrial.reports.exports import CaseKind, Export, ExportedCase, code, every, objections, template
from retrial.reports.records import Results
from retrial.reports.terminal import passed_tests
from retrial.store.runs import Run

LEFT_OUT = {"Not measured": CaseKind.NOT_MEASURED, "Skipped": CaseKind.SKIPPED, "Void here": CaseKind.VOID}


def render(run: Run, results: Results) -> bytes:
    cases, review = every(results), set(results.tamper.review)
    text = template("markdown.md.j2").render(
        run=run,
        results=results,
        objections=objections,
        models=[(name, row.rate) for name, row in results.by_model.items() if row.rate],
        left_out=[(title, _by_reason(case for case in cases if case.kind is kind)) for title, kind in LEFT_OUT.items()],
        review=[row for row in results.instances if row.instance_id in review],
        unresolved=[case for case in cases if case.kind is CaseKind.UNRESOLVED],
        passed_tests=passed_tests,
    )
    return (text.rstrip() + "\n").encode()


def _by_reason(cases: Iterable[ExportedCase]) -> list[tuple[str, list[str]]]:
    """Each reason once, with what it holds for, the most frequent first."""
    found = dict[str, list[str]]()
    for case in cases:
        found.setdefault(code(case.reason), []).append(case.instance_id)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def make() -> Export:
    return render
