"""Rows of SWE-bench, checked whole before anything runs, from every source that a user has."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path

from retrial.benchmarks.swebench import sources as tables
from retrial.benchmarks.swebench import task_repo as repository
from retrial.benchmarks.swebench.columns import SHOWN, Columns, Record
from retrial.benchmarks.swebench.sources import SUFFIXES
from retrial.errors import UsageError
from retrial.store import integrity
from retrial.system.files import read_real_file
from retrial.types import fingerprint

BAKED = ("eval_script", "image", "log_parser", "eval_type")
"""Columns that SWE-bench 5 brought: how to run a task and read its log, which older rows left to the program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    """What no agent may know of a row."""

    patch: str
    test_patch: str
    eval_script: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    test_assets: Mapping[str, bytes]
    """Path in the task's repository → content: binary files that must be there before the test command runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRow:
    """One task as SWE-bench describes it."""

    instance_id: str
    repo: str
    base_commit: str
    version: str
    problem_statement: str
    image: str
    log_parser: str
    eval_type: str
    recipe: str = ""
    """Folder with a Dockerfile that makes the image, where the row is from a task repository."""
    secrets: Callable[[], Secrets] = field(repr=False, compare=False)
    """Reads them, from a task repository only now. Raises: UsageError naming what is wrong with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where rows come from."""

    where: str
    """A task repository, a file, a folder in hub layout, or the id of a data set on the Hugging Face hub."""
    dataset: str = ""
    """Of a task repository, the data set to take: all that it publishes when empty."""
    split: str = "test"
    """Files have none: all their rows are taken."""
    complete: Callable[[], Path] | None = None
    """Gives the folder of a task repository that has what old rows lack; called only when one does."""


def claims(path: Path) -> bool:
    """Whether a path is of ours to read."""
    try:
        if path.is_file():
            return path.suffix.lower() in SUFFIXES
        return path.is_dir() and (repository.is_task_repository(path) or tables.is_hub_folder(path))
    except OSError:
        return False


def read(origin: Origin) -> tuple[DatasetRow, ...]:
    """All rows, by id. They are checked, as far as they are read.

    Raises: UsageError with the first twenty problems, each with its place.
    """
    problems: list[str] = []
    try:
        records = _completed(list(_records(origin, problems)), origin, problems)
        rows = [(record.where, row) for record in records if (row := _row(record, problems))]
    except OSError as error:
        raise UsageError(f"{error.filename or origin.where} cannot be read: {error.strerror or error}.") from error
    places: dict[str, str] = {}
    for where, row in rows:
        if places.setdefault(row.instance_id, where) != where:
            problems.append(f"{where} repeats {row.instance_id} of {places[row.instance_id]}.")
    if not rows and not problems:
        part = "" if Path(origin.where).is_file() else f" of {origin.dataset or 'any data set'}, split {origin.split}"
        problems.append(f"{origin.where} holds no task{part}.")
    if problems:
        raise integrity.refuse(problems)
    return tuple(sorted((row for _, row in rows), key=lambda row: row.instance_id))


def digest(rows: Iterable[DatasetRow]) -> str:
    """Of all that defines a benchmark, so that the same rows have the same digest wherever they were read.

    Every row's secrets are read for it, and so checked: a bad one is found here, before anything runs.
    Raises: UsageError with the first twenty problems.
    """
    known, problems = [], []
    for row in sorted(rows, key=lambda row: row.instance_id):
        try:
            known.append(_digest(row))
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise integrity.refuse(problems)
    return fingerprint(known)


def _digest(row: DatasetRow) -> str:
    # Where a recipe lies is this machine's affair; the image that it makes has a digest of its own.
    secrets = row.secrets()
    assets = {path: hashlib.sha256(content).hexdigest() for path, content in secrets.test_assets.items()}
    return fingerprint(_values(row, but=("recipe", "secrets")), _values(secrets, but=("test_assets",)), assets)


def _values(value: DatasetRow | Secrets, *, but: tuple[str, ...]) -> dict[str, object]:
    return {part.name: getattr(value, part.name) for part in fields(value) if part.name not in but}


def _records(origin: Origin, problems: list[str]) -> Iterator[Record]:
    path = Path(origin.where).expanduser()
    if repository.is_task_repository(path):
        return repository.select(path, origin.dataset, origin.split, problems)
    if path.is_file() or (path.suffix.lower() in SUFFIXES and not path.is_dir()):
        if not claims(path) and path.exists():
            raise UsageError(f"{path} cannot hold rows: expected one of {', '.join(SUFFIXES)}.")
        return tables.read_file(path, problems)
    if path.is_dir() and not tables.is_hub_folder(path):
        raise UsageError(f"{path} is neither a task repository ({repository.CONFIG}) nor in the layout of the hub.")
    if not path.is_dir() and not tables.HUB_ID.fullmatch(origin.where):
        raise UsageError(f"{path} is not there, and cannot be the id of a data set.")
    return tables.read_hub(str(path) if path.is_dir() else origin.where, origin.split, problems)


def _completed(records: list[Record], origin: Origin, problems: list[str]) -> list[Record]:
    """Old rows with what they lack, from a task repository.

    How to run a task is one piece, so all of it is taken from there: script, image, parser, kind of grading, and the
    test patch that the script applies. What the row is about stays its own: statement, gold patch, lists of tests.
    """
    if not any(_missing(record) for record in records):
        return records
    root = origin.complete() if origin.complete else None
    if root and not repository.is_task_repository(root):
        raise UsageError(f"{root} is no task repository: it has no {repository.CONFIG}.")
    done = [_complete(record, root, problems) if _missing(record) else record for record in records]
    return [record for record in done if record]


def _missing(record: Record) -> list[str]:
    """Of a task repository's own tasks nothing is ever looked up elsewhere."""
    return [name for name in BAKED if not record.columns.get(name)] if record.folder is None else []


def _complete(record: Record, root: Path | None, problems: list[str]) -> Record | None:
    instance_id = str(record.columns.get("instance_id", ""))
    found = repository.find(root, instance_id, problems) if root else None
    if found is None:
        absent = f", and {root} has no such task" if root else ""
        problems.append(
            f"{record.where} ({instance_id[:80] or 'no instance_id'}) lacks {', '.join(_missing(record))}{absent}: "
            "add these columns, or take the row from a data set of SWE-bench 5."
        )
        return None
    if found.columns.get("base_commit") != record.columns.get("base_commit"):
        given = record.columns.get("base_commit") or "missing"
        problems.append(f"{record.where} ({instance_id}) has a base_commit ({given}) that {found.where} does not have.")
        return None
    taken = {name: found.columns.get(name) for name in (*BAKED, "test_patch")}
    return replace(found, where=record.where, columns={**found.columns, **record.columns, **taken})


def _row(record: Record, problems: list[str]) -> DatasetRow | None:
    """None when something is wrong with it."""
    before, columns = len(problems), Columns(record, problems)
    shown = {name: columns.text(name) for name in SHOWN}
    assets = columns.assets()
    _find(assets, columns)
    secrets = partial(_ask, record, assets) if record.more else partial(_same, _secrets(record, assets, problems))
    if len(problems) > before:
        return None
    return DatasetRow(**shown, version=columns.version(), recipe=record.recipe, secrets=secrets)


def _find(assets: tuple[str, ...], columns: Columns) -> None:
    folder = columns.record.folder
    for path in assets:
        if folder is None or repository.asset(folder, path) is None:
            columns.complain(
                f"needs {path[:80]!r}, which is not in the {repository.ASSETS} of a task repository: without it, "
                "multimodal rows are not supported."
            )


def _ask(record: Record, assets: tuple[str, ...]) -> Secrets:
    problems: list[str] = []
    more = record.more(problems) if record.more else {}
    _find(assets, Columns(record, problems))
    if not problems:
        secrets = _secrets(replace(record, columns={**record.columns, **more}), assets, problems)
    if problems:
        raise integrity.refuse(problems)
    return secrets


def _same(secrets: Secrets) -> Secrets:
    return secrets


def _secrets(record: Record, assets: tuple[str, ...], problems: list[str]) -> Secrets:
    columns = Columns(record, problems)
    fail_to_pass, pass_to_pass = columns.tests()
    return Secrets(
        patch=columns.text("patch", blank=True),
        test_patch=columns.text("test_patch", blank=True),
        eval_script=columns.script(),
        fail_to_pass=fail_to_pass,
        pass_to_pass=pass_to_pass,
        test_assets=_contents(record, assets),
    )


def _contents(record: Record, assets: tuple[str, ...]) -> dict[str, bytes]:
    files = {path: repository.asset(record.folder, path) for path in assets} if record.folder else {}
    try:
        return {path: read_real_file(str(file), repository.MOST) for path, file in files.items() if file}
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}.") from error
