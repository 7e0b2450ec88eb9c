"""Options: declared once as fields, offered on the command line and as keys of `-c config.yaml`, resolved once."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from retrial import config_values, machine, paths, small_files
from retrial.config_values import nearest, option_name, type_name
from retrial.errors import UsageError
from retrial.machine import Machine


def option(default: Any, text: str, **known: Any) -> Any:
    """A field that is also an option; a default of () makes it repeatable, False a switch.

    `known` are `short`, `minimum`, `metavar`, `json` (an object), `filled` (empty is an error: a variable not set).
    """
    without = {"short": "", "minimum": None, "metavar": "", "json": False, "filled": False}
    return field(default=default, metadata={"help": text, **without, **known})


NEARBY = "nearby"
"""What `--visible-tests` is when nobody says."""


LEAST_CALLS = 16
MOST = 16 << 20
"""Bytes of a configuration."""
AHEAD = 4
"""So many tasks for each sandbox may wait for it."""


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

    @property
    def cache(self) -> Path:
        return paths.cache()


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
    own: Mapping[str, Any] = field(default_factory=dict)
    """Those of `ModelOptions` that are others for this one."""

    def without(self, names: Container[str]) -> ModelChoice:
        """With fewer options of its own."""
        return replace(self, own={name: value for name, value in self.own.items() if name not in names})


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
        return ModelOptions(**{name: getattr(self, name) for name in PER_MODEL} | dict(choice.own))


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


T = TypeVar("T", HarnessOptions, ReportOptions)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parse(
    kind: type[T],
    argv: Sequence[str],
    description: str,
    positional: str = "",
    complete: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda given: given,
) -> tuple[T, tuple[str, ...]]:
    """Options and positional arguments; the command line wins over the configuration file.

    `complete` may add to what is given. Raises: UsageError.
    """
    parser = _parser(kind, description, positional)
    found, unknown = parser.parse_known_args(argv)
    if unknown:
        known = [text for action in parser._actions for text in action.option_strings]
        raise UsageError(f"unknown argument '{unknown[0]}'{nearest(unknown[0].partition('=')[0], known)}")
    given = vars(found)
    rest = tuple(given.pop("paths", ()))
    from_file = _read_config(kind, Path(given["config"])) if given.get("config") else {}
    return _without_own(_resolve(kind, complete({**from_file, **given})), given), rest


def _without_own(options: T, given: Mapping[str, Any]) -> T:
    """What is said on the command line is for all models, also for those that the file gives options of their own."""
    if not isinstance(options, HarnessOptions):
        return options
    return replace(options, model=tuple(choice.without(given) for choice in options.model))


def _parser(kind: type[T], description: str, positional: str) -> Parser:
    parser = Parser(
        prog=Path(sys.argv[0]).name,
        description=description,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=36, width=110),
    )
    if positional:
        parser.add_argument("paths", nargs="*", metavar=positional, default=argparse.SUPPRESS)
    for item in dataclasses.fields(kind):
        _add(parser, item)
    return parser


def _add(parser: Parser, item: dataclasses.Field[Any]) -> None:
    flags = [flag for flag in (item.metadata["short"], option_name(item.name)) if flag]
    text = item.metadata["help"]
    if item.default is False:
        parser.add_argument(*flags, action="store_true", help=text)
        return
    if item.default not in (None, (), "", 0) and "[" not in text:
        text += f" [{item.default}]"
    action = "append" if item.default == () else "store"
    metavar = item.metadata["metavar"] or {"int": "N", "float": "N"}.get(
        type_name(item), item.name.split("_")[-1].upper()
    )
    parser.add_argument(*flags, action=action, metavar=metavar, help=text.replace("%", "%%"))


def _content(path: Path) -> bytes:
    """Raises: OSError."""
    if os.path.realpath(path.parent) != os.path.realpath("/dev/fd"):
        return small_files.read(path, MOST)
    # Process substitution, `-c <(...)`: a pipe that the shell has opened for us, so it has a writer.
    with path.open("rb") as pipe:
        return pipe.read(MOST)


def _read_config(kind: type[T], path: Path) -> dict[str, Any]:
    import yaml

    try:
        value = yaml.safe_load(_content(path).decode("utf-8"))
    except OSError as error:
        raise UsageError(f"The configuration {path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise UsageError(f"{where} is not valid YAML: {getattr(error, 'problem', None) or error}.") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UsageError(f"{path} must hold keys and values, such as 'benchmark: demo'.")
    known = [item.name for item in dataclasses.fields(kind) if item.name != "config"]
    for key in value:
        if key not in known:
            raise UsageError(f"{path} has an unknown key '{key}'{nearest(str(key), known)}")
    return value


def _resolve(kind: type[T], given: Mapping[str, Any]) -> T:
    fields = {item.name: item for item in dataclasses.fields(kind)}
    return kind(**{name: _value(fields[name], value) for name, value in given.items()})


def _value(item: dataclasses.Field[Any], value: Any) -> Any:
    return tuple(_choices(value)) if item.name == "model" else config_values.value(item, value)


def _choices(value: Any) -> Iterator[ModelChoice]:
    """Names, or from a file names with options of their own."""
    fields = {item.name: item for item in dataclasses.fields(HarnessOptions) if item.name in PER_MODEL}
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            yield from () if each is None else (ModelChoice(name=config_values.text("--model", each)),)
            continue
        if not isinstance(each.get("name"), str):
            raise UsageError(f"each model with options of its own needs a name, and {each} has none.")
        for key in each:
            if key not in (known := ("name", *fields)):
                raise UsageError(f"model '{each['name']}' has an unknown key '{key}'{nearest(str(key), known)}")
        yield ModelChoice(name=each["name"], own=_own(each, fields))


def _own(model: Mapping[str, Any], fields: Mapping[str, dataclasses.Field[Any]]) -> dict[str, Any]:
    try:
        return {key: config_values.value(fields[key], said) for key, said in model.items() if key != "name"}
    except UsageError as error:
        raise UsageError(f"model '{model['name']}': {error}") from error


def calls_at_once(jobs: int) -> int:
    """Of `--jobs`: models are asked without cores of ours."""
    return jobs or max(LEAST_CALLS, 2 * machine.here().cores)


def tasks_in_flight(jobs: int, test_jobs: int) -> int:
    """More than questions: those whose tests wait for a sandbox must not keep a model idle."""
    calls = calls_at_once(jobs)
    return 1 if calls == 1 else calls + AHEAD * sandboxes_at_once(test_jobs)


def sandboxes_at_once(test_jobs: int, where: Machine | None = None) -> int:
    """Of `--test-jobs`, or as many as the machine is good for: this one, or that."""
    return test_jobs or (where or machine.here()).jobs()
