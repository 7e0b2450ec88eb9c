"""What is made of results.json for people and for other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from retrial import registry
from retrial.errors import UsageError
from retrial.options import ReportOptions
from retrial.reports import page
from retrial.reports.exports import Export, submission
from retrial.store.json_io import to_jsonl
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.files import write_atomically

BESIDE = {"preds.json": "preds", "aider.yaml": "aider", "eval_results.yaml": "hugging-face"}
"""Always there → the export that makes it."""
TITLES = {"junit": "JUnit", "markdown": "Markdown", "csv": "CSV"}
"""Options, and exports of the same names."""
WITHOUT_VERDICTS = ("calibrate", "doctor", "compare")
NO_MODEL = ("gold", "null")


def refuse(options: ReportOptions, run: Run | None = None) -> None:
    """Before anything is scored: nobody waits an hour to hear that there is no such folder.

    Raises: UsageError for what cannot be written where it was asked for; with a run also for the folder of another.
    """
    asked = {name: getattr(options, name) for name in (*TITLES, "submission") if getattr(options, name)}
    for other in WITHOUT_VERDICTS:
        if asked and getattr(options, other):
            raise UsageError(f"--{next(iter(asked))} is made of a run's verdicts, and --{other} gives none.")
    places = dict[Path, str]()
    for name, text in asked.items():
        place = _place(name, text)
        if place in places:
            raise UsageError(f"--{places[place]} and --{name} are the same file, {text}: name two.")
        places[place] = name
    for place, name in places.items():
        if options.submission and name != "submission" and _place("submission", options.submission) in place.parents:
            raise UsageError(f"--{name} {getattr(options, name)} lies in the submission's folder: name another place.")
    if options.submission:
        _refuse_submission(options, run)


def write(options: ReportOptions, run: Run, content: Mapping[str, Any]) -> None:
    """The files beside it, and every one that was asked for; says where they are.

    Raises: UsageError when one cannot be written.
    """
    refuse(options, run)
    plain = _plain(content)
    write_beside(run, plain)
    print(f"Page: {run.folder / 'report.html'}")
    for line in _asked_for(options, run, plain):
        print(line)


def write_beside(run: Run, content: Mapping[str, Any]) -> None:
    """What is always there; `content` as it is in the file."""
    page.write(run, content)
    for name, export in BESIDE.items():
        run.write_beside(name, _export(export)(run, content))


def _export(name: str) -> Export:
    made: Export = registry.module("reports.exports", name).make()
    return made


def write_comparison(run: Run, content: Mapping[str, Any]) -> None:
    """The page of several runs; says where it is."""
    print(f"\nResults: {run.results_path}")
    print(f"Page: {page.write_comparison(run, _plain(content))}")


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """As it is in the file, and without what nobody may see, whatever is escaped in what is made of it."""
    plain: dict[str, Any] = json.loads(to_jsonl(content))
    return plain


def _asked_for(options: ReportOptions, run: Run, content: Mapping[str, Any]) -> Iterator[str]:
    for name, title in TITLES.items():
        if text := getattr(options, name):
            _write(name, text, _export(name)(run, content) or b"")
            yield f"{title}: {text}"
    if text := options.submission:
        try:
            notes = submission.write(_place("submission", text), run, content)
        except OSError as error:
            raise UsageError(f"--submission {text} cannot be written: {error.strerror}.") from error
        yield f"Submission: {text}"
        yield from (f"  {note}" for note in notes)


def _write(name: str, text: str, content: bytes) -> None:
    try:
        write_atomically(_place(name, text), content)
    except OSError as error:
        raise UsageError(f"--{name} {text} cannot be written: {error.strerror}.") from error


def _place(name: str, text: str) -> Path:
    """Where it goes, through symlinks: what is put in its place shall not be one. Raises: UsageError."""
    try:
        given = Path(text).expanduser()
        path = given.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"--{name} {text!r} is no place for a file: {error}.") from error
    if not path.parent.is_dir():
        raise UsageError(f"--{name} {text}: there is no folder {path.parent}: make it, or name another.")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(f"--{name} {text}: nothing can be written to {path.parent}.")
    if any((paths.home() / own).resolve() in path.parents for own in ("predictions", "logs")):
        raise UsageError(f"--{name} {text} lies among the files of runs, which are ours alone: name another place.")
    if name != "submission" and given.exists() and not given.is_file():
        raise UsageError(f"--{name} {text} is no file that can be replaced: name another.")
    return path


def _refuse_submission(options: ReportOptions, run: Run | None) -> None:
    for other in NO_MODEL:
        if getattr(options, other):
            raise UsageError(f"--submission is for predictions of a model, and --{other} has none.")
    folder = _place("submission", options.submission)
    submission.refuse(folder, run.name if run else "")
