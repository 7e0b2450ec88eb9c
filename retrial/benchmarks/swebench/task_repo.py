"""A checked-out SWE-bench 5 task repository: `sweb.yaml`, and a folder for each task below `tasks/`.

There are thousands of tasks, so a listing reads as little as it can: `task.yaml` of all, parsed only where its text
names the data set; the problem statement of those selected; patches, tests and scripts when one is asked for.
`hints.md` is never opened.

Task repositories come from strangers: nothing but regular files that really are in a task's folder is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from retrial.benchmarks.swebench.columns import COLUMNS, Record
from retrial.errors import UsageError
from retrial.patches.git import plain_path
from retrial.store.runs import SAFE
from retrial.system import files
from retrial.system.files import read_real_file, special_kind, why_unreadable

CONFIG = "sweb.yaml"
TASK = "task.yaml"
STATEMENT = "problem_statement.md"
TESTS = "tests.json"
ANSWERS = {"patch": "gold.patch", "test_patch": "test.patch", "eval_script": "eval.sh"}
ASSETS = "test_assets"
DOCKERFILE = "Dockerfile"
MOST = 64 << 20
"""Bytes of one file."""
MOST_TEXT = 1 << 20
"""Bytes of a problem statement, which goes into a prompt."""


def is_task_repository(folder: Path) -> bool:
    return (folder / CONFIG).is_file()


def select(root: Path, dataset: str, split: str, problems: list[str]) -> Iterator[Record]:
    """The tasks of one split of one data set, or of every data set that the repository publishes.

    Raises: UsageError when it publishes no such data set or split.
    """
    # Real as the user chose it; what lies below may not lead elsewhere.
    root = root.resolve()
    wanted = _published(root, dataset, split)
    # Text that names neither cannot be of a task that is wanted; to parse it would take most of the time.
    signs = [name.encode() for name in wanted]
    for folder, text in _task_files(root / "tasks", problems):
        if split.encode() not in text or not any(sign in text for sign in signs):
            continue
        columns = _parse(folder / TASK, text, problems)
        if columns.get("split") == split and not wanted.isdisjoint(_texts(columns.get("datasets"))):
            yield _record(folder, columns, problems)


def find(root: Path, instance_id: str, problems: list[str]) -> Record | None:
    """One task by its id, of whatever data set and split, its answers included; None when there is none."""
    folder = root.resolve() / "tasks" / instance_id
    if not SAFE.fullmatch(instance_id) or not (folder / TASK).is_file():
        return None
    text = _content(folder / TASK, problems)
    if text is None:
        return None
    record = _record(folder, _parse(folder / TASK, text, problems), problems)
    columns = {**record.columns, **answers(folder, problems)}
    return Record(where=record.where, columns=columns, folder=folder, recipe=record.recipe)


def answers(folder: Path, problems: list[str]) -> Mapping[str, Any]:
    """The columns of a task that no agent may know."""
    found: dict[str, Any] = {name: _text(folder / file, problems) for name, file in ANSWERS.items()}
    text = _text(folder / TESTS, problems)
    if text is None:
        return found
    try:
        tests = json.loads(text)
    except (ValueError, RecursionError) as error:
        problems.append(f"{folder / TESTS} is not JSON: {error}.")
        return found
    if not isinstance(tests, dict):
        problems.append(f"{folder / TESTS} must hold an object with FAIL_TO_PASS and PASS_TO_PASS.")
        return found
    return {**found, **{name: tests[name] for name in ("FAIL_TO_PASS", "PASS_TO_PASS") if name in tests}}


def asset(folder: Path, path: str) -> Path | None:
    """The file that stands for a path of the task's repository; None when it is not there, or is not below there."""
    base = folder / ASSETS
    file = base / path
    below = file.is_relative_to(base) and file.is_file()
    return file if below and not why_unreadable(str(file), MOST) else None


def recipe(folder: str) -> str:
    """The text of a task's Dockerfile.

    Raises: UsageError.
    """
    problems: list[str] = []
    content = _content(Path(folder, DOCKERFILE), problems)
    if content is None:
        raise UsageError(problems[0])
    return content.decode("utf-8", "replace")


def _task_files(tasks: Path, problems: list[str]) -> Iterator[tuple[Path, bytes]]:
    if not tasks.is_dir():
        raise UsageError(f"{tasks.parent} has a {CONFIG} and no folder tasks: is it a whole checkout?")
    if why := why_unreadable(str(tasks)):
        raise UsageError(f"{tasks} {why}.")
    for name in sorted(os.listdir(tasks)):
        try:
            text = read_real_file(f"{tasks}/{name}/{TASK}", MOST)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            problems.append(_unreadable(error))
            continue
        yield tasks / name, text


def _record(folder: Path, columns: Mapping[str, Any], problems: list[str]) -> Record:
    with os.scandir(folder) as entries:
        there = {entry.name: entry for entry in entries}
    problems += _refused(there)
    missing = [name for name in (STATEMENT, TESTS, *ANSWERS.values()) if name not in there]
    if missing:
        problems.append(f"{folder} lacks {', '.join(missing)}.")
    if columns and columns.get("instance_id") != folder.name:
        problems.append(f"{folder / TASK} must have the folder's name as instance_id.")
    known = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
    known["problem_statement"] = _text(folder / STATEMENT, problems, MOST_TEXT) if STATEMENT in there else None
    return Record(
        where=str(folder),
        columns=known,
        more=partial(answers, folder),
        folder=folder,
        recipe=str(folder) if DOCKERFILE in there else "",
    )


def _refused(there: Mapping[str, os.DirEntry[str]]) -> list[str]:
    """What is not a regular file in a task's folder, though it is read later or not at all."""
    entries = list(there.values())
    if ASSETS in there and there[ASSETS].is_dir(follow_symlinks=False):
        entries += files.everything(Path(there[ASSETS].path))
    kinds = {entry.path: special_kind(entry) for entry in entries}
    return sorted(f"{plain_path(path)} is {kind}, not a regular file." for path, kind in kinds.items() if kind)


def _published(root: Path, dataset: str, split: str) -> frozenset[str]:
    """Names of the data sets to look for."""
    problems: list[str] = []
    content = _content(root / CONFIG, problems)
    config = _parse(root / CONFIG, content, problems) if content is not None else {}
    datasets, splits = _texts(config.get("datasets")), _texts(config.get("splits", ["test"]))
    if problems or not datasets or not splits:
        raise UsageError(problems[0] if problems else f"{root / CONFIG} must name datasets, as a list, and splits.")
    if dataset and dataset not in datasets:
        raise UsageError(f"{root / CONFIG} publishes no data set '{dataset}'; it has: {', '.join(datasets)}.")
    if split not in splits:
        raise UsageError(f"{root / CONFIG} publishes no split '{split}'; it has: {', '.join(splits)}.")
    return frozenset([dataset] if dataset else datasets)


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, Iterable) else []


def _parse(path: Path, content: bytes, problems: list[str]) -> Mapping[str, Any]:
    import yaml

    try:
        value = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problems.append(f"{path} is not YAML: {' '.join(str(error).split())[:300]}.")
        return {}
    if not isinstance(value, dict):
        problems.append(f"{path} must hold keys and values.")
        return {}
    return value


def _text(path: Path, problems: list[str], most: int = MOST) -> str | None:
    """Every byte of it: patches may hold CRLF."""
    content = _content(path, problems, most)
    try:
        return None if content is None else content.decode()
    except UnicodeDecodeError as error:
        problems.append(f"{path} is not UTF-8 (byte {error.start}).")
    return None


def _content(path: Path, problems: list[str], most: int = MOST) -> bytes | None:
    try:
        return read_real_file(str(path), most)
    except OSError as error:
        # One that `_refused` has named is not named twice.
        if not any(problem.startswith(f"{path} ") for problem in problems):
            problems.append(_unreadable(error))
    return None


def _unreadable(error: OSError) -> str:
    return f"{error.filename} cannot be read: {error.strerror}."
