"""The only module that knows where files of a run lie, and the only one that writes them."""

from __future__ import annotations

import copy
import json
import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from retrial.chat import Usage
from retrial.errors import UsageError
from retrial.store import integrity, spending
from retrial.store.journal import Journal
from retrial.store.json_io import decode, read_json_file, read_object, to_json, to_jsonl
from retrial.store.manifest import Manifest
from retrial.store.records import PredictionRecord, read_record
from retrial.system import locks
from retrial.system.files import sync_folder, write_again, write_atomically, write_data, write_if_other
from retrial.system.locks import RunLock
from retrial.system.secrets import MASKER

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+@-]*")

PATCH = "patch.diff"
OFFICIAL_FILES = (PATCH, "report.json", "test_output.txt", "eval.sh")
"""What SWE-bench's own runner leaves of one instance."""

PREDICTIONS = "preds.json"
BESIDE = ("report.html", "compare.html", PREDICTIONS, "aider.yaml", "eval_results.yaml")
"""What is made of results.json."""
FROM_CACHE = "   (from the cache)"


def file_name(text: str) -> str:
    """Any text as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.+@-]", "-", text)[:120]


class Run:
    """The files of one run: `predictions/<run>/` and `logs/<run>/`."""

    def __init__(self, home: Path, name: str) -> None:
        if not SAFE.fullmatch(name) or len(name) > 200:
            raise UsageError(f"'{name}' cannot be a run's name: use letters, digits and . _ + @ - (200 at most).")
        self.name = name
        self._lie_in(home / "predictions" / name, home / "logs" / name)

    def _lie_in(self, folder: Path, logs: Path) -> None:
        self.folder, self.logs = folder, logs
        self.config_path = folder / "run.json"
        self._copy_path = folder / "run.json.copy"
        """Without run.json nobody could tell whether another go would ask the same questions."""
        self.bundle_path = folder / "all_preds.jsonl"
        self.results_path = folder / "results.json"
        self.official_path = folder / "swebench-report.json"

    @classmethod
    def at(cls, folder: Path) -> Run:
        """One that lies elsewhere, such as a shard from another machine: to be read only."""
        real = folder.resolve()
        run = cls(real, real.name)
        run._lie_in(real, real.parents[1] / "logs" / real.name if len(real.parents) > 1 else real / "logs")
        return run

    def with_logs_in(self, name: str) -> Run:
        """Return the same run with its logs in a folder of their own."""
        run = copy.copy(self)
        run.logs = self.logs / name
        return run

    def exists(self) -> bool:
        return self.config_path.is_file() or self._copy_path.is_file()

    def refuse_missing(self) -> None:
        """Raises: UsageError when there is no run."""
        if not self.exists():
            raise UsageError(f"There is no run '{self.name}': {self.config_path} is missing.")

    def manifest(self) -> Manifest:
        """What run.json says. Raises: UsageError when there is no run, or it is not as any version writes it."""
        self.refuse_missing()
        try:
            stored = read_object(self.config_path)
        except UsageError as error:
            stored = self._restored(str(error))
        try:
            return decode(stored, Manifest)
        except ValueError as error:
            raise UsageError(f"{self.config_path} is no run's: {error}.") from error

    def _restored(self, why: str) -> object:
        try:
            stored = read_object(self._copy_path)
        except UsageError as error:
            raise UsageError(f"{why} Without it, what the run is cannot be told: name another run.") from error
        # Where nothing can be written, that is said by who has to.
        with suppress(OSError):
            if self.config_path.exists():
                integrity.tell([integrity.set_aside(self.config_path, why)])
            write_atomically(self.config_path, to_json(stored))
        return stored

    def write_config(self, config: object) -> None:
        """`config` has the fields of run.json, in order."""
        content = to_json(config)
        write_atomically(self.config_path, content)
        write_atomically(self._copy_path, content)
        # Before the first journal: without it, what that says is of no use.
        sync_folder(self.folder)

    def lock(self, claim: RunLock) -> AbstractContextManager[Callable[[], str]]:
        """Hold the run's lock. Yields a function that returns why it is no longer held.

        Raises: UsageError while another process holds it, or when a folder of the run is a symlink.
        """
        self.refuse_links()
        return locks.run_lock(self.folder, self.name, claim)

    def refuse_links(self) -> None:
        """Raise UsageError naming each symlink, FIFO, socket and device in the run's folders.

        None is ever written there, and in a run that a stranger made we would read or write what it leads to.
        """
        integrity.refuse_links(self.folder, self.folder / "journal", self.logs)

    def journal(self, instance_id: str) -> Journal:
        return Journal(self.folder / "journal" / f"{_safe(instance_id)}.jsonl")

    def journal_paths(self) -> list[Path]:
        return sorted((self.folder / "journal").glob("*.jsonl"))

    def prediction_path(self, instance_id: str) -> Path:
        return self.folder / f"{_safe(instance_id)}.json"

    def prediction(self, instance_id: str) -> PredictionRecord | None:
        """A whole one: what is torn is done again."""
        path = self.prediction_path(instance_id)
        try:
            return self._prediction(path)
        except UsageError:
            return None

    def whole_prediction(self, instance_id: str) -> PredictionRecord:
        """One that is there. Raises: UsageError when it cannot be read."""
        return self._prediction(self.prediction_path(instance_id))

    def stored_prediction(self, instance_id: str) -> dict[str, Any]:
        """As its file has it, with what other versions of ours wrote there. Raises: UsageError as before."""
        record = self._read(self.prediction_path(instance_id))
        return {name: value for name, value in record.items() if name != "crc"}

    def has_prediction(self, instance_id: str) -> bool:
        return self.prediction(instance_id) is not None

    def set_aside_damaged(self, instance_ids: Iterable[str]) -> None:
        """Predictions of these tasks that are there, and are not whole."""
        notes = []
        for path in map(self.prediction_path, instance_ids):
            try:
                if path.is_file():
                    self._prediction(path)
            except UsageError as error:
                notes.append(integrity.set_aside(path, str(error)))
        integrity.tell(notes)

    def write_prediction(self, instance_id: str, record: PredictionRecord | Mapping[str, object], chat: str) -> None:
        # The chat first: a prediction on disk means that its task is done.
        self.write_chat(instance_id, chat)
        content = to_json(record)
        if MASKER.redact_data(content) != content:
            # The patch may not be to the byte the one that was tried.
            content = MASKER.redact_data(content.removesuffix(b"\n}\n")) + b',\n  "masked": true\n}\n'
        path = self.prediction_path(instance_id)
        write_data(path, integrity.sealed(content), sure=True)
        patch = record.model_patch if isinstance(record, PredictionRecord) else record.get("model_patch")
        integrity.tell_of_keys(path, to_json(patch))

    def write_chat(self, instance_id: str, chat: str) -> None:
        write_again(self.folder / f"{_safe(instance_id)}.md", chat.encode("utf-8", "replace"))

    def chat(self, instance_id: str) -> str:
        return _text(self.folder / f"{_safe(instance_id)}.md")

    def predictions(self) -> Iterator[PredictionRecord]:
        """Every finished task's record, by id, one after the other: they may be large.

        Raises: UsageError naming those that are damaged.
        """
        problems = list[str]()
        for path in self._prediction_paths():
            try:
                yield self._prediction(path)
            except UsageError as error:
                problems.append(str(error))
        if problems:
            raise integrity.refuse(problems, "The same harness.py command sets them aside and does their tasks again.")

    def keep_only(self, instance_ids: Collection[str]) -> None:
        """Remove the predictions of all other tasks."""
        for path in self._prediction_paths():
            if path.stem not in instance_ids:
                path.unlink()
                path.with_name(f"{path.stem}.md").unlink(missing_ok=True)

    def _prediction_paths(self) -> list[Path]:
        own = {self.config_path.name, self.results_path.name, self.official_path.name, *BESIDE}
        with os.scandir(self.folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".json") and entry.is_file()]
        return [self.folder / name for name in sorted(names) if name not in own]

    def _prediction(self, path: Path) -> PredictionRecord:
        try:
            return read_record(self._read(path))
        except ValueError as error:
            wrong = "its model_patch, its try or one of its all_results is not what it must be"
            raise UsageError(f"{path} is not a prediction: {wrong}.") from error

    def _read(self, path: Path) -> Any:
        content, record = read_json_file(path)
        if why_not := integrity.no_prediction(path, content, record):
            raise UsageError(why_not)
        return record

    def write_bundle(self, rows: list[dict[str, str]]) -> None:
        # In ASCII: bytes that are no UTF-8 travel as surrogates, which no encoding can write.
        write_data(self.bundle_path, b"".join(map(to_jsonl, rows)), sure=True)

    def write_results(self, results: object) -> None:
        write_atomically(self.results_path, to_json(results))

    def write_beside(self, name: str, content: bytes | None) -> Path | None:
        """One of `BESIDE`, masked; None where there is nothing to say: then an earlier one is gone."""
        path = self.folder / BESIDE[BESIDE.index(name)]
        if content is None:
            path.unlink(missing_ok=True)
            return None
        if name == PREDICTIONS:
            write_data(path, MASKER.redact_data(content), sure=True)
        else:
            write_atomically(path, content)
        return path

    def beside(self, name: str) -> str:
        """What is there of `BESIDE`; empty for nothing."""
        return _text(self.folder / BESIDE[BESIDE.index(name)])

    def patches(self) -> dict[str, str]:
        """Of the bundle, by id."""
        if not self.bundle_path.is_file():
            return {}
        rows = map(json.loads, self.bundle_path.read_text(encoding="utf-8").splitlines())
        return {str(row["instance_id"]): str(row["model_patch"] or "") for row in rows}

    def log(self, instance_id: str, model: str) -> str:
        return _text(self._log_path(instance_id, model))

    def write_log(self, instance_id: str, model: str, text: str) -> None:
        write_if_other(self._log_path(instance_id, model), text.encode("utf-8", "replace"))

    def _log_path(self, instance_id: str, model: str) -> Path:
        return self.logs / f"{_safe(instance_id)}.{file_name(model)}.eval.log"

    def write_official(self, instance_id: str, files: Mapping[str, bytes]) -> None:
        """These of `OFFICIAL_FILES`; what an earlier verdict left is gone."""
        folder = self.logs / _safe(instance_id)
        if not files and not folder.is_dir():
            return
        for name in OFFICIAL_FILES:
            if name == PATCH and name in files:
                write_data(folder / name, MASKER.redact_data(files[name]))
            elif name in files:
                write_again(folder / name, files[name])
            else:
                (folder / name).unlink(missing_ok=True)

    def write_official_report(self, content: object) -> None:
        """None where the benchmark has no official report; then an earlier one is gone."""
        if content is None:
            self.official_path.unlink(missing_ok=True)
        else:
            write_atomically(self.official_path, to_json(content))

    def spent(self) -> Usage:
        """All that was ever paid for in this run, in attempts that count and in those that do not."""
        if self.exists() and (spent := self.manifest().spent):
            # Made from other runs, which have the journals.
            return spent
        return sum((entry.usage for entry in self.sums().values()), Usage())

    def unsettled(self) -> float | None:
        """USD more that replies which did not arrive may have cost; None where that can be anything."""
        if self.exists() and (manifest := self.manifest()).spent:
            return manifest.unsettled
        more = sum(entry.committed - (entry.usage.cost or 0.0) for entry in self.sums().values())
        return round(max(0.0, more), 6) if math.isfinite(more) else None

    def sums(self) -> dict[str, spending.JournalSums]:
        """What each journal says was spent."""
        return spending.entries(self.folder / "journal")

    def keep_sums(self) -> None:
        """So that the next one need not read every journal."""
        write_data(self.folder / "journal" / spending.NAME, spending.content(self.folder / "journal"))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _safe(name: str) -> str:
    if not SAFE.fullmatch(name) or len(name) > 200:
        raise UsageError(f"'{name[:80]}' cannot be a file's name: use letters, digits and . _ + @ -")
    return name
