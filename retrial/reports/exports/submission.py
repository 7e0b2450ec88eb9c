"""A folder as SWE-bench/experiments takes them: predictions, metadata, logs, trajectories, results."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from retrial.errors import UsageError
from retrial.reports.exports import line, made_elsewhere, model_names, objections, template
from retrial.reports.exports.preds import rows
from retrial.reports.records import Results
from retrial.store.json_io import decode, to_json
from retrial.store.manifest import Manifest
from retrial.store.runs import OFFICIAL_FILES, PATCH, Run, file_name
from retrial.system.files import write_again, write_data
from retrial.system.secrets import MASKER

MARK = ".retrial.json"
METADATA, README = "metadata.yaml", "README.md"
BY_HAND = (METADATA, README)
"""What a submitter completes."""
BUNDLE, FOLDERS = "all_preds.jsonl", ("logs", "trajs", "results")
REPORT = "report.json"
TODO = "TODO"
"""What only the submitter knows begins so."""
SPLITS = {
    "swe-bench": "test",
    "swe-bench-lite": "lite",
    "swe-bench-verified": "verified",
    "swe-bench-multilingual": "multilingual",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What says that a folder is ours."""

    run: str
    """That it was made from."""
    written: Mapping[str, str]
    """Digests of the files that a submitter may change."""


def refuse(folder: Path, run: str = "") -> None:
    """Raises: UsageError unless it is new, empty, or one of ours, made from the same run where that is known."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UsageError(f"--submission {folder} is a file: name a new folder.")
    if not any(folder.iterdir()):
        return
    mark = _mark(folder)
    if mark is None:
        raise UsageError(f"--submission {folder} is not empty, and no folder that we made: name a new one.")
    if run and mark.run != run:
        raise UsageError(f"--submission {folder} was made from run '{mark.run}', not '{run}': name a new folder.")


def write(folder: Path, run: Run, results: Results) -> list[str]:
    """Makes it, or makes it anew; what people should know of it.

    Raises: UsageError as `refuse` does, before anything is written.
    """
    refuse(folder, run.name)
    predictions = rows(run)
    without = [row["instance_id"] for row in predictions if not run.chat(row["instance_id"])]
    against = [*_unfit(run, without), *objections.sentences(run, results)]
    by_hand = {METADATA: _metadata(results), README: _readme(run, results, against)}
    written = {name: MASKER.redact_bytes(text.encode("utf-8", "replace")) for name, text in by_hand.items()}
    notes = _clear(folder)
    # First of all: what is interrupted can then be made anew.
    digests = {name: _digest(found) for name, found in written.items()}
    write_again(folder / MARK, to_json(Mark(run=run.name, written=digests)))
    for name, found in written.items():
        write_again(folder / name, found)
    write_data(folder / BUNDLE, run.bundle_path.read_bytes() if run.bundle_path.is_file() else b"")
    logged = {row["instance_id"] for row in predictions if _copy_logs(folder, run, row)}
    for name in (row["instance_id"] for row in predictions):
        if chat := run.chat(name):
            write_again(folder / "trajs" / f"{name}.md", chat.encode("utf-8", "replace"))
    write_again(folder / "results" / "results.json", to_json(_results(results, predictions, logged)))
    return [*notes, *(f"against submitting: {each}" for each in against)]


def _unfit(run: Run, without: list[str]) -> Iterator[str]:
    if not objections.official(run):
        yield "The benchmark is none of those that SWE-bench/experiments takes."
    if without:
        yield f"A trajectory is required of each task, and {len(without)} have none."


def _mark(folder: Path) -> Mark | None:
    try:
        return decode(json.loads((folder / MARK).read_bytes()), Mark)
    except (OSError, ValueError):
        return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _clear(folder: Path) -> list[str]:
    """Takes away what we made before; what somebody has worked on since is kept under another name."""
    notes, mark = [], _mark(folder)
    known = mark.written if mark else {}
    for path in (folder / name for name in BY_HAND):
        if path.is_file() and _digest(path.read_bytes()) != known.get(path.name):
            kept = _free(path)
            os.replace(path, kept)
            notes.append(f"note: {path.name} was changed by hand, and is kept as {kept.name}")
    for path in (folder / name for name in FOLDERS):
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
    return notes


def _free(path: Path) -> Path:
    """A name that nobody's earlier work has."""
    ends = chain([""], (f"-{number}" for number in count(2)))
    return next(found for end in ends if not (found := path.with_name(f"{path.name}.before{end}")).exists())


def _copy_logs(folder: Path, run: Run, row: Mapping[str, str]) -> bool:
    """Whether there is what a leaderboard counts as a log."""
    instance_id, target = row["instance_id"], folder / "logs" / row["instance_id"]
    if objections.official(run):
        names = {name: run.logs / instance_id / name for name in OFFICIAL_FILES}
    else:
        names = {"eval.log": run.logs / f"{instance_id}.{file_name(row['model_name_or_path'])}.eval.log"}
    found = {name: path for name, path in names.items() if path.is_file()}
    for name, path in found.items():
        # A patch is data: it was masked, where it had to be, when it was written.
        write = write_data if name == PATCH else write_again
        write(target / name, path.read_bytes())
    return REPORT in found or "eval.log" in found


def _results(results: Results, predictions: list[dict[str, str]], logged: set[str]) -> dict[str, list[str]]:
    """As the leaderboard's own script counts them. What the official grading does not call resolved is not here."""
    empty = {row["instance_id"] for row in predictions if not row["model_patch"]} | set(results.lists["no_generation"])
    refuted = {row.instance_id for row in results.instances if row.resolved_official is False}
    return {
        "no_generation": sorted(empty),
        "no_logs": sorted({row["instance_id"] for row in predictions} - empty - logged),
        "resolved": sorted(set(results.lists["resolved"]) - refuted),
    }


def _metadata(results: Results) -> str:
    import yaml

    models = [] if made_elsewhere(results) else [line(name) for name in results.by_model]
    attempts = f"{TODO}: '1' or '2+'" if made_elsewhere(results) else str(results.rate.attempts)
    draft = {
        "assets": {"logs": f"{TODO}: where they were uploaded", "trajs": f"{TODO}: where they were uploaded"},
        "info": {
            "authors": f"{TODO}: names",
            "logo": f"{TODO}: address of an image",
            "name": f"{TODO}: as it is to be listed; its predictions say {line(', '.join(model_names(results)))}",
            "report": f"{TODO}: address of the technical report",
            "site": f"{TODO}: address of the system",
        },
        "tags": {
            "checked": False,
            "model": models or [f"{TODO}: names of the models"],
            "org": [f"{TODO}: who hands it in"],
            "os_model": f"{TODO}: true or false",
            "os_system": f"{TODO}: true or false",
            "system": {"attempts": attempts},
        },
    }
    return yaml.safe_dump(draft, sort_keys=False, allow_unicode=True, width=1000)


def _readme(run: Run, results: Results, against: Sequence[str]) -> str:
    """The tests that ran, their outcome, and the rules that were checked."""
    manifest = run.manifest() if run.exists() else Manifest()
    source = str(results.provenance.get("benchmark", {}).get("source", ""))
    # Ticked is only what is sure.
    return template("submission_readme.md.j2").render(
        run=run,
        results=results,
        against=against,
        manifest=manifest,
        identity=manifest.identity or {},
        names=model_names(results),
        elsewhere=made_elsewhere(results),
        objections=objections,
        split=SPLITS.get(source.removesuffix(":test"), TODO),
    )
