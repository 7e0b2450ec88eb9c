"""Options of both programs, declared once as fields: the command line and `-c config.yaml` offer them all."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retrial.chat import Json


def option(default: Any, text: str, **known: Any) -> Any:
    """A field that is also an option; a default of () makes it repeatable, False a switch.

    `known` are `short`, `minimum`, `metavar`, `json` (an object), `filled` (empty is an error: a variable not set).
    """
    without = {"short": "", "minimum": None, "metavar": "", "json": False, "filled": False}
    return field(default=default, metadata={"help": text, **without, **known})


NEARBY = "nearby"
"""What `--visible-tests` is when nobody says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What both programs take."""

    task: tuple[str, ...] = option((), "only this task (id, language/slug or slug), repeat for more", short="-t")
    filter_category: tuple[str, ...] = option((), "only this language, repeat for more", metavar="LANG")
    sandbox: str = option("auto", "where tests run: auto, docker or bwrap")
    executor: str = option("local", "how tasks run side by side: local, or ray (a cluster that is there already)")
    ray_address: str = option("", "host:port of the cluster's head [RAY_ADDRESS, or the one of this machine]")
    test_jobs: int = option(0, "sandboxes at once, at most [from cores and free memory]", minimum=0)
    image: str = option("", "for all tasks: a target of docker/Dockerfile, such as all, or an image [the language's]")
    disk: float | None = option(
        None, "for images that tasks bring: the least recently used go [no limit]", minimum=1, metavar="GB"
    )
    test_timeout_seconds: float | None = option(None, "for one test command [the language's own]", minimum=1)
    config: str = option("", "YAML file with any of these options, _ for -", short="-c", metavar="FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How one model of the ladder is asked: options of the program for all of them, keys in YAML for one."""

    temperature: float
    retry_temperature: float
    seed: int
    max_tokens: int
    reasoning_effort: str
    extra_body: str
    """A JSON object, as text."""
    request_timeout_seconds: float | None
    api_base: str
    price: str


PER_MODEL = tuple(item.name for item in dataclasses.fields(ModelOptions))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChoice:
    """A model as people choose it."""

    name: str
    """NAME[:FORMAT]."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Those of `ModelOptions` that are others for this one."""

    def without(self, names: Container[str]) -> ModelChoice:
        """With fewer options of its own."""
        return replace(self, overrides={name: value for name, value in self.overrides.items() if name not in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessOptions(Options):
    benchmark: str = option(
        "demo-python",
        "what to run: demo, aider-polyglot, exercism-python, swe-bench-lite, swe-bench-verified, swe-bench, "
        "swe-bench-multilingual, a Hugging Face id, a file of rows, or a folder (see README)",
        short="-b",
    )
    agent: str = option(
        "edit", "who edits: edit, aider, command (any program), gold (the reference), null (nothing)", short="-a"
    )
    model: tuple[ModelChoice, ...] = option(
        (), "NAME[:FORMAT], repeat for a ladder; or replay:RUN, to play one again [local]", short="-m", metavar="NAME"
    )
    command: str = option("", "of agent command: a shell command that edits $RETRIAL_WORKSPACE", metavar="CMD")
    aider_python: str = option("", "of an environment with aider, in place of one of our own", metavar="PATH")
    agent_image: str = option("", "run the agent in a container of this image, not in bubblewrap", metavar="IMAGE")
    agent_path: tuple[str, ...] = option((), "show this to the agent, read-only, repeat for more", metavar="PATH")
    agent_env: tuple[str, ...] = option((), "give the agent this variable, repeat for more", metavar="NAME[=VALUE]")
    agent_on_host: bool = option(False, "run aider or command with all that you can reach; the results say so")
    tries: int | None = option(None, "rounds over all models until plausible [the benchmark's own]", minimum=1)
    turns: int = option(2, "messages in one chat: the first, then test output", minimum=1)
    reflections: int = option(3, "messages about malformed replies or lint errors, for each turn", minimum=0)
    edit_format: tuple[str, ...] = option(
        (), "how edits are written: auto or a format's name; repeat with --grid [auto]", metavar="FORMAT"
    )
    grid: bool = option(False, "every model with every edit format (all, or those given) as a run of its own")
    map_tokens: int = option(2048, "of the map of a repository that a model is shown", minimum=0)
    visible_tests: str = option(
        NEARBY, "of a repository: nearby (what was edited), all, original (files of the hidden tests) or none"
    )
    hide_editor_files: bool = option(False, "show the model no files beside the solution, as aider's benchmark does")
    sample_size: int | None = option(None, "the first N of one seeded shuffle of all tasks", short="-n", minimum=1)
    seed: int = option(0, "of the sample and of the models", minimum=0)
    repeat: int = option(1, "times: runs NAME.1 to NAME.K, whose models have seeds S to S+K-1", minimum=1, metavar="K")
    shard: str = option("", "the I-th of N parts of the tasks: a run with a --max-cost of its own", metavar="I/N")
    run: str = option("", "name of the run [benchmark--agent--model]")
    name: str = option("", "model_name_or_path in predictions [agent--model]")
    prior: tuple[str, ...] = option(
        (), "only what this run left without a plausible edit, repeat for more", metavar="RUN"
    )
    jobs: int = option(
        0, "questions to models at once, at most; 1: one task after the other [twice the cores, at least 16]", minimum=0
    )
    timeout_seconds: float = option(300.0, "for the agent in one attempt", minimum=1)
    max_cost: float | None = option(None, "stop before the run could cost more than this", minimum=0, metavar="USD")
    max_cost_per_task: float | None = option(None, "end a task's attempts before it could", minimum=0, metavar="USD")
    price: str = option("", "USD per million tokens, in place of the known price", metavar="IN/OUT")
    max_tokens: int = option(8192, "of one reply", minimum=1)
    reasoning_effort: str = option("", "low, medium, high, or what else the model knows", metavar="WORD")
    extra_body: str = option("", "further fields of every request, as a JSON object", metavar="JSON", json=True)
    request_timeout_seconds: float | None = option(
        None, "for one try at a question, then it is asked again [most of the attempt's time]", minimum=1
    )
    temperature: float = option(0.0, "of a model's first attempt at a task", minimum=0)
    retry_temperature: float = option(0.7, "of its later attempts", minimum=0)
    api_base: str = option("", "any OpenAI-compatible endpoint", metavar="URL")
    dry_run: bool = option(False, "say what would be done and the most it can cost; ask nothing")

    @property
    def models(self) -> tuple[ModelChoice, ...]:
        return self.model or (ModelChoice(name="local"),)

    def of(self, choice: ModelChoice) -> ModelOptions:
        """How this model is asked."""
        return ModelOptions(**{name: getattr(self, name) for name in PER_MODEL} | dict(choice.overrides))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(Options):
    benchmark: str = option("", "what a foreign file is about, or of --gold, --null and --calibrate", short="-b")
    run: str = option("", "name of the one result of several runs [A+B]")
    gold: bool = option(False, "score the reference solutions, as run gold--<benchmark>")
    null: bool = option(False, "run the acceptance tests on untouched trees, as run null--<benchmark>")
    calibrate: bool = option(False, "run references thrice, untouched trees once: which tasks to trust here")
    doctor: bool = option(False, "see what this machine has, try the limits of its sandboxes, say what to mend")
    fresh: bool = option(False, "run everything again, whatever the cache holds")
    compare: bool = option(False, "put runs side by side, and say whether they differ by more than chance")
    attempts: bool = option(False, "score every attempt, not the chosen one alone: what the best pick would have been")
    repeat: int = option(1, "times that all is scored anew, to name flaky tests", minimum=1, metavar="K")
    fail_under: float | None = option(None, "end with 3 when the rate is lower", minimum=0, metavar="PCT")
    baseline: str = option("", "end with 3 when significantly worse than this run", metavar="RUN", filled=True)
    submission: str = option("", "write a folder as SWE-bench/experiments takes them", metavar="DIR", filled=True)
    junit: str = option("", "write the verdicts as JUnit XML", metavar="FILE", filled=True)
    markdown: str = option("", "write a summary in Markdown, for a CI job's page", metavar="FILE", filled=True)
    csv: str = option("", "write one line for each instance", metavar="FILE", filled=True)
    network: bool = option(False, "let tests of tasks that live in images reach the network")
    keep_going: bool = option(False, "score the good lines of a broken predictions file; ends with 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """What model parts need of the options."""

    cache: Path
    api_base: str | None = None
    price: tuple[float, float] | None = None
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Goes into every request's body."""
    try_seconds: float | None = None
    """For one try at a question."""
