"""The values that travel through Retrial: frozen, slotted, keyword-only. Dicts live only at the JSON edge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

EXPECTED_SHARE = 0.5
"""Of the memory that a job may use, what we count on: few use all of it, and hardly ever all at once."""


class Outcome(StrEnum):
    """What came of one patch. Three families, never mixed: resolved, unresolved, not measured."""

    RESOLVED = "resolved"

    TESTS_FAILED = "tests_failed"
    BUILD_FAILED = "build_failed"
    """Nothing could be tested: the build failed or the test runner crashed."""
    TIMED_OUT = "timed_out"
    PATCH_EMPTY = "patch_empty"
    PATCH_DID_NOT_APPLY = "patch_did_not_apply"
    TAMPERED = "tampered"

    NOT_MEASURED = "not_measured"
    INSTALL_FAILED = "install_failed"
    """Not measured: the environment could not be prepared."""
    RESET_FAILED = "reset_failed"
    """Not measured: the task's tree could not be prepared."""
    UNVERIFIED = "unverified"
    """Of a visible check only: there were no tests that could say anything, neither for nor against."""

    @property
    def measured(self) -> bool:
        return self not in (
            Outcome.NOT_MEASURED, Outcome.INSTALL_FAILED, Outcome.RESET_FAILED, Outcome.UNVERIFIED
        )  # fmt: skip

    @property
    def family(self) -> str:
        if self is Outcome.RESOLVED:
            return "resolved"
        return "unresolved" if self.measured else "not measured"


class Status(StrEnum):
    """What became of one test."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where a task's commands run. Each sandbox takes from it what it understands."""

    name: str
    """A short name for people and for the digest, such as `python`."""
    image: str
    """For engines: a target of `docker/Dockerfile`, or a full image name if it has a `/` or a `:`."""
    language: str
    """For sandboxes on the host: whose toolchain to make visible; empty where only an image will do."""
    tree: str = ""
    """Where the image itself holds the task's files. Such a job starts there, as root, with a writable layer."""
    recipe: str = ""
    """Text of a Dockerfile to build the image from, where no registry has it."""
    needs: tuple[str, ...] = ()
    """Tools of the language that only some of its tasks need, this one among them."""


EnvironmentFacts: TypeAlias = Mapping[str, str | list[str]]
"""What run.json and results.json say of one environment: its digest, the versions of its tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one job may use, measured outside the sandbox."""

    seconds: float = 60.0
    """Wall time."""
    cpu_seconds: float | None = None
    """CPU time of all its processes together, where that can be measured. With such a limit, `seconds` is a backstop,
    and a job that only waits is ended after `cpu_seconds` of wall time."""
    memory_mb: int = 2048
    processes: int = 256
    cpus: float = 2.0
    disk_mb: int = 1024
    """Size of the one tmpfs that holds everything the job can write; of one file, where the image holds the tree."""
    output_bytes: int = 1_000_000
    """Of each of stdout and stderr: the first and the last half are kept."""
    report_bytes: int = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command in a fresh sandbox."""

    environment: Environment
    script: str
    """A POSIX sh script, run in the folder that holds `files`; it may write reports into `$RETRIAL_REPORTS`."""
    files: Mapping[str, bytes]
    """Relative POSIX path → content; all are made by the job's user, before the script starts."""
    executable: frozenset[str] = frozenset()
    """Which of `files` get an executable bit."""
    folder: str = "work"
    """Name of the folder the script runs in: some build tools take the project's name from it."""
    limits: Limits = Limits()
    network: bool = False
    sealed: frozenset[str] = frozenset()
    """Which of `files` must not have changed when the job has ended; those that did are said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What the sandbox saw. Nothing here was decided by reading what the job printed."""

    exit_code: int | None
    """The script's own status; None when it was killed before it ended."""
    stdout: str
    stderr: str
    seconds: float
    cpu_seconds: float | None = None
    """CPU time of all processes of the job, including the sandbox's own few; None where it cannot be measured."""
    idle_cores: float | None = None
    """Cores of the machine that were idle meanwhile, on average; None where it cannot be measured."""
    heard: float = 0.0
    """Seconds after which it printed nothing more."""
    timed_out: bool = False
    starved: bool = False
    """It ran out of wall time with CPU time left that it wanted: others had the processor."""
    oom: bool = False
    truncated: bool = False
    """Some of stdout, stderr or the reports was cut."""
    reports: Mapping[str, bytes] = field(default_factory=dict)
    """Files of `$RETRIAL_REPORTS`, read when every other process of the job was dead."""
    changed: tuple[str, ...] = ()
    """Sealed files that were not as before, or not there, when every other process of the job was dead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Everything an agent may know. Gold patches and tests are not hidden in it: they are absent."""

    instance_id: str
    benchmark: str
    language: str
    problem_statement: str
    tree: Tree
    environment: Environment
    editable: tuple[str, ...]
    """Paths that a patch may change."""
    whole_repository: bool = False
    """A patch may change and add any file but those of `protected_globs`: the task is a repository."""
    partly_editable: tuple[str, ...] = ()
    """Those of `editable` of which only a part counts, as the language says; agents need not be offered them."""
    new_file_globs: tuple[str, ...] = ()
    """Globs of file names that a patch may add in the folder of an editable file."""
    protected_globs: tuple[str, ...] = ()
    """Globs of file names (of paths, with a slash) that a patch may never add (nor change, if it may go anywhere):
    tests, build and configuration files."""
    read_only: tuple[str, ...] = ()
    """Paths shown to the agent as there to be used, not to be changed."""
    aliases: tuple[str, ...] = ()
    """Other names that `-t` takes for it, such as `python/word-count`."""

    @property
    def offered(self) -> tuple[str, ...]:
        """What an agent is asked to edit. Not the manifests: the task is about code, and asks for no packages."""
        return tuple(path for path in self.editable if path not in self.partly_editable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one check said of one patch."""

    outcome: Outcome
    reason: str = ""
    """One sentence for people; empty when resolved."""
    tests: Mapping[str, Status] = field(default_factory=dict)
    lint: tuple[str, ...] = ()
    """What is wrong with the edited code itself: `path:line: CODE message`, or the compiler's own lines."""
    exit_code: int | None = None
    seconds: float = 0.0
    cpu_seconds: float | None = None
    """None where it could not be measured."""
    proof: str = ""
    """Of a resolved one: `canary`, `canary-weak`, `report`, `log`; `status` for a task's own command without report."""
    rule: str = ""
    """Of a tampered one: the rule that caught it."""
    canary: str = ""
    """Names of the tests that had to fail, with commas; of the reference, of all candidates."""
    proved: tuple[str, ...] = ()
    """Of the reference, and wherever the benchmark says which tests must pass: canaries that failed by an assertion."""
    erred: tuple[str, ...] = ()
    """There also: canaries that failed by something else, which proves nothing."""
    proved_ids: tuple[str, ...] = ()
    """Of the reference: all ids under which canaries failed by an assertion."""
    changed: tuple[str, ...] = ()
    """Test, build and configuration files that the run changed."""
    stdout: str = ""
    stderr: str = ""
    busy: bool = False
    """Of one that timed out: the machine was busy, which may be why; it is not cached."""
    dropped: tuple[str, ...] = ()
    """Paths that the patch touched and that do not count."""
    telling: str = ""
    """What a model is to be told, where that is not the output itself."""
    applied: str = ""
    """The command that applied the patch, where the tree is in an image."""
    official: bool | None = None
    """What the benchmark's own grading says of the same log, where it has one."""
    chosen: tuple[str, ...] = ()
    """Of a visible check: the test files that were run, where they were chosen."""
    fallbacks: tuple[str, ...] = ()
    """Of a visible check: which test files were chosen before and given up, and why."""

    @property
    def resolved(self) -> bool:
        return self.outcome is Outcome.RESOLVED

    @property
    def output(self) -> str:
        return "\n".join(part for part in (self.stdout.rstrip(), self.stderr.rstrip()) if part)


def fingerprint(*parts: object) -> str:
    """A digest of plain values that is the same in every process."""
    return hashlib.sha256(_PLAIN.encode(parts).encode()).hexdigest()


_PLAIN = json.JSONEncoder(sort_keys=True, ensure_ascii=True, default=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCapacity:
    cores: int
    memory_mb: float

    def jobs(self) -> int:
        """How many sandboxes at once it is good for."""
        return max(1, min(self.cores, int(self.memory_mb / (EXPECTED_SHARE * Limits().memory_mb))))


class Tree(Protocol):
    """How to check a task's files out."""

    @property
    def digest(self) -> str:
        """The same for the same files, on every machine."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """Relative POSIX path → content; of a symlink, its target.

        Raises: TreeError when they cannot be had.
        """
        ...

    def modes(self) -> Mapping[str, str]:
        """Path → git mode of those that are not plain files: executables and symlinks."""
        ...

    def some(self, paths: Iterable[str]) -> Mapping[str, bytes]:
        """Those of `files` with these paths, without reading the others."""
        ...
