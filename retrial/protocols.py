"""The seams. A part inherits from nothing; a part's file is its name on the command line. A language is a value.

Every part's module has `make(context) -> part` (languages, edit formats and exports: `make() -> part`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from retrial.attempts import AgentResult
from retrial.chat import Edits, Message, Reply, Request, Tool, Usage
from retrial.checks import Answer, Check
from retrial.options import HarnessOptions, ModelSettings, ReportOptions
from retrial.types import Environment, Execution, HostCapacity, Job, Status, Task, Verdict

J = TypeVar("J")
R = TypeVar("R")
S = TypeVar("S")
J_contra = TypeVar("J_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


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

    def ask(self, messages: tuple[Message, ...], tools: tuple[Tool, ...] = ()) -> Reply:
        """Raises: ModelError, BudgetSpent; AttemptOver when the attempt's time or the task's money is over."""
        ...

    def left(self) -> float:
        """Seconds of the attempt's time; what our own tests take is not counted."""
        ...

    def spend(self, usage: Usage) -> None:
        """For an agent that asks on its own and cannot say it in its `AgentResult`, for it is about to raise."""
        ...


class WorkspaceCheck(Protocol):
    """The visible check as an agent meets it."""

    def __call__(self) -> Verdict:
        """What the visible tests say of the workspace as it is now. Raises: NotMeasured."""
        ...


class Agent(Protocol):
    """Edits a workspace."""

    def solve(self, task: Task, workspace: Workspace, model: Chat, check: WorkspaceCheck) -> AgentResult:
        """Raises: NotMeasured (from the model or the check) to say that this go cannot be counted."""
        ...


class EditFormat(Protocol):
    """How a model is asked to write edits, and how they are read."""

    prompt: str
    """Part of the system message."""
    tools: tuple[Tool, ...]
    """At most one function, in OpenAI's schema; the model must call it."""

    def parse(self, reply: Reply, files: Mapping[str, str]) -> Edits:
        """Pure; asked through `retrial.formats.read`, which keeps what all formats share: the reply says something and
        has no reasoning in it, line ends are LF. `files` are the editable files in the chat, as they are now.
        """
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

    def machine(self) -> HostCapacity:
        """What there is for jobs, where they run."""
        ...

    def run(self, job: Job) -> Execution:
        """One job in a fresh sandbox; when it returns nothing of the job is left.

        Raises: SandboxError when the sandbox itself failed (never for what the job did).
        """
        ...


class Stop(Protocol):
    """The request to stop: what is under way is finished, nothing new is started."""

    reason: str
    interrupted: bool

    @property
    def is_set(self) -> bool:
        """Whether it was requested. Looks at nothing else, so that it may be called with a lock held."""
        ...

    @property
    def requested(self) -> bool:
        """Whether it was requested, or a reason to stop has come up."""
        ...

    def watch(self, why: Callable[[], str]) -> None:
        """Ask this function too: a reason that it returns is a request."""
        ...

    def on_request(self, wake: Callable[[], None]) -> None:
        """Call this function when it is requested."""
        ...

    def wait(self, seconds: float) -> bool:
        """Return whether it is requested within this time."""
        ...

    def request(self, reason: str) -> bool:
        """Request it; return whether this was the first request."""
        ...

    def raise_if_set(self) -> None:
        """Raises: Stopped when nothing new may be started."""
        ...

    def end(self) -> None:
        """Raises: KeyboardInterrupt or Stopped if it was requested. To be called when all results were handed out."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerNode:
    """Where work is done, on another machine."""

    slots: int
    """Sandboxes at once, at most."""
    stop: Stop
    """Asked to stop when the driver is."""


class Work(Protocol[J_contra, R_co]):
    """What is done with one job, in any thread. Work that needs something of its machine has `elsewhere()`, a picklable
    function from a `WorkerNode` to the same work there."""

    def __call__(self, job: J_contra, /) -> R_co:
        """Raises: NotMeasured when nothing can be said of the job."""
        ...


class Executor(Protocol):
    """Runs work on many jobs at once, perhaps on other machines: work, jobs and results can be pickled."""

    def share(self, service: S) -> S:
        """The object as work may call it from wherever it runs: its methods run here. Plain values in and out."""
        ...

    def run(self, work: Work[J, R], jobs: Iterable[J]) -> Iterator[tuple[J, R | Exception]]:
        """Results as they finish; the only place where any exception becomes a value. Jobs whose work was stopped
        (`Stopped`) are not handed out.

        Raises: KeyboardInterrupt after Ctrl-C, Stopped for another reason, when what was under way has been handed out.
        """
        ...


class Grader(Protocol):
    """A benchmark's own rules for its checks. A check names its module, whose `grader(check.grader_data)` makes it."""

    @property
    def required(self) -> tuple[str, ...]:
        """The tests that must pass."""
        ...

    def requiring(self, check: Check, tests: tuple[str, ...]) -> Check:
        """The visible check, with these tests in place of those: the ones that passed on the untouched tree."""
        ...

    def plant(self, check: Check, environment: Environment, sandbox: Sandbox) -> Check:
        """The check with canaries in its tests; as it was where it has some, or none can be made.

        Raises: SandboxError.
        """
        ...

    def job(self, task: Task, patch: str, check: Check, sandbox: Sandbox) -> Job:
        """The job that applies the patch and runs the check.

        Raises: PatchError, InstallDiffers, SandboxError.
        """
        ...

    def judge(self, check: Check, execution: Execution) -> Verdict:
        """What the execution proves. Pure."""
        ...

    def settle(
        self, check: Check, verdict: Verdict, reference: Callable[[], Verdict], *, is_reference: bool
    ) -> Verdict:
        """The verdict of scoring, after a look at the reference's own run where this one is in doubt.

        Raises: NetworkNeeded.
        """
        ...

    def official(self, check: Check, patch: str, verdict: Verdict) -> bool | None:
        """What the benchmark's own runner would say of the whole patch; None where it would run something else."""
        ...

    def not_passed(self, tests: Mapping[str, Status]) -> list[str]:
        """Those of `required` that did not pass, in order of their names."""
        ...

    def log(self, verdict: Verdict) -> str:
        """What the tests printed, without what came before them; empty where they were not started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What benchmarks, sandboxes and executors are made from."""

    options: HarnessOptions | ReportOptions | None
    """The program's; None where no program runs, as in a test of one part."""
    name: str = ""
    """For benchmarks: as on the command line."""
    workers: int = 1
    """For executors: how many jobs at once."""
    stop: Stop | None = None
    """For executors: what is asked to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContext:
    """What agents are made from."""

    options: HarnessOptions
    benchmark: Benchmark | None = None
    model: str = ""
    """This rung's, as on the command line, without the format; empty for none."""
    edit_format: str = ""
    """For agents that write edits: how this rung's model is asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelContext:
    """What models are made from."""

    options: ModelSettings
    name: str = ""
    """What follows the part's own name on the command line, as in `replay/FILE` or `local/FILE.gguf`."""
