"""The only module that knows where files of a run lie, and the only one that writes them."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from retrial import owners
from retrial.attempts import Usage
from retrial.errors import UsageError
from retrial.journal import Journal
from retrial.plain import to_json
from retrial.secrets import KNOWN

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+@-]*")

PREDICTION_FIELDS = ("instance_id", "model_name_or_path", "model_patch", "try", "all_results")
OFFICIAL_FILES = ("patch.diff", "report.json", "test_output.txt", "eval.sh")
"""What SWE-bench's own runner leaves of one instance."""


def file_name(text: str) -> str:
    """Any text as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9_.+@-]", "-", text)[:120]


def write_atomically(path: Path, content: bytes) -> None:
    """All of it or nothing, and on disk when this returns; without what nobody may see."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Carries our name: who is killed in the middle leaves it.
    owner = owners.mark(owners.Kind.FILES, path.parent)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.{owner}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(KNOWN.masked_bytes(content))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    finally:
        # Gone by now, unless something failed.
        Path(temporary).unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Raises: UsageError naming the file when it is not JSON."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not valid JSON: {error}.") from error


class Run:
    """The files of one run: `predictions/<run>/` and `logs/<run>/`."""

    def __init__(self, home: Path, name: str) -> None:
        if not SAFE.fullmatch(name) or len(name) > 200:
            raise UsageError(f"'{name}' cannot be a run's name: use letters, digits and . _ + @ - (200 at most).")
        self.name = name
        self.folder = home / "predictions" / name
        self.logs = home / "logs" / name

    @classmethod
    def at(cls, folder: Path) -> Run:
        """One that lies elsewhere, such as a shard from another machine: to be read only."""
        run = cls(folder, folder.resolve().name)
        run.folder = folder.resolve()
        return run

    @property
    def config_path(self) -> Path:
        return self.folder / "run.json"

    @property
    def bundle_path(self) -> Path:
        return self.folder / "all_preds.jsonl"

    @property
    def results_path(self) -> Path:
        return self.folder / "results.json"

    @property
    def official_path(self) -> Path:
        return self.folder / "swebench-report.json"

    def exists(self) -> bool:
        return self.config_path.is_file()

    def config(self) -> dict[str, Any]:
        if not self.exists():
            raise UsageError(f"There is no run '{self.name}': {self.config_path} is missing.")
        value = read_json(self.config_path)
        if not isinstance(value, dict):
            raise UsageError(f"{self.config_path} must hold a JSON object.")
        return value

    def write_config(self, config: Mapping[str, object]) -> None:
        write_atomically(self.config_path, to_json(config))

    def journal(self, instance_id: str) -> Journal:
        return Journal(self.folder / "journal" / f"{_safe(instance_id)}.jsonl")

    def journal_paths(self) -> list[Path]:
        return sorted((self.folder / "journal").glob("*.jsonl"))

    def prediction_path(self, instance_id: str) -> Path:
        return self.folder / f"{_safe(instance_id)}.json"

    def prediction(self, instance_id: str) -> dict[str, Any] | None:
        """A whole one: what is torn is done again."""
        path = self.prediction_path(instance_id)
        try:
            return self._prediction(path) if path.is_file() else None
        except UsageError:
            return None

    def has_prediction(self, instance_id: str) -> bool:
        return self.prediction(instance_id) is not None

    def write_prediction(self, instance_id: str, record: Mapping[str, object], chat: str) -> None:
        # The chat first: a prediction on disk means that its task is done.
        self.write_chat(instance_id, chat)
        content = to_json(record)
        if KNOWN.masked_bytes(content) != content:
            # The patch may not be to the byte the one that was tried.
            content = to_json({**record, "masked": True})
        write_atomically(self.prediction_path(instance_id), content)

    def write_chat(self, instance_id: str, chat: str) -> None:
        write_atomically(self.folder / f"{_safe(instance_id)}.md", chat.encode("utf-8", "replace"))

    def chat(self, instance_id: str) -> str:
        path = self.folder / f"{_safe(instance_id)}.md"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def predictions(self) -> list[dict[str, Any]]:
        """Every finished task's record, by id."""
        return [self._prediction(path) for path in self._prediction_paths()]

    def keep_only(self, instance_ids: Collection[str]) -> None:
        """Remove the predictions of all other tasks."""
        for path in self._prediction_paths():
            if path.stem not in instance_ids:
                path.unlink()
                path.with_name(f"{path.stem}.md").unlink(missing_ok=True)

    def _prediction_paths(self) -> list[Path]:
        own = {self.config_path.name, self.results_path.name, self.official_path.name}
        return sorted(path for path in self.folder.glob("*.json") if path.name not in own and path.is_file())

    def _prediction(self, path: Path) -> dict[str, Any]:
        record = read_json(path)
        if not isinstance(record, dict) or record.get("instance_id") != path.stem:
            raise UsageError(f"{path} is not a prediction: its instance_id must be '{path.stem}'.")
        missing = [name for name in PREDICTION_FIELDS if name not in record]
        if missing or not record["all_results"]:
            raise UsageError(f"{path} is not a whole prediction: {(missing or ['all_results'])[0]} is missing.")
        return record

    def write_bundle(self, rows: list[dict[str, str]]) -> None:
        import jsonlines

        text = io.StringIO()
        # In ASCII: bytes that are no UTF-8 travel as surrogates, which no encoding can write.
        jsonlines.Writer(text, dumps=json.dumps).write_all(rows)
        write_atomically(self.bundle_path, text.getvalue().encode())

    def write_results(self, results: Mapping[str, object]) -> None:
        write_atomically(self.results_path, to_json(results))

    def write_log(self, instance_id: str, model: str, text: str) -> None:
        path = self.logs / f"{_safe(instance_id)}.{file_name(model)}.eval.log"
        write_atomically(path, text.encode("utf-8", "replace"))

    def write_official(self, instance_id: str, files: Mapping[str, bytes]) -> None:
        """These of `OFFICIAL_FILES`; what an earlier verdict left is gone."""
        folder = self.logs / _safe(instance_id)
        for name in OFFICIAL_FILES:
            if name in files:
                write_atomically(folder / name, files[name])
            else:
                (folder / name).unlink(missing_ok=True)

    def write_official_report(self, content: Mapping[str, object] | None) -> None:
        """None where the benchmark has no official report; then an earlier one is gone."""
        if content is None:
            self.official_path.unlink(missing_ok=True)
        else:
            write_atomically(self.official_path, to_json(content))

    def spent(self) -> Usage:
        """All that was ever paid for in this run, in attempts that count and in those that do not."""
        stored = self.config().get("spent") if self.exists() else None
        if isinstance(stored, dict):
            # Made from other runs, which have the journals.
            return Usage(**stored)
        total = Usage()
        for path in self.journal_paths():
            for line in Journal(path).lines():
                if line.get("event") == "reply" and not line["reply"].get("recorded"):
                    total += Usage(**line["reply"]["usage"])
                elif line.get("event") == "spent":
                    total += Usage(**line["usage"])
        return total


def find_run(home: Path, text: str) -> Run | None:
    """A run by its name, or by any path inside its folder; None for a file from elsewhere.

    Raises: UsageError when there is neither.
    """
    path = Path(text)
    if SAFE.fullmatch(text) and Run(home, text).exists():
        return Run(home, text)
    folder = (home / "predictions").resolve()
    if path.exists() and folder in path.resolve().parents:
        return Run(home, path.resolve().relative_to(folder).parts[0])
    if path.exists():
        return None
    if "/" in text or path.suffix in (".json", ".jsonl"):
        raise UsageError(f"There is no file {text}.")
    raise UsageError(f"There is no run and no file '{text}'.")


def latest_run(home: Path) -> str:
    """The run of harness.py that was started last; its grid, if it belongs to one."""
    found = []
    for path in (home / "predictions").glob("*/run.json"):
        try:
            config = read_json(path)
        except UsageError:
            # Another run's broken file is no reason not to find this one.
            continue
        if isinstance(config, dict) and config.get("program") == "harness.py":
            found.append((str(config.get("started", "")), str(config.get("grid") or path.parent.name)))
    if not found:
        raise UsageError("There is no run yet: start one with 'python harness.py'.")
    return max(found)[1]


def _safe(name: str) -> str:
    if not SAFE.fullmatch(name) or len(name) > 200:
        raise UsageError(f"'{name[:80]}' cannot be a file's name: use letters, digits and . _ + @ -")
    return name
