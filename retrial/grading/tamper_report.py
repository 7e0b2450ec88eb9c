"""The tamper report: what a patch touched that it may not, what was done about it, which rule it broke, and what a
person should look at. Only a broken rule is a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from retrial import registry
from retrial.checks import Check
from retrial.errors import PatchError
from retrial.grading.run_check import language_of
from retrial.patches import policy
from retrial.patches.parser import Change, parse
from retrial.types import Task, Verdict

LISTED = 50
"""Suspicious lines of one patch, at the most."""
SHOWN, LOOKED_AT = 200, 2000
"""Characters of one."""

# For people: why a file that a patch may not touch matters. The first that fits; tests are those of the task.
KINDS = {
    "hook": (".git/*", "*/.git/*", ".githooks/*", ".husky/*", ".pre-commit-config.yaml"),
    "start-up": (
        "conftest.py",
        "sitecustomize.py",
        "usercustomize.py",
        "*.pth",
        "__init__.py",
        "*/META-INF/services/*",
    ),
    "configuration": (
        *("pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml", ".coveragerc"),
        *("package.json", "package-lock.json", ".npmrc", "*.config.js", "*.config.*", ".babelrc*", ".mocharc*"),
        *(".cargo/*", "rust-toolchain*", "junit-platform.properties", "go.work", ".gitattributes", ".rspec"),
    ),
    "build": (
        *("setup.py", "Makefile", "CMakeLists.txt", "*.cmake", "pom.xml", "*.gradle", "gradle/*", "gradlew*"),
        *("build.rs", "Cargo.toml", "Cargo.lock", "go.mod", "go.sum", "*.dist-info/*", "*.egg-info/*", "noxfile.py"),
        *("runtests.py", "bin/test"),
    ),
}
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A path that a patch touches and that does not count."""

    path: str
    kind: str
    """`test`, `symlink`, `submodule`, one of `KINDS`, or `other`: a file that is not for a patch to change."""
    done: str
    """`restored`: it is as it was before the patch; `left out`: there was no such file, and there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A line that honest solutions hardly have."""

    path: str
    line: int
    what: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tampering:
    rule: str = ""
    """That was broken; empty where the verdict is another than tampered."""
    touched: tuple[Touched, ...] = ()
    changed: tuple[str, ...] = ()
    """Files of the tests that the run itself changed."""
    suspicious: tuple[Suspicion, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.rule or self.touched or self.changed or self.suspicious)


def report(task: Task, patch: str, counted: str, check: Check, verdict: Verdict) -> Tampering:
    """Of the whole `patch`, of which `counted` is the part that was scored."""
    return Tampering(
        rule=verdict.rule,
        touched=tuple(_touched(task, patch, verdict, check)),
        changed=verdict.changed,
        suspicious=tuple(islice(_suspicious(task, counted), LISTED)),
    )


def _touched(task: Task, patch: str, verdict: Verdict, check: Check) -> Iterator[Touched]:
    dropped = set(verdict.dropped)
    for change in _changes(patch):
        for path in change.paths:
            if path in dropped:
                dropped.discard(path)
                there = path == change.old or path in check.files
                yield Touched(path=path, kind=_kind(task, change, path), done="restored" if there else "left out")


def _kind(task: Task, change: Change, path: str) -> str:
    if not change.regular:
        return "submodule" if change.mode.startswith("16") else "symlink"
    for kind, globs in KINDS.items():
        if policy.matches(path, globs):
            return kind
    if not policy.matches(path, task.protected_globs):
        return "other"
    # What is left is reserved for its name alone, such as a module of the standard library's.
    return "test" if re.search("test|spec", path, re.IGNORECASE) else "start-up"


def _suspicious(task: Task, patch: str) -> Iterator[Suspicion]:
    if task.language not in registry.names("languages"):
        return
    rows = [(re.compile(pattern), what) for pattern, what in language_of(task).suspicious]
    for change in _changes(patch):
        for line, text in _added(change):
            for pattern, what in rows:
                if pattern.search(text.strip()[:LOOKED_AT]):
                    yield Suspicion(path=change.name, line=line, what=what, text=text.strip()[:SHOWN])
                    break


def _added(change: Change) -> Iterator[tuple[int, str]]:
    """(Line in the patched file, text) of all that a patch adds to one."""
    number = 0
    for line in change.text.split("\n"):
        if hunk := _HUNK.match(line):
            number = int(hunk[1])
        elif number and line.startswith("+"):
            yield number, line[1:]
        number += bool(number and not hunk and not line.startswith(("-", "\\")))


def _changes(patch: str) -> tuple[Change, ...]:
    try:
        return parse(patch)
    except PatchError:
        # Refused as a whole, and the verdict says so.
        return ()
