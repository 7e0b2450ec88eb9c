"""The command line and `-c config.yaml`, resolved once into options."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from retrial.errors import UsageError
from retrial.options import PER_MODEL, HarnessOptions, ModelChoice, ReportOptions

MOST = 16 << 20
"""Bytes of a configuration."""
LARGEST = 1_000_000
"""Of any number: eleven days in seconds; clocks and counters overflow beyond."""

OURS: Mapping[str, str] = {
    "model": "-m",
    "messages": "--agent",
    "temperature": "--temperature",
    "seed": "--seed",
    "max_tokens": "--max-tokens",
    "max_completion_tokens": "--max-tokens",
    "reasoning_effort": "--reasoning-effort",
    "tools": "--edit-format",
    "tool_choice": "--edit-format",
    "n": "--tries",
    "stream": "",
}
"""Fields of a request that an extra body may not have → the option for it. What they do is counted, and paid for."""
T = TypeVar("T", HarnessOptions, ReportOptions)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def harness(argv: Sequence[str]) -> tuple[HarnessOptions, Sequence[str]]:
    """Return the options of harness.py, and the command line they are from. Raises: UsageError."""
    description = "Run a code-editing agent over tasks until an edit is plausible, and write predictions."
    return parse(HarnessOptions, argv, description)[0], argv


def report(argv: Sequence[str]) -> tuple[ReportOptions, tuple[str, ...], Sequence[str]]:
    """Return the options of report.py, its positional arguments, and the command line. Raises: UsageError."""
    description = "Score predictions in fresh sandboxes with the acceptance tests, and write results.json."
    return *parse(ReportOptions, argv, description, positional="RUN|FILE"), argv


def parse(kind: type[T], argv: Sequence[str], description: str, positional: str = "") -> tuple[T, tuple[str, ...]]:
    """Options and positional arguments; the command line wins over the configuration file. Raises: UsageError."""
    parser = _parser(kind, description, positional)
    found, unknown = parser.parse_known_args(argv)
    if unknown:
        known = [text for action in parser._actions for text in action.option_strings]
        raise UsageError(f"unknown argument '{unknown[0]}'{nearest(unknown[0].partition('=')[0], known)}")
    given = vars(found)
    rest = tuple(given.pop("paths", ()))
    from_file = _read_config(kind, Path(given["config"])) if given.get("config") else {}
    settings = {**from_file, **given}
    if kind is HarnessOptions:
        # Not before: --help does without it.
        from retrial.predict.metering import recording

        settings = recording.complete(settings)
    options = _resolve(kind, settings)
    if isinstance(options, HarnessOptions):
        # An option of the command line holds for all models, also for those with options of their own in the file.
        options = replace(options, model=tuple(choice.without(given) for choice in options.model))
    return options, rest


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
    from retrial.system.files import read_file

    if os.path.realpath(path.parent) != os.path.realpath("/dev/fd"):
        return read_file(path, MOST)
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
    return kind(**{name: _convert(fields[name], value) for name, value in given.items()})


def _choices(value: Any) -> Iterator[ModelChoice]:
    """Names, or from a file names with options of their own."""
    fields = {item.name: item for item in dataclasses.fields(HarnessOptions) if item.name in PER_MODEL}
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            yield from () if each is None else (ModelChoice(name=_text("--model", each)),)
            continue
        if not isinstance(each.get("name"), str):
            raise UsageError(f"each model with options of its own needs a name, and {each} has none.")
        for key in each:
            if key not in (known := ("name", *fields)):
                raise UsageError(f"model '{each['name']}' has an unknown key '{key}'{nearest(str(key), known)}")
        try:
            overrides = {key: _convert(fields[key], said) for key, said in each.items() if key != "name"}
        except UsageError as error:
            raise UsageError(f"model '{each['name']}': {error}") from error
        yield ModelChoice(name=each["name"], overrides=overrides)


def _convert(item: dataclasses.Field[Any], given: Any) -> Any:
    """Raises: UsageError when it is not of the field's kind."""
    if item.name == "model":
        return tuple(_choices(given))
    name, kind = option_name(item.name), type_name(item)
    if item.metadata["filled"] and given in (None, ""):
        raise UsageError(f"{name} is empty: say what, or leave it out.")
    if item.metadata["json"]:
        return _json_object(name, given)
    if kind.startswith("tuple"):
        values = given if isinstance(given, list) else [given]
        return tuple(_text(name, each) for each in values if each is not None)
    if kind == "bool":
        if not isinstance(given, bool):
            raise UsageError(f"{name} must be true or false, not '{given}'.")
        return given
    if kind == "str":
        return "" if given is None else _text(name, given)
    return _number(item, name, kind, given)


def _text(name: str, given: Any) -> str:
    """Raises: UsageError for what YAML takes for something else, as it does `off` and `no`."""
    if isinstance(given, bool | list | dict):
        raise UsageError(f"{name} must be text (in quotes if need be), not '{str(given)[:60]}'.")
    return str(given)


def option_name(name: str) -> str:
    return "--" + name.replace("_", "-")


def type_name(item: dataclasses.Field[Any]) -> str:
    return str(item.type).partition(" |")[0]


def nearest(text: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(text, known, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else "."


def _number(item: dataclasses.Field[Any], name: str, kind: str, given: Any) -> Any:
    if given is None and item.default is None:
        return None
    try:
        if isinstance(given, bool):
            raise ValueError
        number = int(str(given)) if kind == "int" else float(str(given))
    except ValueError:
        raise UsageError(f"{name} must be a {'whole ' if kind == 'int' else ''}number, not '{given}'.") from None
    minimum = item.metadata["minimum"]
    if minimum is not None and not number >= minimum:
        raise UsageError(f"{name} must be at least {minimum:g}, not {number:g}.")
    if not number <= LARGEST:
        raise UsageError(f"{name} must be at most {LARGEST:g}, not {number:g}.")
    return number


def _json_object(name: str, given: Any) -> str:
    """The object as text, the same for the same object; empty for none."""
    if given in (None, ""):
        return ""
    try:
        found = json.loads(given) if isinstance(given, str) else given
        text = json.dumps(found, sort_keys=True, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} must be a JSON object, such as '{{\"top_p\": 0.9}}': {error}.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{name} must be a JSON object, such as '{{\"top_p\": 0.9}}', not {text[:60]}.")
    ours = next((key for key in found if key in OURS), None)
    if ours is not None:
        instead = f": use {OURS[ours]}" if OURS[ours] else ""
        raise UsageError(f"{name} may not have '{ours}'{instead}.")
    return text if found else ""
