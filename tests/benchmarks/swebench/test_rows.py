"""What a row of SWE-bench must be, and what is made of old and of multimodal ones."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrial.benchmarks.swebench.columns import command_of
from retrial.benchmarks.swebench.rows import DatasetRow, Origin, claims, digest, read
from retrial.errors import UsageError
from tests.support.swebench_sources import (
    BAKED,
    COMMIT,
    HINT,
    SCRIPT,
    SOURCES,
    TWO,
    a_json,
    a_jsonl,
    a_repository,
    a_row,
    a_task,
    complaint,
    ids,
    rows_of,
)


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_rows(tmp_path: Path, source: str) -> None:
    where = SOURCES[source](tmp_path, TWO[::-1])
    rows = read(Origin(where=str(where)))
    assert claims(where)
    assert [row.instance_id for row in rows] == ["ours__tiny-1", "ours__tiny-2"]
    first, secrets = rows[0], rows[0].secrets()
    assert (first.repo, first.base_commit, first.version) == ("ours/tiny", COMMIT, "1.0")
    assert (first.image, first.log_parser, first.eval_type) == (
        "ours/tiny-1:latest", "parse_log_pytest", "pass_and_fail",
    )  # fmt: skip
    assert first.problem_statement == "Number 1 is off by one.\r\nAlways."
    assert (secrets.patch, secrets.test_patch, secrets.eval_script) == ("gold 1\r\n", "tests 1\n", SCRIPT)
    assert (secrets.fail_to_pass, secrets.pass_to_pass) == (("test_a[x y]",), ("test_b", "test_é"))
    assert digest(rows) == digest(read(Origin(where=str(a_json(tmp_path / "again.json", TWO)))))


@pytest.mark.parametrize("source", SOURCES)
def test_hints_are_nowhere_in_a_row(tmp_path: Path, source: str) -> None:
    for row in read(Origin(where=str(SOURCES[source](tmp_path, TWO)))):
        assert b"tiny" in pickle.dumps(row)
        assert HINT.encode() not in pickle.dumps((row, row.secrets()))


def test_a_row_printed_shows_no_answer(tmp_path: Path) -> None:
    (row,) = read(Origin(where=str(a_json(tmp_path / "rows.json", rows_of({})))))
    assert "gold 1" in row.secrets().patch
    assert "gold 1" not in repr(row) and "test_b" not in repr(row)


def test_rows_travel_between_processes(tmp_path: Path) -> None:
    (row,) = read(Origin(where=str(a_repository(tmp_path, rows_of({})))))
    again: DatasetRow = pickle.loads(pickle.dumps(row))
    assert again == row and again.secrets() == row.secrets()


# What a row must be.


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"instance_id": ...}, "lacks instance_id."),
        ({"instance_id": "../up"}, "has instance_id '../up', which must be a file name"),
        ({"instance_id": "a" * 121}, "which must be a file name"),
        ({"instance_id": 7}, "must give instance_id as a text."),
        ({"repo": "tiny"}, "has repo 'tiny', which must be owner/name."),
        ({"repo": "ours/.."}, "which must be owner/name."),
        ({"repo": "--upload-pack=x/y"}, "which must be owner/name."),
        ({"base_commit": COMMIT[:12]}, "which must be the 40 hex digits of a commit."),
        ({"base_commit": "main"}, "which must be the 40 hex digits of a commit."),
        ({"problem_statement": " \n"}, "has an empty problem_statement."),
        ({"problem_statement": "half \ud800"}, "must give problem_statement as a text."),
        ({"image": "--privileged x"}, "which must be the name of an image."),
        ({"log_parser": "os.system"}, "which must be the name of a log parser."),
        ({"eval_type": "all"}, "which must be pass_and_fail or fail_only."),
        ({"patch": ...}, "lacks patch."),
        ({"test_patch": 1}, "must give test_patch as a text."),
        ({"FAIL_TO_PASS": ...}, "lacks FAIL_TO_PASS."),
        ({"FAIL_TO_PASS": "test_a"}, "must give FAIL_TO_PASS as a list of texts."),
        ({"PASS_TO_PASS": [1]}, "must give PASS_TO_PASS as a list of texts."),
        ({"PASS_TO_PASS": ["\udc00"]}, "a text that no file can hold."),
        ({"FAIL_TO_PASS": [], "PASS_TO_PASS": "[]"}, "names no test"),
        ({"eval_script": "pytest"}, "has an eval_script without a test command"),
        ({"image_assets": "{"}, "has image_assets that are not lists"),
        ({"image_assets": {"test_patch": ["a.png"]}}, "has image_assets that are not lists"),
    ],
)
def test_a_bad_column_is_refused_with_its_place(tmp_path: Path, changed: Mapping[str, Any], expected: str) -> None:
    said = complaint(a_jsonl(tmp_path / "rows.jsonl", rows_of({}, changed)))
    assert said.startswith(f"{tmp_path}/rows.jsonl:2 ") and expected in said
    assert "\n" not in said


def test_lists_may_be_json_texts_and_optional_columns_may_be_missing(tmp_path: Path) -> None:
    lists = {"FAIL_TO_PASS": '["test_a[x y]"]', "PASS_TO_PASS": "[]"}
    old = a_row(1, **lists, version=..., difficulty=..., hints_text=...)
    (row,) = read(Origin(where=str(a_json(tmp_path / "rows.json", old))))
    assert (row.secrets().fail_to_pass, row.secrets().pass_to_pass, row.version) == (("test_a[x y]",), (), "")


def test_a_row_given_twice_is_refused(tmp_path: Path) -> None:
    path = a_jsonl(tmp_path / "rows.jsonl", [*TWO, TWO[0]])
    assert complaint(path) == f"{path}:3 repeats ours__tiny-1 of {path}:1."


def test_the_first_twenty_problems_are_listed(tmp_path: Path) -> None:
    path = a_jsonl(tmp_path / "rows.jsonl", rows_of(*[{"repo": "tiny"}] * 23))
    said = complaint(path).splitlines()
    assert len(said) == 21
    assert said[0].startswith(f"{path}:1 ") and said[-1] == "… and 3 more."


@pytest.mark.parametrize(
    ("script", "command"),
    [
        (SCRIPT, "pytest -rA"),
        (SCRIPT.replace("pytest -rA", "a\nb"), "a\nb"),
        (SCRIPT.replace("pytest -rA\n", ""), ""),
        (SCRIPT + SCRIPT, ""),
        (SCRIPT.replace("Start", "Begin"), ""),
        ("\n".join(reversed(SCRIPT.split("\n"))), ""),
    ],
)
def test_the_test_command_stands_between_the_two_markers(script: str, command: str) -> None:
    assert command_of(script) == command


# Rows from before SWE-bench 5.

OLD = dict.fromkeys(BAKED, ...)


def test_old_rows_are_completed_from_a_task_repository(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "repository", rows_of({"test_patch": "as the script has it\n"}))
    path = a_jsonl(tmp_path / "rows.jsonl", rows_of({**OLD, "patch": "mine\n", "FAIL_TO_PASS": '["test_mine"]'}, {}))
    row, whole = read(Origin(where=str(path), complete=lambda: root))
    secrets = row.secrets()
    assert (row.image, row.log_parser, row.eval_type) == ("ours/tiny-1:latest", "parse_log_pytest", "pass_and_fail")
    assert (secrets.eval_script, secrets.test_patch) == (SCRIPT, "as the script has it\n")
    assert (secrets.patch, secrets.fail_to_pass) == ("mine\n", ("test_mine",))
    assert row.recipe == str(root / "tasks" / "ours__tiny-1")
    assert whole.recipe == "" and whole.secrets().test_patch == "tests 2\n"


def test_how_to_run_an_old_row_is_taken_as_one_piece(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "repository", rows_of({}))
    path = a_json(tmp_path / "rows.json", rows_of({"eval_type": "", "image": "other/image", "log_parser": "other"}))
    (row,) = read(Origin(where=str(path), complete=lambda: root))
    assert (row.image, row.log_parser, row.eval_type) == ("ours/tiny-1:latest", "parse_log_pytest", "pass_and_fail")


def test_no_task_repository_is_wanted_while_no_row_lacks_anything(tmp_path: Path) -> None:
    def complete() -> Path:
        raise AssertionError("nothing is lacking")

    for source in SOURCES.values():
        at = tmp_path / str(len(os.listdir(tmp_path)))
        at.mkdir()
        assert len(read(Origin(where=str(source(at, TWO)), complete=complete))) == 2


def test_an_old_row_that_cannot_be_completed_is_refused(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "repository", rows_of({}))
    path = a_jsonl(tmp_path / "rows.jsonl", [a_row(9, **OLD)])
    lacking = f"{path}:1 (ours__tiny-9) lacks eval_script, image, log_parser, eval_type"
    assert complaint(path, complete=lambda: root).startswith(f"{lacking}, and {root} has no such task: add")
    assert complaint(path).startswith(f"{lacking}: add these columns, or take the row")
    assert "is no task repository" in complaint(path, complete=lambda: tmp_path)


def test_an_old_row_of_another_commit_is_refused(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "repository", rows_of({}))
    path = a_jsonl(tmp_path / "rows.jsonl", rows_of({**OLD, "base_commit": "f" * 40}))
    assert "(ours__tiny-1) has a base_commit (ffff" in complaint(path, complete=lambda: root)


def test_an_old_row_is_not_looked_up_outside_the_tasks(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "repository", rows_of({}))
    (root / "tasks" / "ours__tiny-1").rename(root / "elsewhere")
    path = a_jsonl(tmp_path / "rows.jsonl", rows_of({**OLD, "instance_id": "../elsewhere"}))
    assert "(../elsewhere) lacks" in complaint(path, complete=lambda: root)


# Multimodal rows.

ASSETS = {"test_patch": [{"path": "img/want.png", "url": "http://nowhere"}], "problem_statement": ["http://nowhere"]}


@pytest.mark.parametrize("assets", [ASSETS, json.dumps(ASSETS)])
def test_rows_that_need_files_are_refused_where_the_files_are_not(tmp_path: Path, assets: object) -> None:
    said = complaint(a_jsonl(tmp_path / "rows.jsonl", rows_of({"image_assets": assets})))
    assert said.startswith(f"{tmp_path}/rows.jsonl:1 needs 'img/want.png'") and "multimodal" in said
    a_task(tmp_path / "repository", a_row(image_assets=assets))
    assert "multimodal rows are not supported" in complaint(tmp_path / "repository")


def test_files_of_a_multimodal_task_are_part_of_its_secrets(tmp_path: Path) -> None:
    folder = a_task(tmp_path, a_row(image_assets=ASSETS))
    (folder / "test_assets" / "img").mkdir(parents=True)
    (folder / "test_assets" / "img" / "want.png").write_bytes(b"\x89PNG")
    (folder / "test_assets" / "not-named.png").write_bytes(b"\x89PNG")
    (row,) = read(Origin(where=str(tmp_path)))
    assert row.secrets().test_assets == {"img/want.png": b"\x89PNG"}
    before = digest([row])
    (folder / "test_assets" / "img" / "want.png").write_bytes(b"other")
    assert digest([row]) != before
    (folder / "test_assets" / "img" / "want.png").unlink()
    with pytest.raises(UsageError, match="multimodal"):
        row.secrets()


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "link"])
def test_files_from_outside_the_task_are_not_taken(tmp_path: Path, path: str) -> None:
    folder = a_task(tmp_path, a_row(image_assets={"patch": [{"path": path}]}))
    (folder / "test_assets").mkdir()
    (folder / "secret").write_text("private")
    (folder / "test_assets" / "link").symlink_to("../secret")
    assert f"needs {path!r}" in complaint(tmp_path)


def test_pictures_in_the_problem_statement_alone_are_no_obstacle(tmp_path: Path) -> None:
    assets = {"problem_statement": ["http://nowhere"], "patch": None, "test_patch": []}
    assert ids(a_json(tmp_path / "rows.json", rows_of({"image_assets": assets}))) == ["ours__tiny-1"]


# The digest.


@pytest.mark.parametrize(
    "changed",
    [
        {"problem_statement": "Another."},
        {"base_commit": "f" * 40},
        {"image": "other/image"},
        {"patch": "gold 1\n"},
        {"test_patch": ""},
        {"eval_script": SCRIPT.replace("-rA", "-q")},
        {"PASS_TO_PASS": ["test_b"]},
        {"eval_type": "fail_only"},
    ],
)
def test_the_digest_changes_with_what_defines_the_benchmark(tmp_path: Path, changed: Mapping[str, Any]) -> None:
    rows = [rows_of({}), rows_of(changed)]
    for source in ("task repository", "jsonl"):
        digests = set()
        for number, some in enumerate(rows):
            at = tmp_path / f"{source}-{number}"
            at.mkdir()
            digests.add(digest(read(Origin(where=str(SOURCES[source](at, some))))))
        assert len(digests) == 2


def test_the_digest_does_not_change_with_hints_or_order(tmp_path: Path) -> None:
    rows = read(Origin(where=str(a_json(tmp_path / "one.json", TWO))))
    others = read(Origin(where=str(a_json(tmp_path / "two.json", rows_of({"hints_text": "no"}, {"hints_text": ...})))))
    assert digest(rows) == digest(rows[::-1]) == digest(others)
