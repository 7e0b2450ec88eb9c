"""JUnit XML: a suite for each language, a case for each task, as CI pages list them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from retrial.reports.exports import Export
from retrial.reports.exports.cases import CaseKind, ExportedCase, every, model_names
from retrial.reports.exports.text import for_xml, line
from retrial.store.runs import Run

if TYPE_CHECKING:
    from junitparser import TestCase, TestSuite
    from junitparser.junitparser import FinalResult

LONGEST = 10_000
"""Characters of one text."""
MESSAGE = 500
UNKNOWN = "unscored"
"""In place of the language of a task that never came to a sandbox."""
BAD = ("failed", "error")


def render(run: Run, content: Mapping[str, Any]) -> bytes:
    from junitparser import JUnitXml

    document = JUnitXml(line(run.name))
    suites = dict[str, list[ExportedCase]]()
    for case in every(content):
        suites.setdefault(_suite_name(content, case), []).append(case)
    properties = dict(_properties(run, content))
    for name, cases in sorted(suites.items()):
        document.add_testsuite(_suite(name, cases, properties))
    document.update_statistics()  # type: ignore[no-untyped-call]
    text: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text + b"\n"


def _suite_name(content: Mapping[str, Any], case: ExportedCase) -> str:
    # Jenkins takes what is before the last dot for a package: benchmarks are listed, and languages in them.
    return line(f"{content['benchmark']}.{case.row.get('language') or UNKNOWN}")


def _properties(run: Run, content: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    rate, whole = content["rate"], content["rate_of_benchmark"]
    yield "run", run.name
    yield "benchmark", str(content["benchmark"])
    yield "model", ", ".join(model_names(content))
    if rate["of"]:
        yield "percent", str(rate["percent"])
        yield "interval", f"{rate['low']} to {rate['high']}"
    yield "resolved", f"{rate['resolved']} of {rate['of']}"
    yield "attempts", str(rate["attempts"])
    if whole["of"]:
        yield "percent_of_benchmark", f"{whole['percent']} (of {whole['of']})"
    yield "retrial", str(content["provenance"].get("retrial", ""))


def _suite(name: str, cases: Iterable[ExportedCase], properties: Mapping[str, str]) -> TestSuite:
    from junitparser import TestSuite

    suite = TestSuite(name)
    for key, value in properties.items():
        suite.add_property(key, line(value, MESSAGE))
    suite.add_testcases([_case(name, case) for case in cases])
    return suite


def _case(suite: str, case: ExportedCase) -> TestCase:
    from junitparser import TestCase

    shown = TestCase(line(case.instance_id), suite, float(case.row.get("seconds") or 0.0))
    result = _result(case)
    if result is not None:
        shown.result = result
    if out := str(case.row.get("stdout") or ""):
        shown.system_out = for_xml(out, LONGEST)
    if errors := str(case.row.get("stderr") or ""):
        shown.system_err = for_xml(errors, LONGEST)
    return shown


def _result(case: ExportedCase) -> FinalResult | None:
    """None where it passed. A void task counts neither for nor against anybody: there CI pages have `skipped`."""
    from junitparser import Error, Failure, Skipped

    if case.kind is CaseKind.RESOLVED:
        return None
    kinds = {CaseKind.UNRESOLVED: Failure, CaseKind.NOT_MEASURED: Error}
    title = f"void ({case.outcome})" if case.kind is CaseKind.VOID else case.outcome.replace("_", " ")
    message = for_xml(line(f"{title}: {case.reason}", MESSAGE), MESSAGE)
    result = kinds.get(case.kind, Skipped)(message, case.outcome)
    result.text = for_xml("\n".join([case.reason, *_failed(case)]), LONGEST)
    return result


def _failed(case: ExportedCase) -> list[str]:
    return [f"{status}: {test}" for test, status in case.row.get("tests", {}).items() if status in BAD]


def make() -> Export:
    return render
