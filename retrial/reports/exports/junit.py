"""JUnit XML: a suite for each language, a case for each task, as CI pages list them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from retrial.reports.exports import ANSI, CUT, CaseKind, Export, ExportedCase, every, line, model_names
from retrial.reports.records import Results
from retrial.store.runs import Run

LONGEST = 10_000
"""Characters of one text."""
MESSAGE = 500
UNKNOWN = "unscored"
"""In place of the language of a task that never came to a sandbox."""
BAD = ("failed", "error")
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What no XML 1.0 can hold, not even as a reference."""
_ATTACHMENT = re.compile(r"\[(?=\[ATTACHMENT\|)", re.IGNORECASE)


def render(run: Run, results: Results) -> bytes:
    document = JUnitXml(line(run.name))
    suites = dict[str, list[ExportedCase]]()
    for case in every(results):
        # Jenkins takes what is before the last dot for a package: benchmarks are listed, and languages in them.
        name = line(f"{results.benchmark}.{(case.row and case.row.language) or UNKNOWN}")
        suites.setdefault(name, []).append(case)
    properties = dict(_properties(run, results))
    for name, cases in sorted(suites.items()):
        document.add_testsuite(_suite(name, cases, properties))
    document.update_statistics()  # type: ignore[no-untyped-call]
    text: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + text + b"\n"


def _properties(run: Run, results: Results) -> Iterable[tuple[str, str]]:
    rate, whole = results.rate, results.rate_of_benchmark
    yield "run", run.name
    yield "benchmark", results.benchmark
    yield "model", ", ".join(model_names(results))
    if rate.of:
        yield "percent", str(rate.percent)
        yield "interval", f"{rate.low} to {rate.high}"
    yield "resolved", f"{rate.resolved} of {rate.of}"
    yield "attempts", str(rate.attempts)
    if whole.of:
        yield "percent_of_benchmark", f"{whole.percent} (of {whole.of})"
    yield "retrial", str(results.provenance.get("retrial", ""))


def _suite(name: str, cases: Iterable[ExportedCase], properties: Mapping[str, str]) -> TestSuite:
    suite = TestSuite(name)
    for key, value in properties.items():
        suite.add_property(key, line(value, MESSAGE))
    suite.add_testcases([_case(name, case) for case in cases])
    return suite


def _case(suite: str, case: ExportedCase) -> TestCase:
    row = case.row
    shown = TestCase(line(case.instance_id), suite, row.seconds if row else 0.0)
    result = _result(case)
    if result is not None:
        shown.result = result
    if row and row.stdout:
        shown.system_out = for_xml(row.stdout, LONGEST)
    if row and row.stderr:
        shown.system_err = for_xml(row.stderr, LONGEST)
    return shown


def _result(case: ExportedCase) -> FinalResult | None:
    """None where it passed. A void task counts neither for nor against anybody: there CI pages have `skipped`."""
    if case.kind is CaseKind.RESOLVED:
        return None
    kinds = {CaseKind.UNRESOLVED: Failure, CaseKind.NOT_MEASURED: Error}
    title = f"void ({case.outcome})" if case.kind is CaseKind.VOID else case.outcome.replace("_", " ")
    message = for_xml(line(f"{title}: {case.reason}", MESSAGE), MESSAGE)
    result = kinds.get(case.kind, Skipped)(message, case.outcome)
    tests = case.row.tests if case.row else {}
    failed = (f"{status}: {test}" for test, status in tests.items() if status in BAD)
    result.text = for_xml("\n".join([case.reason, *failed]), LONGEST)
    return result


def for_xml(text: str, most: int) -> str:
    """Lines and all, without what XML cannot hold; of a long one both ends."""
    if len(text) > most:
        text = f"{text[: most // 2]}\n{CUT}\n{text[-(most // 2) :]}"
    found = _NO_XML.sub("\ufffd", ANSI.sub("", text))
    # Jenkins and GitLab publish the file that is named so in a test's output: any file of the machine.
    return _ATTACHMENT.sub("[ ", found)


def make() -> Export:
    return render
