"""The one place that knows the package `swebench`: its log parsers and its grading, without the rest of it.

Importing `swebench.harness` the ordinary way loads datasets, modal and docker (1.4 s, 165 MB) and needs them installed;
its graders need none of that. So an empty package object of that name is put in place first.
"""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ParamSpec, TypeVar, get_type_hints

from retrial.benchmarks.swebench.reinstall import Reinstall
from retrial.errors import UsageError
from retrial.store.json_io import decode, to_exact_jsonl
from retrial.types import Status

GRADER = "benchmarks.swebench.grader"
"""As checks name it."""
VERSION = "5.0.2"
INSTALL = "pip install --no-deps -r requirements-nodeps.txt"
HARNESS = "swebench.harness"
UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError)
"""What parsers raise of a log that they cannot read."""
START, END = ">>>>> Start Test Output", ">>>>> End Test Output"
STATUS = ">>>>> Test Exit Code"
"""In a log, with the test command's exit status behind it: read to tell printed results from those of a run."""

ORDINARY = 300_000_000
"""Steps, a few seconds' worth: what the worst of their patterns would take."""
SLOW = "Testing against Django installed in"
"""From every one of these a pattern looks through all that follows."""
SECONDS = 60.0
READING = (sys.executable, "-c", "from retrial.benchmarks.swebench import official_grader; official_grader.answer()")

_NO_NETWORK = (
    re.compile(r"Could not resolve host|Temporary failure in name resolution"),
    re.compile(
        r"network is unreachable|name or service not known|no such host|unknownhostexception"
        r"|getaddrinfo (?:enotfound|eai_again)",
        re.IGNORECASE,
    ),
)
"""What the official classifier takes for a missing network; what else connections, Go, Java and Node say of one."""
_FAILURE = re.compile(r"FAIL|ERROR| [FE]$")
"""What lines have in which parsers for Python see a failure."""
_loading = threading.Lock()
_STATUSES = {
    "PASSED": Status.PASSED,
    "FAILED": Status.FAILED,
    "ERROR": Status.ERROR,
    "SKIPPED": Status.SKIPPED,
    "XFAIL": Status.XFAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialTests:
    """What SWE-bench asks of a log: these tests, as its own parser and grading see them; others may fail."""

    parser: str
    """A name in the parser registry of the package `swebench`."""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    eval_type: str = "pass_and_fail"
    instance_id: str = ""
    repo: str = ""
    version: str = ""
    """The last three are what some parsers go by."""
    files: tuple[str, ...] = ()
    """Python files of the hidden tests, where canaries can go; `Check.prebuild` fetches them, each by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialCheck:
    """What a check of SWE-bench carries for its grader."""

    tests: OfficialTests
    reinstall: Reinstall | None = None
    """None where the script installs nothing, and with a network, where that needs no care."""

    @property
    def identity(self) -> str:
        """The tests alone: `reinstall` decides only whether there is a verdict."""
        # Caches of earlier versions hold the digest with the class's former name.
        return repr(self.tests).replace("OfficialTests(", "Required(", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What the official grading says of one log."""

    resolved: bool
    found: bool
    """The log could be read as one of a test run that came to its end."""
    tests: Mapping[str, Status]
    """All that the parser saw, required or not."""


Arguments = ParamSpec("Arguments")
Found = TypeVar("Found")


def _patient(otherwise: Found) -> Callable[[Callable[Arguments, Found]], Callable[Arguments, Found]]:
    """Make a reader of a log, its last argument, return `otherwise` when it comes to no end.

    Official patterns can take the square of a line's length, or of the log's, and nothing can stop them in a thread: an
    odd log is read by a process that can be ended.
    """

    def patient(reader: Callable[Arguments, Found]) -> Callable[Arguments, Found]:
        @functools.wraps(reader)
        def read(*arguments: Arguments.args, **named: Arguments.kwargs) -> Found:
            _module("grading")
            log = str(arguments[-1])
            if sum(len(line) ** 2 for line in log.split("\n")) + log.count(SLOW) * len(log) <= ORDINARY:
                return reader(*arguments, **named)
            request = to_exact_jsonl([reader.__name__, arguments])
            variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            try:
                done = subprocess.run(READING, input=request, env=variables, capture_output=True, timeout=SECONDS)
            except subprocess.TimeoutExpired:
                return otherwise
            if done.returncode:
                return otherwise
            found: Found = decode(json.loads(done.stdout), get_type_hints(reader)["return"])
            return found

        return read

    return patient


def answer() -> None:
    """In that process."""
    name, arguments = json.load(sys.stdin)
    reader = inspect.unwrap(globals()[name])
    found = reader(*map(decode, arguments, get_type_hints(reader).values()))
    sys.stdout.buffer.write(to_exact_jsonl(found))


NOT_READ = Grade(resolved=False, found=False, tests={})


@_patient(NOT_READ)
def grade(required: OfficialTests, log: str) -> Grade:
    """Raises: UsageError when the package is not there."""
    grading, spec = _module("grading"), _spec(required)
    try:
        with _file(log) as path:
            found, readable = grading.get_logs_eval(spec, path)
    except UNREADABLE:
        # A line that its parser did not think of, which a patch may well have printed.
        return NOT_READ
    wanted = {"FAIL_TO_PASS": spec.FAIL_TO_PASS, "PASS_TO_PASS": spec.PASS_TO_PASS}
    kind = _module("constants").EvalType(required.eval_type)
    report = grading.get_eval_tests_report(found, wanted, eval_type=kind)
    full = _module("constants").ResolvedStatus.FULL.value
    resolved = bool(readable) and grading.get_resolution_status(report) == full
    tests = {str(test): _STATUSES.get(str(status), Status.ERROR) for test, status in found.items()}
    return Grade(resolved=resolved, found=bool(readable), tests=tests)


@_patient(frozenset[str]())
def failures(required: OfficialTests, log: str) -> frozenset[str]:
    """Tests of Python that any line behind the first marker calls failed, whatever others say of them.

    The official map holds the last word on each, and a patch can have that by printing when all is over.
    """
    parser = _module("log_parsers").PARSER_REGISTRY[required.parser]
    if _language(parser) != "python":
        return frozenset()
    spec, found = _spec(required), set[str]()
    for line in {line for line in log.partition(START)[2].split("\n") if _FAILURE.search(line)}:
        with suppress(*UNREADABLE):
            found |= {str(test) for test, status in parser(line, spec).items() if status in ("FAILED", "ERROR")}
    return frozenset(found)


@_patient(dict[str, Any]())
def report(instance_id: str, required: OfficialTests, patch: str, log: str) -> dict[str, Any]:
    """The content of the official report.json of one instance that was run; empty where its parser gives up."""
    prediction = {"instance_id": instance_id, "model_patch": patch}
    try:
        with _file(log) as path:
            return dict(_module("grading").get_eval_report(_spec(required), prediction, path, True))
    except UNREADABLE:
        return {}


@_patient(("", False))
def failure(log: str) -> tuple[str, bool]:
    """(Official reason for a log that looks like a broken environment, whether that is sure); ("", False) for none."""
    module = _module("infra_failure")
    with _file(log) as path:
        found = module.classify_logs(path)
    return (str(found[0]), found[1] == module.TIER_ENVIRONMENT) if found else ("", False)


def network_missing(log: str) -> str:
    """What the log says of it, in the words that the official classifier knows if it can be; empty for nothing."""
    found = next(filter(None, (sign.search(log) for sign in _NO_NETWORK)), None)
    return found[0] if found else ""


@contextmanager
def _file(log: str) -> Iterator[str]:
    """The official functions read files; this one is nowhere, so that nothing is left of it if we are killed."""
    with os.fdopen(os.memfd_create("retrial.log"), "w", encoding="utf-8", errors="replace") as file:
        file.write(log)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def parsers() -> Mapping[str, str]:
    """Name of every log parser → the language it is for."""
    registry = _module("log_parsers").PARSER_REGISTRY
    return {name: _language(parser) for name, parser in registry.items()}


def _language(parser: Any) -> str:
    return str(parser.__module__).rpartition(".")[2]


def _spec(required: OfficialTests) -> Any:
    make = importlib.import_module("swebench.types").TestSpec
    return make(
        instance_id=required.instance_id,
        image="",
        eval_script_list=[],
        repo=required.repo,
        version=required.version,
        FAIL_TO_PASS=list(required.fail_to_pass),
        PASS_TO_PASS=list(required.pass_to_pass),
        log_parser=required.parser,
        eval_type=required.eval_type,
    )


def _module(name: str) -> ModuleType:
    with _loading:
        if HARNESS not in sys.modules:
            _check_version()
            found = importlib.util.find_spec("swebench")
            package = ModuleType(HARNESS)
            package.__path__ = [f"{place}/harness" for place in (found and found.submodule_search_locations) or ()]
            sys.modules[HARNESS] = package
        return importlib.import_module(f"{HARNESS}.{name}")


def _check_version() -> None:
    try:
        version = importlib.metadata.version("swebench")
    except importlib.metadata.PackageNotFoundError:
        raise UsageError(f"SWE-bench is graded by the package swebench, which is missing: {INSTALL}") from None
    if version != VERSION:
        raise UsageError(f"swebench {version} is installed, and verdicts are only known to be right with: {INSTALL}")
