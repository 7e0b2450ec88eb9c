"""JUnit XML, as pytest, surefire and Catch write it; and what pytest prints, without what it says of one test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from retrial.languages.shared import drop_parts
from retrial.types import Execution, Status

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# A report is written by code that a model wrote: entities could blow it up or read files.
FORBIDDEN = (b"<!DOCTYPE", b"<!ENTITY")

ASSERTED = re.compile(r"AssertionError\b|assert |Failed: DID NOT RAISE|contains \d+ failed subtest")
"""How pytest's messages begin, of what an assertion raised."""

# Of two results for one id the worse counts.
SEVERITY = (Status.PASSED, Status.XFAILED, Status.SKIPPED, Status.FAILED, Status.ERROR)

# What pytest prints. Each is asked of one line's beginning, so that it takes no longer than the line is.
RULE = re.compile(r"[=-]{3,} ")
SECTION = re.compile(r"_+ (?!_ )")
EMPTY = re.compile(r"=+ (FAILURES|short test summary info) =+$")
TOTAL = re.compile(r"=+ (?=.{0,200} in \d+\.\d+s)(.{0,200}?)(\d{1,9}) failed(, )?")
WIDTH = 80


def read(execution: Execution) -> Mapping[str, Status] | str:
    reports = _reports(execution)
    if not reports:
        return "the test runner left no report"
    results: dict[str, Status] = {}
    for name, content in reports.items():
        try:
            for test, case in _elements(content):
                status = _status({child.tag: child.get("type") or "" for child in case})
                results[test] = max(results.get(test, status), status, key=SEVERITY.index)
        except ValueError as error:
            return f"the report {name} cannot be read: {error}"
    return results


def asserted(execution: Execution, results: Mapping[str, Status]) -> frozenset[str]:
    cases = (case for content in _reports(execution).values() for case in _elements(content))
    return frozenset(test for test, case in cases if _by_assertion(case))


def text(stdout: str) -> str:
    return stdout


def _reports(execution: Execution) -> dict[str, bytes]:
    return {name: content for name, content in sorted(execution.reports.items()) if name.endswith(".xml")}


def _by_assertion(case: Element) -> bool:
    if "error" in {child.tag for child in case}:
        return False
    failures = [child for child in case if child.tag == "failure"]
    if any(failure.get("type") for failure in failures):
        return True
    # pytest gives no type and calls every exception a failure; its message says which it was.
    messages = [failure.get("message") or "" for failure in failures]
    return bool(messages) and all(ASSERTED.match(message) for message in messages)


def _elements(content: bytes) -> Iterator[tuple[str, Element]]:
    """Raises: ValueError when it is not a plain JUnit file."""
    from xml.etree.ElementTree import ParseError, fromstring

    # In UTF-16 there is a zero between any two letters.
    if any(word in content.upper().replace(b"\0", b"") for word in FORBIDDEN):
        raise ValueError("it declares a document type")
    try:
        root = fromstring(content)
    except (ParseError, LookupError, RecursionError) as error:
        # LookupError: an encoding that nobody knows.
        raise ValueError(str(error)) from error
    for case in root.iter("testcase"):
        parts = (case.get("classname") or "", case.get("name") or "")
        yield "::".join(part for part in parts if part), case


def _status(children: Mapping[str, str]) -> Status:
    # Only what pytest could not start has no type; elsewhere an error is an exception that left the test.
    if children.get("error") == "":
        return Status.ERROR
    if "failure" in children or "error" in children:
        return Status.FAILED
    if "skipped" in children:
        return Status.XFAILED if children["skipped"] == "pytest.xfail" else Status.SKIPPED
    return Status.PASSED


def without(text: str, test: str) -> str:
    """Remove from pytest's text a test's own section, lines that name it and its part of the count.

    What it says of other tests stays.
    """
    if test not in text:
        return text
    lines = text.splitlines(keepends=True)

    def begins(line: str) -> bool | None:
        if SECTION.match(line):
            return test in line
        return False if RULE.match(line) and not line.lstrip("-").startswith(" Captured ") else None

    kept = [line for line in drop_parts(lines, begins) if test not in line]
    failures = sum(line.startswith(("FAILED ", "SUBFAILED")) for line in lines if test in line)
    return "".join(_counted(list(_filled(kept)), failures))


def _filled(lines: list[str]) -> Iterator[str]:
    """Without headings that nothing stands under."""
    for line, following in pairwise([*lines, "=== "]):
        if not (EMPTY.match(line) and RULE.match(following)):
            yield line


def _counted(lines: list[str], fewer: int) -> list[str]:
    """With the last line that counts saying so many failures fewer."""
    for place in reversed(range(len(lines))):
        if total := TOTAL.match(lines[place]):
            left = int(total[2]) - fewer
            counted = f"{left} failed{total[3] or ''}" if left > 0 else ""
            rest = (total[1] + counted + lines[place][total.end() :]).rstrip("=\n ")
            lines[place] = f" {rest} ".center(WIDTH, "=") + "\n"
            break
    return lines
