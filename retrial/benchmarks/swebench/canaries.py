"""Canaries for tasks whose tests come into an image as a patch: the files are fetched once, and planted for every run.

Planted are a weak canary, which fails whatever the solution does, and copies of tests that the task is about. Nobody
has proved them: where they do not fail, the reference is asked whether they must (`required_tests.settle`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from retrial import types
from retrial.benchmarks.swebench import container_script
from retrial.grading import canaries, prebuild
from retrial.languages.canaries.candidates import NAME, Test, TestFile
from retrial.languages.canaries.syntax import parse
from retrial.languages.python import canary as python_canary
from retrial.languages.python.assertions import Rank
from retrial.protocols import Sandbox
from retrial.types import Canary, Check, Environment, Required

COPIES = 1
"""Strong canaries in one run: each takes as long as the test that it is a copy of, and a failure takes time to show."""
DOCUMENTED = re.compile(r"""[^:]*:[^\n"']*\n\s*(?:[rbuRBU]{0,2}["']{1,3})""")
"""Behind the name of a function: unittest reports a test that has a docstring under that, so a copy would be taken for
the original."""


def plant(check: Check, environment: Environment, sandbox: Sandbox) -> Check:
    """The check with canaries in its tests, the weak one first; as it was where none can be made.

    Raises: SandboxError.
    """
    if check.required is None or not check.required.files:
        return check
    fetched = prebuild.files(check.prebuild, environment, sandbox)
    names = {path: f"{types.PREBUILT_FOLDER}/{number}" for number, path in enumerate(check.required.files)}
    # What a shell can write, it can write unchanged but for these.
    files = {path: fetched[name] for path, name in names.items() if b"\0" not in fetched.get(name, b"\0")}
    chosen = candidates(check.required, files)
    if not chosen:
        return check
    # The required tests are there to keep names from being parts of theirs.
    every = "\n".join((*check.required.fail_to_pass, *check.required.pass_to_pass)).encode()
    found = canaries.plant(replace(check, files={**files, "": every}), chosen)
    written = {path: found.files[path] for path in files}
    if any(parse("python", written[canary.path]).has_error for canary in chosen):
        return check
    scripts = {name: container_script.with_tests(check.files[name], written) for name in container_script.SCRIPTS}
    return replace(check, files={**check.files, **scripts}, planted=found.planted)


def candidates(required: Required, files: Mapping[str, bytes]) -> tuple[Canary, ...]:
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
        for canary in python_canary.of_file(module)
        if canary.strong and not DOCUMENTED.match(canary.text.partition(NAME)[2])
    ]
    shortest = sorted(_one_of_each(strong), key=lambda canary: len(canary.text))
    return (weak, *shortest[:COPIES])


def _one_of_each(strong: list[Canary]) -> list[Canary]:
    """The best copy of every test."""
    return list({canary.of.partition(":")[0]: canary for canary in reversed(strong)}.values())


def _named(tests: tuple[str, ...]) -> python_canary.Wanted:
    """Of several classes with a test of that name, only the one that is meant."""
    known = {_name(test): frozenset[str]() for test in tests}
    for test in tests:
        known[_name(test)] |= frozenset(re.split(r"\W+", test))
    return lambda path: path[-1] in known and known[path[-1]].issuperset(path)


def _name(test: str) -> str:
    """Of its function: ids are `path::Class::name[case]`, `name (module.Class)`, or the name alone."""
    return test.partition("[")[0].rpartition("::")[2].partition(" ")[0]


def _weak(modules: Sequence[TestFile], required: Required) -> Canary | None:
    """Only beside a test that is known to be run, and written as that is: it takes what tests there must take."""
    first, second = (frozenset(map(_name, tests)) for tests in (required.fail_to_pass, required.pass_to_pass))

    def order(found: tuple[TestFile, Test]) -> tuple[bool, bool, int]:
        module, test = found
        decorated = module.source[slice(*test.whole)].lstrip().startswith(b"@")
        return decorated, _text(module, test.name) not in first, module.source.find(b")", test.name[1]) - test.name[1]

    beside = [(each, test) for each in modules for test in each.tests if _text(each, test.name) in first | second]
    for module, test in sorted(beside, key=order):
        others = [each for each in module.tests if each is not test]
        plain = replace(module, tests=[replace(each, literals=()) for each in (test, *others)])
        if found := python_canary.of_file(plain):
            return found[-1]
    return None


def _text(module: TestFile, span: tuple[int, int]) -> str:
    return module.source[slice(*span)].decode("utf-8", "replace")
