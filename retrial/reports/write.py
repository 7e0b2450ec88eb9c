"""What is made of results.json for people and for other programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from retrial import registry
from retrial.errors import UsageError
from retrial.options import ReportOptions
from retrial.reports.comparison_table import Comparison
from retrial.reports.exports import Export, submission
from retrial.reports.records import GroupResults, Results
from retrial.store.json_io import masked
from retrial.store.runs import Run
from retrial.system import paths
from retrial.system.files import write_atomically

BESIDE = {"preds.json": "preds", "aider.yaml": "aider", "eval_results.yaml": "hugging-face"}
"""Always there → the export that makes it."""
TITLES = {"junit": "JUnit", "markdown": "Markdown", "csv": "CSV"}
"""Options, and exports of the same names."""
WITHOUT_VERDICTS = ("calibrate", "doctor", "compare")
NO_MODEL = ("gold", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Where to write what was asked for; each place was found fit."""

    given: Mapping[str, str] = field(default_factory=dict)
    """By option, as it was written."""
    paths: Mapping[str, Path] = field(default_factory=dict)

    def refuse_other_run(self, run: Run) -> None:
        """Raises: UsageError for the submission of another run."""
        if folder := self.paths.get("submission"):
            submission.refuse(folder, run.name)


def outputs(options: ReportOptions) -> Outputs:
    """Validate output paths before scoring starts.

    Raises: UsageError for what cannot be written where it was asked for.
    """
    given = {name: getattr(options, name) for name in (*TITLES, "submission") if getattr(options, name)}
    for other in WITHOUT_VERDICTS:
        if given and getattr(options, other):
            raise UsageError(f"--{next(iter(given))} is made of a run's verdicts, and --{other} gives none.")
    paths = dict[str, Path]()
    for name, text in given.items():
        path = _place(name, text)
        for other in (other for other, taken in paths.items() if taken == path):
            raise UsageError(f"--{other} and --{name} are the same file, {text}: name two.")
        paths[name] = path
    if folder := paths.get("submission"):
        for name in (name for name, path in paths.items() if folder in path.parents):
            raise UsageError(f"--{name} {given[name]} lies in the submission's folder: name another place.")
        for other in (other for other in NO_MODEL if getattr(options, other)):
            raise UsageError(f"--submission is for predictions of a model, and --{other} has none.")
        submission.refuse(folder)
    return Outputs(given=given, paths=paths)


def write(wanted: Outputs, run: Run, results: Results) -> list[str]:
    """Write the files beside it, and every one that was asked for; return lines that say where they are.

    Raises: UsageError when one cannot be written; where it is the submission, nothing is.
    """
    found = masked(results)
    submitted = []
    if folder := wanted.paths.get("submission"):
        with _refusing("submission", wanted):
            notes = submission.write(folder, run, found)
        submitted = [f"Submission: {wanted.given['submission']}", *(f"  {note}" for note in notes)]
    write_beside(run, found)
    lines = [f"Page: {run.folder / 'report.html'}"]
    for name in (name for name in TITLES if name in wanted.paths):
        with _refusing(name, wanted):
            write_atomically(wanted.paths[name], _export(name)(run, found) or b"")
        lines.append(f"{TITLES[name]}: {wanted.given[name]}")
    return lines + submitted


@contextmanager
def _refusing(name: str, wanted: Outputs) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"--{name} {wanted.given[name]} cannot be written: {error.strerror}.") from error


def write_beside(run: Run, results: Results) -> None:
    """What is always there."""
    # It brings its libraries, which no run needs before its end.
    from retrial.reports import page

    page.write(run, results)
    for name, export in BESIDE.items():
        run.write_beside(name, _export(export)(run, results))


def _export(name: str) -> Export:
    made: Export = registry.module("reports.exports", name).make()
    return made


def write_comparison(run: Run, results: Comparison | GroupResults) -> list[str]:
    """Write the page of several runs; return lines that say where it is."""
    from retrial.reports import page

    return ["", f"Results: {run.results_path}", f"Page: {page.write_comparison(run, masked(results))}"]


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
