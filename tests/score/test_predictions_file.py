"""Prediction files made elsewhere: every problem with its line, tolerated oddities with a remark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retrial.errors import UsageError
from retrial.score.predictions_file import Imported, read, read_bundle

KNOWN = {"one", "two"}


def row(instance_id: object = "one", patch: object = "diff", model: object = "m") -> str:
    return json.dumps({"instance_id": instance_id, "model_name_or_path": model, "model_patch": patch})


def imported(tmp_path: Path, content: str | bytes, name: str = "preds.jsonl") -> Imported:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path, KNOWN)


def test_good_lines_are_taken(tmp_path: Path) -> None:
    found = imported(tmp_path, row() + "\n" + row("two", None) + "\n")
    assert {key: each.patch for key, each in found.submissions.items()} == {"one": "diff\n", "two": ""}
    assert not found.problems
    assert not found.remarks


@pytest.mark.parametrize(
    "content",
    [
        "[" + row() + "," + row("two") + "]",
        json.dumps({key: {"model_name_or_path": "m", "model_patch": "diff"} for key in KNOWN}),
    ],
)
def test_a_list_or_an_object_by_id_is_taken_too(tmp_path: Path, content: str) -> None:
    assert set(imported(tmp_path, content, "preds.json").submissions) == KNOWN


def test_blank_lines_a_mark_and_crlf_pass_with_a_remark(tmp_path: Path) -> None:
    found = imported(tmp_path, b"\xef\xbb\xbf" + f"{row()}\r\n\r\n\r\n{row('two')}\r\n".encode())
    assert set(found.submissions) == KNOWN
    assert len(found.remarks) == 3


def test_identical_duplicates_pass_and_different_ones_do_not(tmp_path: Path) -> None:
    assert imported(tmp_path, f"{row()}\n{row()}\n").remarks
    found = imported(tmp_path, f"{row()}\n{row(patch='other')}\n")
    assert ":2 contradicts line 1" in found.problems[0]
    assert not found.submissions


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[" * 200_000,
        "7",
        json.dumps({"instance_id": "one"}),
        row(instance_id=7),
        row(instance_id="three"),
        row(patch=7),
        row(model=""),
        row(model=7),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    found = imported(tmp_path, f"{row()}\n{line}\n")
    assert all("preds.jsonl:2" in problem for problem in found.problems)
    assert found.problems


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    assert "preds.jsonl:1 is not UTF-8" in imported(tmp_path, b"\xff{}\n").problems[0]


def test_the_first_twenty_problems_are_listed(tmp_path: Path) -> None:
    imported(tmp_path, "{\n" * 30)
    with pytest.raises(UsageError, match="10 more") as refused:
        read_bundle(tmp_path / "preds.jsonl", KNOWN)
    assert str(refused.value).count("preds.jsonl:") == 20


def test_an_empty_file_holds_no_predictions(tmp_path: Path) -> None:
    assert "no predictions" in imported(tmp_path, "").problems[0]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.jsonl"):
        read(tmp_path / "nowhere.jsonl", KNOWN)
