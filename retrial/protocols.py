"""The seams. A part inherits from nothing; a part's file is its name on the command line. A language is a value.

Every part's module has `make(context) -> part` (languages and edits: `make() -> part`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from retrial.attempts import Effort, Message, Reply, Request, Usage
from retrial.system.host import Machine
from retrial.system.shutdown import Stop
from retrial.types import Answer, Canary, Check, Environment, Execution, Job, Prebuild, Status, Task, Verdict

J = TypeVar("J")
R = TypeVar("R")
S = TypeVar("S")


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


class Benchmark(Protocol):
    """A set of tasks with their checks and answers."""

    name: str
    default_tries: int
    visible_is_hidden: bool
    """The visible tests are the acceptance tests, so a retry from scratch is pass@k."""

    @property
    def provenance(self) -> Mapping[str, str]:
        """Where the tasks come from: path or address, commit or digest."""
        ...

    def tasks(self) -> tuple[Task, ...]:
        """All tasks, sorted by id.

        Raises: UsageError when the benchmark cannot be read.
        """
        ...

    def visible(self, instance_id: str, edited: Iterable[str] = (), most: int | None = None) -> Check | str:
        """The check of phase 1 for a patch that edits these files, with `most` test files at most where they are chosen
        by the edit; or one sentence saying why there is none."""
        ...

    def answer(self, instance_id: str) -> Answer:
        """Only scoring, reference runs and the `gold` agent may call this."""
        ...


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
    reader: str
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
    reserved: tuple[str, ...] = ()
    """Globs of build, configuration and start-up file names that a patch may not add."""
    partial: tuple[str, ...] = ()
    """Solution files of which only a part counts."""
    admitted: Callable[[bytes, bytes], bytes] = lambda before, after: after
    """(Partial file as it was, as it is after the patch) → what counts."""
    checked: Callable[[Mapping[str, bytes]], Mapping[str, bytes]] = lambda files: files
    """The task's test files → what is written after the patch: every test switched on, build files of ours added."""
    prebuild: Callable[[Mapping[str, bytes]], Prebuild | None] = lambda files: None
    """What can be compiled once for all patches, of the task's own files."""
    lint: Callable[[Mapping[str, bytes], Mapping[str, bytes]], tuple[str, ...]] = lambda before, after: ()
    """Errors in `after` that `before` does not have, for a language that is read on the host; reads, never runs."""
    telling: str = ""
    """Matches the lines of output that say what went wrong."""
    canaries: Callable[[Mapping[str, bytes]], tuple[Canary, ...]] = lambda files: ()
    """The check's files → tests that must fail, the best first and a weak one last; which of them do is proved once by
    the reference, with all of them in place."""
    failing: tuple[int, ...] = (1,)
    """Exit statuses of the runner for tests that failed."""
    suspicious: tuple[tuple[str, str], ...] = ()
    """(Pattern, what it is) of lines that honest solutions hardly have: a flag for people, never a verdict."""
    timeout: float = 60.0
    """Seconds for one test command, unless the user says otherwise."""
    reports_at_end: bool = False
    """Its runner prints nothing of a test before all of them have ended."""
    command_reader: str = "grading.exit_status"
    """For a task's own command: whether that leaves a report too."""

    @property
    def environment(self) -> Environment:
        return Environment(name=self.name, image=self.name, language=self.name)


class Workspace(Protocol):
    """A plain folder with a one-commit repository, as an agent sees it."""

    root: Path

    def diff(self) -> str:
        """Everything that differs from the base, new files included, as we read it."""
        ...

    def read(self, path: str) -> bytes | None:
        """A file's content; None when there is none, or when it lies outside."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Raises: PatchError when the path leaves the workspace or goes through a symlink."""
        ...

    def remove(self, path: str) -> None:
        """Raises: PatchError as `write` does, or when there is no such file."""
        ...

    def hand_over(self, user: int) -> None:
        """Make everything here that user's: root does, for a program that is to work here and is not root."""
        ...


class Chat(Protocol):
    """A model as an agent meets it: journalled, metered, with this attempt's seed and temperature."""

    name: str
    temperature: float
    seed: int
    """Of this attempt, for agents that ask on their own."""

    def ask(self, messages: tuple[Message, ...], tools: tuple[Mapping[str, object], ...] = ()) -> Reply:
        """Raises: ModelError, BudgetSpent; AttemptOver when the attempt's time or the task's money is over."""
        ...

    def left(self) -> float:
        """Seconds of the attempt's time; what our own tests take is not counted."""
        ...

    def spend(self, usage: Usage) -> None:
        """For an agent that asks on its own and cannot say it in its `Effort`, for it is about to raise."""
        ...


class Agent(Protocol):
    """Edits a workspace."""

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: Callable[[], Verdict]) -> Effort:
        """Raises: NotMeasured (from the model or the check) to say that this go cannot be counted."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The new content of one file."""

    path: str
    content: str | None
    """None: the file is to go."""


class Fault(StrEnum):
    """What can be wrong with a reply."""

    EMPTY = "empty"
    """It says nothing."""
    CUT_OFF = "cut_off"
    """It ended at its limit, before its edits did."""
    NO_EDIT = "no_edit"
    """It has words, but no edit."""
    MALFORMED = "malformed"
    """Its edits break the format's grammar."""
    BROKEN_CALL = "broken_call"
    """It calls no function that there is, or with arguments that are not what was asked for."""
    NO_NAME = "no_name"
    """It does not say which file an edit is for."""
    NO_MATCH = "no_match"
    """The lines to replace are not in the file."""
    AMBIGUOUS = "ambiguous"
    """The lines to replace are in the file several times."""
    NOT_ALLOWED = "not_allowed"
    """It edits what may not be edited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    """What a reply asks for: all of its edits, or why it is malformed (then the text goes back to the model)."""

    edits: tuple[Edit, ...] = ()
    problem: str = ""
    fault: Fault | None = None
    """What kind of problem it is."""


class EditFormat(Protocol):
    """How a model is asked to write edits, and how they are read."""

    prompt: str
    """Part of the system message."""
    tools: tuple[Mapping[str, object], ...]
    """At most one function, in OpenAI's schema; the model must call it."""

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        """Pure; asked through `retrial.formats.read`, which keeps what all formats share: the reply says something and
        has no reasoning in it, line ends are LF. `files` are the editable files in the chat, as they are now.
        """
        ...

    def render(self, edits: tuple[Edit, ...], files: Mapping[str, str]) -> Reply:
        """The reply that asks for these edits of these files, as a perfect model would write it."""
        ...


class Model(Protocol):
    """Something that answers."""

    name: str

    def complete(self, request: Request) -> Reply:
        """Raises: ModelError when no whole answer could be had."""
        ...


class Sandbox(Protocol):
    """Runs jobs apart from the host and from each other."""

    name: str

    def unavailable(self, environments: Iterable[Environment]) -> str:
        """Why it cannot run jobs in these environments here, in one sentence; empty when it can. Builds nothing."""
        ...

    def missing(self, environment: Environment) -> str:
        """What toolchain this host lacks for it, in one sentence; always empty for sandboxes that bring their own."""
        ...

    def state(self, environment: Environment) -> str:
        """Whether the environment is ready, for people: `ready`, or what must be built first and how large it is."""
        ...

    def prepare(self, environment: Environment, say: Callable[[str], None]) -> None:
        """Make the environment ready (build its image); does nothing when it is.

        Raises: EnvironmentMissing.
        """
        ...

    def digest(self, environment: Environment) -> str:
        """Names exactly what jobs run on: image id, or the toolchain's version."""
        ...

    def describe(self) -> Mapping[str, str]:
        """Tool, version and by what the limits are held; goes into run.json."""
        ...

    def machine(self) -> Machine:
        """What there is for jobs, where they run."""
        ...

    def run(self, job: Job) -> Execution:
        """One job in a fresh sandbox; when it returns nothing of the job is left.

        Raises: SandboxError when the sandbox itself failed (never for what the job did).
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where work is done, on another machine."""

    slots: int
    """Sandboxes at once, at most."""
    stop: Stop
    """Asked to stop when the driver is."""


class Executor(Protocol):
    """Runs work on many jobs at once, perhaps on other machines: work, jobs and results can be pickled. Work that needs
    something of its machine has `elsewhere()`: a function that can be pickled, from a `Site` to the same work there."""

    def share(self, service: S) -> S:
        """The object as work may call it from wherever it runs: its methods run here. Plain values in and out."""
        ...

    def run(self, work: Callable[[J], R], jobs: Iterable[J]) -> Iterator[tuple[J, R | Exception]]:
        """Results as they finish; the only place where any exception becomes a value. Jobs whose work was stopped
        (`Stopped`) are not handed out.

        Raises: KeyboardInterrupt after Ctrl-C, Stopped for another reason, when what was under way has been handed out.
        """
        ...


class Reader(Protocol):
    """Turns what a test runner left into results."""

    def read(self, execution: Execution) -> Mapping[str, Status] | str:
        """Test id → status, or one sentence saying why nothing could be read."""
        ...

    def asserted(self, execution: Execution) -> frozenset[str]:
        """Ids of tests that failed by an assertion of theirs: not by an exception, a crash or a limit."""
        ...

    def text(self, stdout: str) -> str:
        """What people read, where the runner speaks to machines on its standard output; else that itself."""
        ...

    def without(self, text: str, test: str) -> str:
        """What people read, without what it says of the test of that name (a canary's)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What parts are made from: the options, and what was made before."""

    options: Any
    """The program's options (`config.HarnessOptions`, `config.ReportOptions`); for models a `models.ModelSettings`."""
    benchmark: Any = None
    name: str = ""
    """What follows the part's own name on the command line, as in `replay/FILE` or `local/FILE.gguf`."""
    model: str = ""
    """For agents: this rung's, as on the command line, without the format; empty for none."""
    edit_format: str = ""
    """For agents that write edits: how this rung's model is asked to."""
    workers: int = 1
    """For executors: how many jobs at once."""
    stop: Stop = field(default_factory=Stop)
    """For executors: what is asked to stop."""
