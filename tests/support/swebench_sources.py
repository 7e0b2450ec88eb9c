"""Small SWE-bench data of our own, in every form that rows come in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from retrial.benchmarks.swebench.rows import Origin, read
from retrial.errors import UsageError

HINT = "somebody-gave-it-away"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
SCRIPT = "cd /testbed\n: '>>>>> Start Test Output'\npytest -rA\n: '>>>>> End Test Output'\ngit checkout .\n"
BAKED = ("eval_script", "image", "log_parser", "eval_type")


def a_row(number: int = 1, **changed: Any) -> dict[str, Any]:
    row = {
        "instance_id": f"ours__tiny-{number}",
        "repo": "ours/tiny",
        "base_commit": COMMIT,
        "version": "1.0",
        "problem_statement": f"Number {number} is off by one.\r\nAlways.",
        "hints_text": HINT,
        "patch": f"gold {number}\r\n",
        "test_patch": f"tests {number}\n",
        "FAIL_TO_PASS": ["test_a[x y]"],
        "PASS_TO_PASS": ["test_b", "test_é"],
        "image": f"ours/tiny-{number}:latest",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "eval_script": SCRIPT,
        "created_at": "2020-01-01T00:00:00Z",
        "difficulty": "",
    }
    return {name: value for name, value in {**row, **changed}.items() if value is not ...}


def rows_of(*changes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [a_row(number, **change) for number, change in enumerate(changes, start=1)]


TWO = rows_of({}, {})


def a_task(
    root: Path, row: Mapping[str, Any], *, split: str = "test", datasets: tuple[str, ...] = ("our/All",)
) -> Path:
    """One task folder of a task repository, made if need be."""
    folder = root / "tasks" / str(row["instance_id"])
    folder.mkdir(parents=True)
    if not (root / "sweb.yaml").exists():
        (root / "sweb.yaml").write_text("datasets: [our/All, our/Lite]\nsplits: [test, dev]\n")
    files = {"patch": "gold.patch", "test_patch": "test.patch", "eval_script": "eval.sh"}
    files |= {"problem_statement": "problem_statement.md", "hints_text": "hints.md"}
    tests = ("FAIL_TO_PASS", "PASS_TO_PASS")
    for column, name in files.items():
        (folder / name).write_bytes(row[column].encode())
    (folder / "tests.json").write_text(json.dumps({name: row[name] for name in tests}))
    (folder / "Dockerfile").write_text("FROM scratch\n")
    kept = {name: value for name, value in row.items() if name not in (*files, *tests)}
    (folder / "task.yaml").write_text(yaml.safe_dump({**kept, "split": split, "datasets": list(datasets)}))
    return folder


def a_repository(root: Path, rows: list[dict[str, Any]]) -> Path:
    for row in rows:
        a_task(root, row)
    return root


def a_parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    import_module("pyarrow.parquet").write_table(import_module("pyarrow").Table.from_pylist(rows), path)
    return path


def a_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def a_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def on_disk(folder: Path, rows: list[dict[str, Any]]) -> Path:
    import_module("datasets").Dataset.from_list(rows).save_to_disk(folder / "test")
    return folder


def declared(folder: Path, rows: list[dict[str, Any]]) -> Path:
    a_jsonl(folder / "anything.jsonl", rows)
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: test\n    path: anything.jsonl\n---\n# Ours\n"
    )
    return folder


SOURCES: dict[str, Callable[[Path, list[dict[str, Any]]], Path]] = {
    "task repository": lambda at, rows: a_repository(at / "repository", rows),
    "json list": lambda at, rows: a_json(at / "rows.json", rows),
    "json by id": lambda at, rows: a_json(at / "rows.json", {row["instance_id"]: row for row in rows}),
    "jsonl": lambda at, rows: a_jsonl(at / "rows.jsonl", rows),
    "parquet": lambda at, rows: a_parquet(at / "rows.parquet", rows),
    "hub folder of parquet": lambda at, rows: a_parquet(at / "data" / "test-00000-of-00001.parquet", rows).parents[1],
    "hub folder of jsonl": lambda at, rows: a_jsonl(at / "hub" / "test.jsonl", rows).parent,
    "hub folder with a card": lambda at, rows: declared(at / "hub", rows),
    "folder saved by datasets": lambda at, rows: on_disk(at / "hub", rows),
}


def complaint(where: Path | str, **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        read(Origin(where=str(where), **options))
    return str(caught.value)


def ids(where: Path, **options: Any) -> list[str]:
    return [row.instance_id for row in read(Origin(where=str(where), **options))]
