"""The values that travel through Retrial: frozen, slotted, keyword-only. Dicts live only at the JSON edge."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

EXPECTED_SHARE = 0.5
"""Of the memory that a job may use, what we count on: few use all of it, and hardly ever all at once."""
PREBUILT_FOLDER = ".retrial"
"""Where jobs find what was built once for all patches. No patch can reach it: no solution lies in such a folder."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prebuild:
    """Something that is the same for every patch, made once in a sandbox from the task's own files."""

    script: str
    """What it leaves in `$RETRIAL_REPORTS` is there for later jobs, below `.retrial/`."""
    files: Mapping[str, bytes]
    fresh: bool = False
    """Make it again, once in this process, even if it is in the cache."""
    limits: Limits = Limits(seconds=300, report_bytes=64 << 20)

    @property
    def digest(self) -> str:
        return fingerprint(self.script, _digests(self.files))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinstall:
    """How the package of an image's tree is installed again where there is no network."""

    trial: Prebuild
    """Installs the untouched package and reports what is installed before and after."""
    always: bool
    """Every patch needs it: the install copies the package instead of pointing at the tree."""


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
    reinstall: Reinstall | None = None
    """Where the image holds the tree and the script installs it; None with a network, where that needs no care."""
    required: OfficialTests | None = None
    """In place of `result_parser` and `expected`: the benchmark's own log parser and list of tests."""
    limits: Limits = Limits()
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
        """Of all that can change a verdict; `prebuild` changes only how long it takes, `reinstall` only whether there
        is a verdict, and what is planted is another name in every run."""
        expected = None if self.expected is None else dict(sorted(self.expected.items()))
        files = _digests(self.files)
        parser = PARSER_NAMES.get(self.result_parser, self.result_parser)
        how = (parser, self.timeout, self.patience, self.folder, expected, self.lint, self.allow_skips)
        # Caches of earlier versions hold the digest with the class's former name.
        required = repr(self.required).replace("OfficialTests(", "Required(", 1)
        where = (required, repr(self.limits), self.network)
        trust = (repr(self.canaries), sorted(self.run_may_change), self.failure_exit_codes)
        return fingerprint(self.script, files, *how, *where, *trust)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an agent may not know."""

    patch: str
    check: Check


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


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}


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


@dataclass(frozen=True, slots=True)
class Judgement:
    outcome: Outcome
    reason: str = ""
    rule: str = ""
    """That was broken, where something was tampered with."""


def overtime(check: Check, execution: Execution) -> Judgement:
    """Return what a test run that was ended by one of its limits says of the patch, and which limit that was."""
    limit, wall, used = check.timeout, check.patience * check.timeout, execution.cpu_seconds
    if execution.starved:
        said = f"the machine is overloaded: in {wall:g} s the tests got {used:.1f} s of their {limit:g} s of CPU time"
        return Judgement(Outcome.NOT_MEASURED, f"{said}; run the same command again when the load is lower")
    if check.patience > 1 and used is None:
        return Judgement(Outcome.TIMED_OUT, f"the tests did not end within {limit:g} s")
    if check.patience > 1 and used is not None and used >= limit:
        return Judgement(Outcome.TIMED_OUT, f"the tests did not end within {limit:g} s of CPU time")
    if check.patience > 1 and execution.seconds < wall:
        return Judgement(Outcome.TIMED_OUT, f"the tests hung: they waited for {limit:g} s and used almost no CPU time")
    return Judgement(Outcome.TIMED_OUT, f"the tests did not end within {wall:g} s")
