"""The command line and `-c config.yaml`, resolved once into options."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from retrial.cli import option_values
from retrial.cli.option_values import nearest, option_name, type_name
from retrial.errors import UsageError
from retrial.options import PER_MODEL, HarnessOptions, ModelChoice, ReportOptions
from retrial.system.files import read_file

MOST = 16 << 20
"""Bytes of a configuration."""
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
    return kind(**{name: _value(fields[name], value) for name, value in given.items()})


def _value(item: dataclasses.Field[Any], value: Any) -> Any:
    return tuple(_choices(value)) if item.name == "model" else option_values.value(item, value)


def _choices(value: Any) -> Iterator[ModelChoice]:
    """Names, or from a file names with options of their own."""
    fields = {item.name: item for item in dataclasses.fields(HarnessOptions) if item.name in PER_MODEL}
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, dict):
            yield from () if each is None else (ModelChoice(name=option_values.text("--model", each)),)
            continue
        if not isinstance(each.get("name"), str):
            raise UsageError(f"each model with options of its own needs a name, and {each} has none.")
        for key in each:
            if key not in (known := ("name", *fields)):
                raise UsageError(f"model '{each['name']}' has an unknown key '{key}'{nearest(str(key), known)}")
        yield ModelChoice(name=each["name"], overrides=_own(each, fields))


def _own(model: Mapping[str, Any], fields: Mapping[str, dataclasses.Field[Any]]) -> dict[str, Any]:
    try:
        return {key: option_values.value(fields[key], said) for key, said in model.items() if key != "name"}
    except UsageError as error:
        raise UsageError(f"model '{model['name']}': {error}") from error
