"""A checked-out SWE-bench 5 task repository: `sweb.yaml`, and a folder for each task below `tasks/`.

There are thousands of tasks, so a listing reads as little as it can: `task.yaml` of all, parsed only where its text
names the data set; the problem statement of those selected; patches, tests and scripts when one is asked for.
`hints.md` is never opened.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from retrial.benchmarks._swebench_columns import COLUMNS, Record
from retrial.errors import UsageError
from retrial.store import SAFE

CONFIG = "sweb.yaml"
TASK = "task.yaml"
STATEMENT = "problem_statement.md"
TESTS = "tests.json"
ANSWERS = {"patch": "gold.patch", "test_patch": "test.patch", "eval_script": "eval.sh"}
ASSETS = "test_assets"


def is_task_repository(folder: Path) -> bool:
    return (folder / CONFIG).is_file()


def select(root: Path, dataset: str, split: str, problems: list[str]) -> Iterator[Record]:
    """The tasks of one split of one data set, or of every data set that the repository publishes.

    Raises: UsageError when it publishes no such data set or split.
    """
    wanted = _published(root, dataset, split)
    # Text that names neither cannot be of a task that is wanted; to parse it would take most of the time.
    signs = [name.encode() for name in wanted]
    for folder, text in _task_files(root / "tasks"):
        if split.encode() not in text or not any(sign in text for sign in signs):
            continue
        columns = _parse(folder / TASK, text, problems)
        if columns.get("split") == split and not wanted.isdisjoint(_texts(columns.get("datasets"))):
            yield _record(folder, columns, problems)


def find(root: Path, instance_id: str, problems: list[str]) -> Record | None:
    """One task by its id, of whatever data set and split, its answers included; None when there is none."""
    folder = root / "tasks" / instance_id
    if not SAFE.fullmatch(instance_id) or not (folder / TASK).is_file():
        return None
    record = _record(folder, _parse(folder / TASK, (folder / TASK).read_bytes(), problems), problems)
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
    base = (folder / ASSETS).resolve()
    file = (base / path).resolve()
    return file if file.is_relative_to(base) and file.is_file() else None


def _task_files(tasks: Path) -> Iterator[tuple[Path, bytes]]:
    if not tasks.is_dir():
        raise UsageError(f"{tasks.parent} has a {CONFIG} and no folder tasks: is it a whole checkout?")
    for name in sorted(os.listdir(tasks)):
        try:
            with open(f"{tasks}/{name}/{TASK}", "rb") as file:
                yield tasks / name, file.read()
        except (FileNotFoundError, NotADirectoryError):
            continue


def _record(folder: Path, columns: Mapping[str, Any], problems: list[str]) -> Record:
    there = set(os.listdir(folder))
    missing = [name for name in (STATEMENT, TESTS, *ANSWERS.values()) if name not in there]
    if missing:
        problems.append(f"{folder} lacks {', '.join(missing)}.")
    if columns and columns.get("instance_id") != folder.name:
        problems.append(f"{folder / TASK} must have the folder's name as instance_id.")
    known = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
    known["problem_statement"] = _text(folder / STATEMENT, problems) if STATEMENT in there else None
    return Record(
        where=str(folder),
        columns=known,
        more=partial(answers, folder),
        folder=folder,
        recipe=str(folder) if "Dockerfile" in there else "",
    )


def _published(root: Path, dataset: str, split: str) -> frozenset[str]:
    """Names of the data sets to look for."""
    problems: list[str] = []
    config = _parse(root / CONFIG, (root / CONFIG).read_bytes(), problems)
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


def _text(path: Path, problems: list[str]) -> str | None:
    """Every byte of it: patches may hold CRLF."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        problems.append(f"{path} cannot be read: {error.strerror}.")
    except UnicodeDecodeError as error:
        problems.append(f"{path} is not UTF-8 (byte {error.start}).")
    return None
