"""Rows of SWE-bench as others hand them out: files, and data sets in the layout of the Hugging Face hub. Unchecked."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from retrial.benchmarks.swebench.columns import COLUMNS, Record
from retrial.errors import UsageError
from retrial.patches.git import plain_path
from retrial.store import integrity
from retrial.system.console import say
from retrial.system.files import everything, scratch_folder, special_kind

SUFFIXES = (".json", ".jsonl", ".parquet")
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", re.ASCII)
_SPLIT_FILE = re.compile(r".*\.parquet|(train|test|dev|validation|val)([-_.].*)?\.jsonl?", re.IGNORECASE)
_ALSO = {"dev": ("dev", "validation")}
"""`datasets` itself gives a file dev.jsonl the name `validation`, where no README says otherwise."""
README_BYTES = 1 << 20
_INSTALL = "install the packages of requirements.txt (datasets is the one that is missing)"


def read_file(path: Path, problems: list[str]) -> Iterator[Record]:
    """Raises: OSError; UsageError when the file as a whole is not what its suffix says."""
    if path.suffix.lower() == ".parquet":
        return _numbered(f"{path} row", _parquet(path), problems)
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if path.suffix.lower() == ".jsonl":
        return _lines(path, content, problems)
    return _numbered(f"{path} entry", _entries(path, content), problems)


def _lines(path: Path, content: bytes, problems: list[str]) -> Iterator[Record]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            problems.append(f"{path}:{number} is not JSON: {error}.")
            continue
        yield from _record(f"{path}:{number}", row, problems)


def _entries(path: Path, content: bytes) -> Iterable[Any]:
    """A list of rows, rows by id, or one row."""
    try:
        value = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}:{getattr(error, 'lineno', 1)} is not JSON: {error}.") from error
    if isinstance(value, dict) and "instance_id" in value:
        return [value]
    if isinstance(value, dict):
        return [{"instance_id": key, **row} if isinstance(row, dict) else row for key, row in value.items()]
    if isinstance(value, list):
        return value
    raise UsageError(f"{path} must hold a list of rows or rows by id, not {type(value).__name__}.")


def _parquet(path: Path) -> Iterable[Any]:
    try:
        parquet, errors = import_module("pyarrow.parquet"), import_module("pyarrow.lib")
    except ImportError as error:
        raise UsageError(f"{path} needs the package pyarrow, which comes with datasets: {_INSTALL}.") from error
    try:
        with path.open("rb") as opened, parquet.ParquetFile(opened) as file:
            columns = [name for name in file.schema_arrow.names if name in COLUMNS]
            rows: list[Any] = file.read(columns=columns).to_pylist()
    except errors.ArrowException as error:
        raise UsageError(f"{path} is not a parquet file that can be read: {_first_line(error)}.") from error
    return rows


def _numbered(what: str, rows: Iterable[Any], problems: list[str]) -> Iterator[Record]:
    for number, row in enumerate(rows, start=1):
        yield from _record(f"{what} {number}", row, problems)


def _record(where: str, row: Any, problems: list[str]) -> Iterator[Record]:
    if not isinstance(row, dict):
        problems.append(f"{where} must be an object with the columns of SWE-bench, not {type(row).__name__}.")
        return
    # A parquet file gives every row all columns of the file.
    yield Record(where=where, columns={name: row[name] for name in COLUMNS if row.get(name) is not None})


def is_hub_folder(folder: Path) -> bool:
    """Whether `datasets` can be expected to find splits here. An Exercism folder has nothing of the kind."""
    if _declares_data(folder / "README.md") or any(folder.glob("*/dataset_info.json")):
        return True
    places = (folder, folder / "data")
    return any(_SPLIT_FILE.fullmatch(name) for place in places if place.is_dir() for name in os.listdir(place))


def _declares_data(readme: Path) -> bool:
    if not readme.is_file():
        return False
    with readme.open("rb") as opened:
        file = io.StringIO(opened.read(README_BYTES).decode("utf-8", "replace"))
        if file.readline().rstrip() != "---":
            return False
        for line in islice(file, 500):
            if line.rstrip() == "---":
                return False
            if line.startswith(("configs:", "dataset_info:")):
                return True
    return False


def read_hub(name: str, split: str, problems: list[str]) -> Iterator[Record]:
    """One split of a data set of the hub, or of a folder laid out as one.

    Raises: UsageError when it cannot be had, whatever the reason.
    """
    if Path(name).is_dir() and (refused := _refused(Path(name).resolve())):
        raise integrity.refuse(refused)
    datasets = _datasets(name)
    hub = import_module("huggingface_hub.errors")
    # The bases of the hub's error are OSError and the error of whichever HTTP client it uses.
    expected = (OSError, ValueError, LookupError, datasets.exceptions.DatasetsError, *hub.HfHubHTTPError.__bases__)
    failure: BaseException | None = None
    for known_as in _ALSO.get(split, (split,)):
        try:
            return _numbered(f"{name} ({split}) row", _load(datasets, name, known_as), problems)
        except expected as error:
            # Of two names, the complaint about the one that was asked for.
            failure = failure or error
    raise UsageError(
        f"The data set '{name}' (split {split}) cannot be loaded: {_reason(failure)}. Check its name, the split and "
        "the network, or give -b a file of rows or a checked-out task repository."
    ) from failure


def _refused(folder: Path) -> list[str]:
    """What is not a regular file in a folder that a stranger may have made; `datasets` would follow it."""
    found = []
    for entry in everything(folder):
        hidden = any(part.startswith(".") for part in Path(entry.path).relative_to(folder).parts)
        kind = special_kind(entry)
        if kind and not hidden and not _is_blob(entry.path, folder):
            found.append(f"{plain_path(entry.path)} is {kind}, not a regular file.")
    return sorted(found)


def _is_blob(path: str, folder: Path) -> bool:
    """The hub's own cache has `snapshots/<commit>/`, where every file is a link into `blobs/` beside it."""
    blobs = folder.parent.parent / "blobs"
    return folder.parent.name == "snapshots" and Path(path).resolve().parent == blobs and Path(path).is_file()


def _datasets(name: str) -> Any:
    # Read when the packages are imported, so they must be set before. Somebody who set them otherwise meant it.
    for variable in ("HF_HUB_DISABLE_TELEMETRY", "HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("HF_UPDATE_DOWNLOAD_COUNTS", "0")
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        raise UsageError(f"The data set '{name}' needs the package datasets: {_INSTALL}.") from error
    # What goes wrong is in the exception; their logs say it again, in a heap of lines.
    for package in (datasets, import_module("huggingface_hub")):
        package.utils.logging.set_verbosity(50)
    return datasets


def _load(datasets: Any, name: str, split: str) -> list[Any]:
    if (Path(name) / split / "dataset_info.json").is_file():
        return _rows(datasets.load_from_disk(str(Path(name) / split)))
    if Path(name).is_dir():
        # As a stream, and with a cache of its own, so that nothing of it stays in the user's.
        with scratch_folder() as folder:
            return _rows(datasets.load_dataset(name, split=split, streaming=True, cache_dir=str(folder)))
    say(f"Loading {name} ({split}) from the Hugging Face hub …")
    return _rows(datasets.load_dataset(name, split=split))


def _rows(found: Any) -> list[Any]:
    names = found.column_names or (found.features or {})
    return list(found.select_columns([column for column in COLUMNS if column in names]))


def _reason(error: BaseException | None) -> str:
    # "An error occurred" is all that this one says by itself.
    if type(error).__name__ == "DatasetGenerationError" and error and error.__cause__:
        error = error.__cause__
    return _first_line(error)


def _first_line(error: BaseException | None) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".")[:300]
