"""What is asked of a patch: checks, with the canaries that go into them and what is built once for all patches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from retrial.types import Limits, Status, fingerprint

PREBUILT_FOLDER = ".retrial"
"""Where jobs find what was built once for all patches. No patch can reach it: no solution lies in such a folder."""
CHECK_LIMITS = Limits()
PREBUILD_LIMITS = Limits(seconds=300, report_bytes=64 << 20)
PARSER_NAMES = {
    "grading.exit_status": "status",
    "languages.junit": "junit",
    "languages.cpp.results": "catch",
    "languages.go.results": "gotest",
    "languages.java.results": "surefire",
    "languages.javascript.results": "jest",
    "languages.rust.results": "libtest",
}
"""Result parsers → their names in the identities of runs, which stay what they were when a parser was a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prebuild:
    """Something that is the same for every patch, made once in a sandbox from the task's own files."""

    script: str
    """What it leaves in `$RETRIAL_REPORTS` is there for later jobs, below `.retrial/`."""
    files: Mapping[str, bytes]
    limits: Limits = PREBUILD_LIMITS

    @property
    def digest(self) -> str:
        return fingerprint(self.script, _digests(self.files))


class Naming(StrEnum):
    """How names of tests are written in a language."""

    SNAKE = "snake"
    CAMEL = "camel"
    PASCAL = "pascal"
    WORDS = "words"
    """With blanks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A test that must fail: if it passes, what was tested has tampered with its test."""

    path: str
    """The test file it goes into."""
    text: str
    """Its source, with `canaries.NAME` in place of its name."""
    places: tuple[int, ...]
    """Where in the bytes of that file it may be put."""
    strong: bool
    """A copy of a real test with one literal changed; else it fails whatever the solution does."""
    unsure: bool = False
    """What is put in was changed, not what is expected: an honest solution might pass it where no other does."""
    naming: Naming
    prefix: str = ""
    """What names of tests begin with."""
    words: tuple[str, ...] = ()
    """Small letters, out of the names of real tests: what its own name is made of."""
    test: str = ""
    """The test that it is a copy of."""
    of: str = ""
    """The same and what was changed, for people."""
    id: str = ""
    """Under which the reference's failure was reported, with `canaries.NAME` in place of its name."""


class GraderData(Protocol):
    """What a benchmark's own grader needs to know of one check; opaque to all others."""

    @property
    def identity(self) -> str:
        """As much of it as can change a verdict; part of the check's digest."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A way to ask whether a patched tree is right."""

    script: str
    files: Mapping[str, bytes]
    """Written after the patch, over whatever is there."""
    result_parser: str
    """The module that turns the execution into results test by test, as `registry.load` takes it."""
    timeout: float = 60.0
    patience: float = 1.0
    """Above 1, `timeout` is CPU time, and the wall time is limited to `patience` times as much: load does not count."""
    chosen: tuple[str, ...] = ()
    """The test files that are run, where they were chosen."""
    folder: str = "work"
    expected: Mapping[str, Status] | None = None
    """Exactly these tests must be reported; None: unknown, so any non-empty set will do."""
    lint: bool = False
    """Look for errors that the base does not have (the visible check does)."""
    allow_skips: bool = False
    """A skipped test is taken for an optional one: of the reference itself, and in phase 1, which know no better."""
    error_line_pattern: str = ""
    """Matches the lines of output that say what went wrong."""
    prebuild: Prebuild | None = None
    fresh: bool = False
    """Build again what was prebuilt, once in this process, even if it is in the cache."""
    grader: str = ""
    """In place of `result_parser` and `expected`: the module of the benchmark's own grader, as `registry.load` has it.
    Such a check says itself which tests must pass; of others the reference does."""
    grader_data: GraderData | None = None
    """What that grader goes by."""
    limits: Limits = CHECK_LIMITS
    """All but the time, which is `timeout` and `patience`."""
    network: bool = False
    failure_exit_codes: tuple[int, ...] = (1,)
    """Exit statuses of the runner for tests that failed."""
    reports_at_end: bool = False
    """The runner prints nothing of a test before all of them have ended."""
    canaries: tuple[Canary, ...] = ()
    """Proved by the reference; planted anew for every run, under other names in other places."""
    run_may_change: frozenset[str] = frozenset()
    """Those of `files` that a run may change: the reference's did."""
    planted: tuple[str, ...] = ()
    """Names of the canaries in `files`, of this run alone; all of them must fail."""
    planted_ids: tuple[str, ...] = ()
    """Under which they must be reported, in the same order."""
    is_reference_run: bool = False
    """Of the reference: which of those that are planted fail is what is asked."""
    own_ended: bool = False
    """The task's own tests were seen to end within `timeout`, so canaries get time of their own."""

    @property
    def seconds(self) -> float:
        """For the run. A hang must not cost more than `timeout`, whatever is planted."""
        if not self.own_ended:
            return self.timeout
        if self.is_reference_run:
            return 2 * self.timeout
        return self.timeout * (1 + len(self.planted) / len(self.expected)) if self.expected else self.timeout

    @property
    def digest(self) -> str:
        """Of all that can change a verdict; `prebuild` changes only how long it takes, and what is planted is another
        name in every run."""
        expected = None if self.expected is None else dict(sorted(self.expected.items()))
        files = _digests(self.files)
        parser = PARSER_NAMES.get(self.result_parser, self.result_parser)
        how = (parser, self.timeout, self.patience, self.folder, expected, self.lint, self.allow_skips)
        where = (str(self.grader_data and self.grader_data.identity), repr(self.limits), self.network)
        trust = (repr(self.canaries), sorted(self.run_may_change), self.failure_exit_codes)
        return fingerprint(self.script, files, *how, *where, *trust)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an agent may not know."""

    patch: str
    check: Check


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}
