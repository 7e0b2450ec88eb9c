"""Reports of every runner, and what they say: read here once more, in other ways than the result parsers do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from xml.dom import minidom
from xml.parsers.expat import ExpatError

from retrial.checks import Canary, Check, Naming
from retrial.types import Execution, Status

CANARY = "several_small_values"
OWN = ("first", "second", "third")
WORST = (Status.PASSED, Status.XFAILED, Status.SKIPPED, Status.FAILED, Status.ERROR)

Results = Mapping[str, str]
"""Name of a test → passed, failed, error or skipped."""
Said = dict[str, Status]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    reader: str
    write: Callable[[Results], dict[str, bytes]]
    said: Callable[[Mapping[str, bytes]], Said]
    """Raises: ValueError when the reports cannot be read."""
    name: Callable[[str], str]
    """The id of a test in the report."""
    failing: int = 1


def worst(found: Iterable[tuple[str, Status]]) -> Said:
    said: Said = {}
    for test, status in found:
        said[test] = max(status, said.get(test, status), key=WORST.index)
    return said


# JUnit


def _junit(results: Results) -> dict[str, bytes]:
    inner = {
        "failed": '<failure message="AssertionError: assert 1 == 2" type="AssertionError">trace</failure>',
        "error": '<error message="no fixture">trace</error>',
        "skipped": '<skipped type="pytest.skip" message="why"/>',
    }
    cases = "\n".join(
        f'<testcase classname="m_test" name="{test}" time="0.1">{inner.get(status, "")}</testcase>'
        for test, status in results.items()
    )
    return {"junit.xml": f'<?xml version="1.0"?><testsuites><testsuite>{cases}</testsuite></testsuites>'.encode()}


def _junit_said(reports: Mapping[str, bytes]) -> Said:
    found = []
    for name, content in reports.items():
        if name.endswith(".xml"):
            for case in minidom.parseString(content).getElementsByTagName("testcase"):
                parts = (case.getAttribute("classname"), case.getAttribute("name"))
                inside = [child for child in case.childNodes if isinstance(child, minidom.Element)]
                found.append(("::".join(part for part in parts if part), _junit_status(inside)))
    return worst(found)


def _junit_status(inside: Iterable[minidom.Element]) -> Status:
    tags = {child.tagName: child.getAttribute("type") for child in inside}
    if "error" in tags and not tags["error"]:
        return Status.ERROR
    if tags.keys() & {"failure", "error"}:
        return Status.FAILED
    return Status.SKIPPED if "skipped" in tags else Status.PASSED


# Jest


def _jest(results: Results) -> dict[str, bytes]:
    tests = [
        {"ancestorTitles": ["Box"], "title": test, "fullName": f"Box {test}", "status": _jest_word(status)}
        for test, status in results.items()
    ]
    status = "failed" if {"failed", "error"} & set(results.values()) else "passed"
    suite = {"name": "/tmp/job/box/box.test.js", "status": status, "assertionResults": tests}
    return {"jest.json": json.dumps({"success": status == "passed", "testResults": [suite]}, indent=1).encode()}


def _jest_word(status: str) -> str:
    return {"error": "unknown", "skipped": "pending"}.get(status, status)


def _jest_said(reports: Mapping[str, bytes]) -> Said:
    report = json.loads(reports["jest.json"])
    words = {"passed": Status.PASSED, "failed": Status.FAILED, "pending": Status.SKIPPED}
    return worst(
        (" › ".join([*test["ancestorTitles"], test["title"]]), words.get(test["status"], Status.ERROR))
        for suite in report["testResults"]
        for test in suite["assertionResults"]
    )


# Go


def _go(results: Results) -> dict[str, bytes]:
    words = {"passed": "pass", "failed": "fail", "skipped": "skip"}
    events = [{"Action": "start", "Package": "p"}]
    for test, status in results.items():
        events.append({"Action": "run", "Package": "p", "Test": test})
        events.append({"Action": "output", "Package": "p", "Test": test, "Output": f"=== RUN   {test}\n"})
        if status in words:
            events.append({"Action": words[status], "Package": "p", "Test": test})
    bad = {"failed", "error"} & set(results.values())
    events.append({"Action": "fail" if bad else "pass", "Package": "p"})
    return {"go.json": "".join(json.dumps(event) + "\n" for event in events).encode()}


def _go_said(reports: Mapping[str, bytes]) -> Said:
    words = {"pass": Status.PASSED, "fail": Status.FAILED, "skip": Status.SKIPPED}
    found, started = [], set[str]()
    for line in reports["go.json"].decode(errors="replace").splitlines():
        try:
            # Go's own lines are not indented.
            event = json.loads(line) if line.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and "Test" in event:
            test = f"{event.get('Package')}::{event['Test']}"
            started |= {test} if event.get("Action") == "run" else set()
            found += [(test, words[event["Action"]])] if str(event.get("Action")) in words else []
    said = worst(found)
    return {test: said.get(test, Status.ERROR) for test in started | said.keys()}


# Rust


def _libtest(results: Results) -> dict[str, bytes]:
    words = {"passed": "ok", "failed": "failed", "skipped": "ignored"}
    listed = "".join(f"{test}: test\n" for test in results) + f"\n{len(results)} tests, 0 benchmarks\n"
    log = "".join(f"{words[status]} {test}\n" for test, status in results.items() if status in words)
    return {"box.list": listed.encode(), "box.log": log.encode()}


def _libtest_said(reports: Mapping[str, bytes]) -> Said:
    listed, log = (reports.get(name, b"").decode(errors="replace").splitlines() for name in ("box.list", "box.log"))
    tests = [line.removesuffix(": test") for line in listed if line.endswith(": test")]
    said: Said = {}
    for test in tests:
        lines = [line for line in log if re.search(rf"(^|\s){re.escape(test)}$", line)]
        good = bool(lines) and all(line == f"ok {test}" for line in lines)
        bad = any(line.startswith("failed") for line in lines)
        said[f"box::{test}"] = Status.PASSED if good else Status.FAILED if bad else Status.ERROR
    return said


RUNNERS = {
    "junit": Runner(reader="languages.junit", write=_junit, said=_junit_said, name="m_test::{}".format),
    "surefire": Runner(reader="languages.java.results", write=_junit, said=_junit_said, name="m_test::{}".format),
    "catch": Runner(reader="languages.cpp.results", write=_junit, said=_junit_said, name="m_test::{}".format),
    "jest": Runner(
        reader="languages.javascript.results", write=_jest, said=_jest_said, name="box.test.js::Box › {}".format
    ),
    "gotest": Runner(reader="languages.go.results", write=_go, said=_go_said, name="p::{}".format),
    "libtest": Runner(
        reader="languages.rust.results", write=_libtest, said=_libtest_said, name="box::{}".format, failing=101
    ),
}


def check(runner: Runner) -> Check:
    canary = Canary(path="t", text="", places=(0,), strong=True, naming=Naming.SNAKE)
    expected = {runner.name(test): Status.PASSED for test in OWN}
    return Check(
        script="true", files={}, result_parser=runner.reader, expected=expected, canaries=(canary,),
        failure_exit_codes=(runner.failing,), planted=(CANARY,), planted_ids=(runner.name(CANARY),),
    )  # fmt: skip


def resolved(runner: Runner, execution: Execution) -> bool:
    """The execution really says that the solution is right: everything passed that had to, and the canary failed."""
    if execution.exit_code != runner.failing or execution.timed_out or execution.oom or execution.changed:
        return False
    try:
        said = runner.said(execution.reports)
    except (ExpatError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False
    canary = [status for test, status in said.items() if CANARY in test]
    own = {test: status for test, status in said.items() if CANARY not in test}
    right = [any(test.endswith(name) for test in own) for name in OWN]
    return all(right) and set(own.values()) == {Status.PASSED} and len(own) == len(OWN) and Status.FAILED in canary
