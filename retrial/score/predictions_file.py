"""Prediction files made elsewhere: checked whole before anything runs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retrial.errors import PatchError, UsageError
from retrial.patches.parser import normalise
from retrial.store import integrity
from retrial.system.files import read_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One patch to score."""

    instance_id: str
    model_name_or_path: str
    patch: str


@dataclass(slots=True)
class Imported:
    """A file's good lines, its problems, and remarks on what was tolerated."""

    submissions: dict[str, Submission] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def read(path: Path, known: Collection[str]) -> Imported:
    """Raises: UsageError when there is no such file, or not one line of it can be used."""
    try:
        content = read_file(path)
    except OSError as error:
        raise UsageError(f"The predictions file {path} cannot be read: {error.strerror}.") from error
    imported = Imported()
    places: dict[str, int] = {}
    contradicted: set[str] = set()
    for line, row in _rows(path, content, imported):
        where = f"{path}:{line}"
        submission = _submission(row, known, where, imported.problems)
        if submission is None:
            continue
        earlier = imported.submissions.setdefault(submission.instance_id, submission)
        first = places.setdefault(submission.instance_id, line)
        if earlier is not submission and not _duplicate(earlier, submission, first, where, imported):
            contradicted.add(submission.instance_id)
    for instance_id in contradicted:
        # Nobody can say which of them was meant.
        del imported.submissions[instance_id]
    if not imported.submissions and not imported.problems:
        imported.problems.append(f"{path} holds no predictions.")
    return imported


def read_bundle(path: Path, known: Collection[str]) -> dict[str, Submission]:
    """Raises: UsageError unless every line can be used."""
    imported = read(path, known)
    if imported.problems:
        raise integrity.refuse(imported.problems)
    return imported.submissions


def _rows(path: Path, content: bytes, imported: Imported) -> Iterator[tuple[int, Any]]:
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
        imported.remarks.append("a byte order mark at the start was passed over")
    if content.lstrip()[:1] == b"[" or path.suffix == ".json":
        yield from _rows_of_json(path, content, imported)
        return
    blank = 0
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            blank += 1
            continue
        try:
            yield number, json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            imported.problems.append(f"{path}:{number} is not UTF-8 (byte {error.start}).")
        except (ValueError, RecursionError) as error:
            imported.problems.append(f"{path}:{number} is not JSON: {error}.")
    if blank > 1:
        imported.remarks.append(f"{blank - 1} blank lines were passed over")
    if b"\r\n" in content:
        imported.remarks.append("lines end in CRLF")


def _rows_of_json(path: Path, content: bytes, imported: Imported) -> Iterator[tuple[int, Any]]:
    """One JSON value: a list of predictions, one prediction, or predictions by id. Lines are counted as entries."""
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        imported.problems.append(f"{path}:{getattr(error, 'lineno', 1)} is not JSON: {error}.")
        return
    if isinstance(value, dict) and "instance_id" in value:
        value = [value]
    if isinstance(value, dict):
        value = [{"instance_id": key, **row} if isinstance(row, dict) else row for key, row in value.items()]
    if not isinstance(value, list):
        imported.problems.append(f"{path}:1 must hold predictions, not {type(value).__name__}.")
        return
    yield from enumerate(value, start=1)


def _submission(row: Any, known: Collection[str], where: str, problems: list[str]) -> Submission | None:
    if not isinstance(row, dict):
        problems.append(f"{where} must be an object with instance_id, model_name_or_path and model_patch.")
        return None
    found: list[str] = []
    instance_id, model = row.get("instance_id"), row.get("model_name_or_path")
    if not isinstance(instance_id, str) or not instance_id:
        found.append(f"{where} lacks instance_id.")
    elif instance_id not in known:
        found.append(f"{where} names '{instance_id[:80]}', which is not in the benchmark.")
    if not isinstance(model, str) or not model.strip():
        found.append(f"{where} lacks model_name_or_path.")
    if "model_patch" not in row:
        found.append(f'{where} lacks model_patch (null or "" for none).')
    elif not isinstance(row["model_patch"], str | None):
        found.append(f"{where} has a model_patch that is not a text.")
    problems += found
    if found:
        return None
    return Submission(
        instance_id=str(instance_id), model_name_or_path=str(model), patch=clean(row["model_patch"] or "")
    )


def clean(patch: str) -> str:
    try:
        return normalise(patch)
    except PatchError:
        # Refused where it is scored.
        return patch


def _duplicate(earlier: Submission, later: Submission, first: int, where: str, imported: Imported) -> bool:
    """False when the two contradict each other."""
    if earlier == later:
        imported.remarks.append(f"{where} repeats line {first}")
        return True
    imported.problems.append(f"{where} contradicts line {first}: another prediction for {later.instance_id}.")
    return False
