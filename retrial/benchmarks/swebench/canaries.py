"""Canaries for tasks whose tests come into an image as a patch: the files are fetched once, and planted for every run.

Also what a log says of canaries, and the same log without it: as if they had never been there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from retrial.benchmarks.swebench import container_script
from retrial.benchmarks.swebench.official_grader import END, STATUS, OfficialTests
from retrial.checks import PREBUILT_FOLDER, Canary, Check
from retrial.grading import canaries, prebuild
from retrial.languages.canaries.candidates import NAME, Test, TestFile
from retrial.languages.canaries.candidates import candidates as candidates_of
from retrial.languages.canaries.syntax import parse
from retrial.languages.python import canary as python_canary
from retrial.languages.python.assertions import Rank
from retrial.protocols import Sandbox
from retrial.types import Environment, Status

COPIES = 1
"""Strong canaries in one run: each takes as long as the test that it is a copy of, and a failure takes time to show."""
DOCUMENTED = re.compile(r"""[^:]*:[^\n"']*\n\s*(?:[rbuRBU]{0,2}["']{1,3})""")
"""Behind the name of a function: unittest reports a test that has a docstring under that, so a copy would be taken for
the original."""

COLOUR = re.compile(r"\x1b\[[\d;]*m")
HEADING = re.compile(r"_+ (?!_).* _+$|(?:FAIL|ERROR): ")
"""Of what pytest, sympy's or Django's runner prints about one failure."""
ENDING = re.compile(r"={5,}|Ran \d+ tests? ")
"""What comes behind the last of them."""
ASSERTION = re.compile(
    r"E +(?:AssertionError|assert |Failed: DID NOT RAISE)|.*:\d+: AssertionError$|FAILED .* - [Aa]ss"
)
"""Lines of pytest's that name an assertion; other runners tell failures from errors."""
FAILING = {Status.FAILED, Status.ERROR}
TELLING_APART = ("parse_log_django", "parse_log_sympy")


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitLog:
    """A log of Python tests, taken apart."""

    rest: str
    """All that is not about a canary."""
    about: Mapping[str, Sequence[str]]
    """Name of a canary → the lines about it, without colours."""


def plant(check: Check, required: OfficialTests, environment: Environment, sandbox: Sandbox) -> Check:
    """Return the check with canaries in its tests, the weak one first; as it was where none can be made.

    Planted are a weak canary, which fails whatever the solution does, and copies of tests that the task is about. They
    are not proved: where they do not fail, the reference is asked whether they must (`judge.resolve_dispute`).

    Raises: SandboxError.
    """
    if not required.files or check.prebuild is None:
        return check
    fetched = prebuild.files(check.prebuild, environment, sandbox, fresh=check.fresh)
    names = {path: f"{PREBUILT_FOLDER}/{number}" for number, path in enumerate(required.files)}
    # What a shell can write, it can write unchanged but for these.
    files = {path: fetched[name] for path, name in names.items() if b"\0" not in fetched.get(name, b"\0")}
    chosen = candidates(required, files)
    if not chosen:
        return check
    # The required tests are there to keep names from being parts of theirs.
    every = "\n".join((*required.fail_to_pass, *required.pass_to_pass)).encode()
    found = canaries.plant(replace(check, files={**files, "": every}), chosen)
    written = {path: found.files[path] for path in files}
    if any(parse("python", written[canary.path]).has_error for canary in chosen):
        return check
    scripts = {name: container_script.with_tests(check.files[name], written) for name in container_script.SCRIPTS}
    return replace(check, files={**check.files, **scripts}, planted=found.planted)


def candidates(required: OfficialTests, files: Mapping[str, bytes]) -> tuple[Canary, ...]:
    """A weak one, beside a test that the task is about if it can be, then copies of such tests; or none at all."""
    modules = [
        python_canary.tests(path, source, _named(required.fail_to_pass), Rank.CONVERTED)
        for path, source in files.items()
    ]
    weak = _weak(modules, required)
    if weak is None:
        return ()
    strong = [
        canary
        for module in modules
        for canary in candidates_of([module])
        if canary.strong and not DOCUMENTED.match(canary.text.partition(NAME)[2])
    ]
    # The best copy of every test.
    best = {canary.of.partition(":")[0]: canary for canary in reversed(strong)}
    shortest = sorted(best.values(), key=lambda canary: len(canary.text))
    return (weak, *shortest[:COPIES])


def split_log(log: str, names: Sequence[str]) -> SplitLog:
    """Take out the lines that name a canary, and what is printed below a heading that does."""
    rest: list[str] = []
    about: dict[str, list[str]] = {name: [] for name in names}
    current = ""
    for line in log.split("\n"):
        named = next((name for name in names if name in line), "")
        plain = COLOUR.sub("", line)
        if HEADING.match(plain):
            current = named
        elif ENDING.match(plain):
            current = ""
        if taken := named or current:
            about[taken].append(plain)
        else:
            rest.append(line)
    return SplitLog(rest="\n".join(rest), about=about)


def list_failed(
    required: OfficialTests, tests: Mapping[str, Status], found: SplitLog
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return those of the canaries that failed as they must, and those that failed in another way.

    The first can fail in one way only; others must fail by an assertion, not by an exception on the way there.
    """
    proved, erred = [], []
    for number, (name, lines) in enumerate(found.about.items()):
        statuses = {status for test, status in tests.items() if name in test}
        told = number == 0 or required.parser in TELLING_APART or any(map(ASSERTION.match, lines))
        # One that passed under any id did not fail, whatever else has its name in it and is said to have failed.
        if told and statuses == {Status.FAILED}:
            proved.append(name)
        elif statuses & FAILING and Status.PASSED not in statuses:
            erred.append(name)
    return tuple(proved), tuple(erred)


def set_own_status(log: str, tests: Mapping[str, Status], check: Check) -> str:
    """Return the log with the status that the task's own tests gave, where none of them failed but a canary did."""
    failing = {test for test, status in tests.items() if status in FAILING}
    planted = {test for test in failing if any(name in test for name in check.planted)}
    if not planted or failing - planted:
        return log
    head, mark, tail = log.rpartition(END)
    for status in check.failure_exit_codes:
        # Only behind its end, where our own script has written it.
        tail = re.sub(rf"{re.escape(STATUS)}: {status}(?!\d)", f"{STATUS}: 0", tail)
    return head + mark + tail


def _named(tests: tuple[str, ...]) -> python_canary.Wanted:
    """Of several classes with a test of that name, only the one that is meant."""
    known = {_name(test): frozenset[str]() for test in tests}
    for test in tests:
        known[_name(test)] |= frozenset(re.split(r"\W+", test))
    return lambda path: path[-1] in known and known[path[-1]].issuperset(path)


def _name(test: str) -> str:
    """Of its function: ids are `path::Class::name[case]`, `name (module.Class)`, or the name alone."""
    return test.partition("[")[0].rpartition("::")[2].partition(" ")[0]


def _weak(modules: Sequence[TestFile], required: OfficialTests) -> Canary | None:
    """Only beside a test that is known to be run, and written as that is: it takes what tests there must take."""
    first, second = (frozenset(map(_name, tests)) for tests in (required.fail_to_pass, required.pass_to_pass))

    def order(found: tuple[TestFile, Test]) -> tuple[bool, bool, int]:
        module, test = found
        decorated = module.source[slice(*test.whole)].lstrip().startswith(b"@")
        return decorated, _text(module, test.name) not in first, module.source.find(b")", test.name[1]) - test.name[1]

    beside = [(each, test) for each in modules for test in each.tests if _text(each, test.name) in first | second]
    for module, test in sorted(beside, key=order):
        others = [each for each in module.tests if each is not test]
        plain = replace(module, tests=[replace(each, expected=()) for each in (test, *others)])
        if found := candidates_of([python_canary.with_weak(plain)]):
            return found[-1]
    return None


def _text(module: TestFile, span: tuple[int, int]) -> str:
    return module.source[slice(*span)].decode("utf-8", "replace")
