"""The contract of a language: data and quirks, and the parser of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from retrial.checks import Prebuild
from retrial.types import Environment, Execution, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """A language as found on this host, for sandboxes without images."""

    version: str
    """As the tool says it; part of the environment's digest."""
    binds: tuple[tuple[str, str], ...] = ()
    """(path on the host, path in the sandbox), each read-only; /usr is always there."""
    symlinks: tuple[tuple[str, str], ...] = ()
    """(target, path in the sandbox)."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Small files to create in the sandbox, absolute path → content."""
    path: tuple[str, ...] = ()
    """Folders that go in front of PATH."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Tools that only some tasks need and that are not here → one sentence saying what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What one check of an exercise is to run."""

    solution: tuple[str, ...]
    tests: tuple[str, ...]
    contents: Mapping[str, bytes] = field(default_factory=dict)
    """Of the tests, as the task has them: what is to run them may depend on it."""
    command: str = ""
    """The task's own test command, in place of the language's."""
    optimised: bool = False
    """The exercise asks for it (`test-in-release-mode`): its tests take long."""
    hidden: bool = False
    """All tests, hardened; else the command that people know, after a look at the solution alone (lint)."""


class ResultParser(Protocol):
    """A module that turns what a test runner left into results."""

    def read(self, execution: Execution) -> Mapping[str, Status] | str:
        """Test id → status, or one sentence saying why nothing could be read."""

    def asserted(self, execution: Execution, results: Mapping[str, Status]) -> frozenset[str]:
        """Ids of those results that are failures by an assertion: not by an exception, a crash or a limit."""

    def text(self, stdout: str) -> str:
        """What people read, where the runner speaks to machines on its standard output; else that itself."""

    def without(self, text: str, test: str) -> str:
        """What people read, without what it says of the test of that name (a canary's)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Data and quirks of one language; what is not said is not special."""

    name: str
    """Also its target in `docker/Dockerfile` and its folder in `docker/prepare/`."""
    minimum: str
    """The oldest version its tests are known to run on, of the first of `tools`."""
    suffixes: tuple[str, ...]
    """Of source files, with the dot."""
    tests: tuple[str, ...]
    """Globs of test files: of their names, or of whole paths if they have a slash."""
    result_parser: str
    tools: Mapping[str, str]
    """Programs that the scripts need → a command that says the version in its first line."""
    toolchain: Callable[[], Toolchain | str]
    """What the host has, or one sentence saying what is missing."""
    script: Callable[[Suite], str]
    """A POSIX sh script that leaves a report. `== lint`, `== build` and `== test` on stdout say how far it is;
    `lint.txt` among the reports, if it has any line, is what is wrong with the solution whatever the tests say."""
    reference: Callable[[tuple[str, ...], Mapping[str, bytes]], Mapping[str, bytes]]
    """(Solution paths, the reference's files by path) → the files they stand for."""
    optional: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Those of `tools` that only some tasks need → a file of the task, and a pattern in it that says so."""
    reference_files: tuple[str, ...] = ()
    """Where a reference may have more files than the exercise lists."""
    build_folders: tuple[str, ...] = ()
    """Left behind by builds; never part of a task."""
    protected_globs: tuple[str, ...] = ()
    """Globs of build, configuration and start-up file names that a patch may not add."""
    partly_editable: tuple[str, ...] = ()
    """Solution files of which only a part counts."""
    admitted: Callable[[bytes, bytes], bytes] = lambda before, after: after
    """(Partial file as it was, as it is after the patch) → what counts."""
    checked: Callable[[Mapping[str, bytes]], Mapping[str, bytes]] = dict
    """The task's test files → what is written after the patch: every test switched on, build files of ours added."""
    prebuild: Callable[[Mapping[str, bytes]], Prebuild | None] | None = None
    """What can be compiled once for all patches, of the task's own files."""
    lint: Callable[[Mapping[str, bytes], Mapping[str, bytes]], tuple[str, ...]] = lambda before, after: ()
    """Errors in `after` that `before` does not have, for a language that is read on the host; reads, never runs."""
    error_line_pattern: str = ""
    """Matches the lines of output that say what went wrong."""
    canaries: str = ""
    """The module, as `registry.load` takes it, whose `canaries(files)` makes of the check's files tests that must fail,
    the best first and a weak one last; which of them do is proved once by the reference, with all of them in place."""
    failure_exit_codes: tuple[int, ...] = (1,)
    """Exit statuses of the runner for tests that failed."""
    suspicious: tuple[tuple[str, str], ...] = ()
    """(Pattern, what it is) of lines that honest solutions hardly have: a flag for people, never a verdict."""
    timeout: float = 60.0
    """Seconds for one test command, unless the user says otherwise."""
    reports_at_end: bool = False
    """Its runner prints nothing of a test before all of them have ended."""
    command_parser: str = "grading.exit_status"
    """For a task's own command: whether that leaves a report too."""

    @property
    def environment(self) -> Environment:
        return Environment(name=self.name, image=self.name, language=self.name)
