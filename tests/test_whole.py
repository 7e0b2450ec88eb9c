"""The format `whole`: tolerant of how models write, never guessing into the wrong file."""

from __future__ import annotations

import pytest

from retrial.attempts import Reply
from retrial.edits import read
from retrial.edits.whole import make
from retrial.protocols import Edits

ONE = {"add.py": "def add(a, b):\n    pass\n"}
TWO = {"src/add.py": "", "src/sub.py": ""}
CODE = "def add(a, b):\n    return a + b\n"


def parse(text: str, files: dict[str, str] = ONE, finish: str = "stop") -> Edits:
    return read(make(), Reply(text=text, finish=finish), files, lambda path: True)


def only(edits: Edits) -> tuple[str, str]:
    assert not edits.problem
    assert len(edits.edits) == 1
    return edits.edits[0].path, edits.edits[0].content or ""


@pytest.mark.parametrize(
    "text",
    [
        f"add.py\n```\n{CODE}```\n",
        f"add.py\n```python\n{CODE}```",
        f"**add.py**\n\n```python\n{CODE}```\n",
        f"### `add.py`:\n```py\n{CODE}```\n",
        f"1. add.py\n```\n{CODE}```\n",
        f"Here is the new content of `add.py`:\n```python\n{CODE}```\nRun it:\n```bash\npytest\n```\n",
        f"```python add.py\n{CODE}```\n",
        f"```add.py\n{CODE}```\n",
        f"```python:add.py\n{CODE}```\n",
        f"path/to/add.py\n```\n{CODE}```\n",
        f"./add.py\n~~~\n{CODE}~~~\n",
        f"  add.py\n  ```python\n{CODE}  ```\n",
        f"<think>add.py\n```\nno\n```\n</think>\nadd.py\n```\n{CODE}```\n",
        f"Here is the new file\n```python\n{CODE}```\n",
        f"```python\n{CODE}```\nFor example:\n```python\nadd(1, 2)\n```\n",
        f"add.py\r\n```\r\n{CODE}```\r\n",
        f"add.py\n```python\n{CODE}",
    ],
)
def test_one_file_is_found_however_it_is_named(text: str) -> None:
    assert only(parse(text)) == ("add.py", CODE)


def test_a_fence_inside_the_file_does_not_end_it() -> None:
    body = '"""Adds.\n\n```python\nadd(1, 2)\n```\n"""\n' + CODE
    assert only(parse(f"add.py\n```python\n{body}```\n")) == ("add.py", body)


def test_a_longer_fence_holds_shorter_ones() -> None:
    body = '"""\n```\nadd\n```\n"""\n' + CODE
    assert only(parse(f"add.py\n````\n{body}````\n")) == ("add.py", body)


def test_two_files_are_two_edits() -> None:
    found = parse(f"src/add.py\n```\n{CODE}```\nsub.py\n```\nx = 1\n```\n", TWO)
    assert {edit.path: edit.content for edit in found.edits} == {"src/add.py": CODE, "src/sub.py": "x = 1\n"}


def test_of_two_blocks_for_one_file_the_last_counts() -> None:
    assert only(parse(f"add.py\n```\nold = 1\n```\nBetter:\n\nadd.py\n```\n{CODE}```\n"))[1] == CODE


def test_a_new_file_is_an_edit_when_its_path_stands_alone() -> None:
    found = parse(f"add.py\n```\n{CODE}```\nhelper.py\n```\nx = 1\n```\n")
    assert [edit.path for edit in found.edits] == ["add.py", "helper.py"]


def test_prose_before_a_fence_is_not_a_file_name() -> None:
    found = parse(f"add.py\n```\n{CODE}```\nRun it like this\n```\nadd(1, 2)\n```\n")
    assert [edit.path for edit in found.edits] == ["add.py"]


def test_a_reply_without_a_block_says_what_to_write() -> None:
    assert "add.py" in parse("I would add the numbers.").problem


def test_an_unnamed_block_is_malformed_when_there_are_two_files() -> None:
    assert "which file" in parse(f"```python\n{CODE}```\n", TWO).problem


def test_an_empty_block_never_empties_a_file() -> None:
    assert "empty" in parse("add.py\n```\n```\n").problem


def test_a_reply_cut_at_its_length_is_not_half_a_file() -> None:
    assert "cut off" in parse(f"add.py\n```python\n{CODE}", finish="length").problem


def test_a_reply_that_repeats_itself_until_it_is_cut_counts() -> None:
    block = f"```python\n{CODE}```\n"
    assert only(parse(block * 3 + "```python\ndef add(", finish="length")) == ("add.py", CODE)


def test_a_second_file_that_was_cut_is_not_left_out_silently() -> None:
    text = f"src/add.py\n```\n{CODE}```\nsrc/sub.py\n```\nx ="
    assert "cut off" in parse(text, TWO, finish="length").problem


def test_a_reply_cut_after_its_last_block_counts() -> None:
    assert only(parse(f"add.py\n```python\n{CODE}```\nThis adds", finish="length")) == ("add.py", CODE)
