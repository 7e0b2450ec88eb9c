"""The format `diff-func`: lines to replace as arguments of a call, put where they are or nowhere."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from pytest import param

from retrial.chat import Edit, Edits, Fault, Reply, ToolCall
from retrial.formats.diff_func import make
from tests.support.edit_formats import read

ADD = "def add(a, b):\n    pass\n\n\ndef sub(a, b):\n    return a - b\n"
ADDED = ADD.replace("pass", "return a + b")
ONE = {"add.py": ADD}


def edit(
    original: object = "    pass\n", updated: object = "    return a + b\n", path: object = "add.py"
) -> dict[str, object]:
    return {"path": path, "original_lines": original, "updated_lines": updated}


def call(*edits: object, name: str = "replace_lines") -> ToolCall:
    return ToolCall(name=name, arguments=json.dumps({"edits": edits}), id="1")


def parse(*calls: ToolCall, files: dict[str, str] = ONE, text: str = "", finish: str = "tool_calls") -> Edits:
    return read(make(), Reply(text=text, calls=calls, finish=finish), files, lambda path: True)


@pytest.mark.parametrize(
    "calls",
    [
        param((call(edit()),), id="as asked for"),
        param((call(edit("    pass", "    return a + b")),), id="strings without a final newline"),
        param((call(edit(["    pass"], ["    return a + b"])),), id="lists of lines"),
        param((call(edit(["    pass\n"], "    return a + b")),), id="a list and a string"),
        param((call(edit("    pass\r\n", "    return a + b\r\n")),), id="CRLF"),
        param((call(edit("    pass  \n")),), id="blanks at the end"),
        param((call(edit("pass\n", "return a + b\n")),), id="an indentation that is missing throughout"),
        param((call(edit("\ndef add(a, b):\n    pass\n\n", "def add(a, b):\n    return a + b\n\n")),), id="blank ends"),
        param((call(edit(path="./add.py")),), id="a path with ./"),
        param((call(edit(path="path/to/add.py")),), id="a folder that is not there"),
        param((call(edit(), edit()),), id="an edit said twice"),
        param((call(edit(updated="    x\n")), call(edit("    x\n"))), id="two calls, one after the other"),
        param((call(edit(ADD, ADDED)),), id="the whole file"),
    ],
)
def test_an_edit_is_read_however_it_is_written(calls: tuple[ToolCall, ...]) -> None:
    assert parse(*calls) == Edits(edits=(Edit(path="add.py", content=ADDED),))


@pytest.mark.parametrize(
    ("item", "content", "expected"),
    [
        param(edit("b", ""), "a\nb\n", "a\n", id="the last line goes"),
        param(edit("a\nb", []), "a\nb\n", "", id="all lines go"),
        param(edit("", "a\n"), "", "a\n", id="an empty file is filled"),
        param(edit([], ["a"]), "\n", "a\n", id="a file of one blank line is filled"),
        param(edit("a", "b"), "a", "b", id="a missing final newline stays missing"),
        param(edit("a", "b\n"), "a\r\nx\r\n", "b\r\nx\r\n", id="CRLF stays"),
    ],
)
def test_lines_change_as_the_edit_says(item: object, content: str, expected: str) -> None:
    assert parse(call(item), files={"add.py": content}) == Edits(edits=(Edit(path="add.py", content=expected),))


@pytest.mark.parametrize(
    ("calls", "fault", "words"),
    [
        param((), Fault.BROKEN_CALL, "replace_lines", id="no call"),
        param((call(edit(), name="write_files"),), Fault.BROKEN_CALL, "Call replace_lines", id="another function"),
        param((ToolCall(name="replace_lines", arguments='{"edits": [{'),), Fault.BROKEN_CALL, "`path`", id="cut short"),
        param((call(),), Fault.BROKEN_CALL, "needs `edits`", id="no edits"),
        param((call({"path": "add.py"}),), Fault.BROKEN_CALL, "`original_lines`", id="a key missing"),
        param((call(edit(updated=None)),), Fault.BROKEN_CALL, "`updated_lines`", id="null for lines"),
        param((call(edit(updated=[["x"]])),), Fault.BROKEN_CALL, "`updated_lines`", id="a list in a list"),
        param((call(edit(path="b.py")),), Fault.NOT_ALLOWED, "b.py", id="an unknown file"),
        param((call(edit("nothing like it")),), Fault.NO_MATCH, "not in the file", id="lines that are not there"),
        param((call(edit("    pas")),), Fault.NO_MATCH, "not in the file", id="half a line"),
        param((call(edit("", "")),), Fault.MALFORMED, "no lines to replace", id="no lines in a file that has some"),
        param((call(edit(updated="    pass")),), Fault.MALFORMED, "changes nothing", id="nothing new"),
        param((call(edit("", "x", "../b.py")),), Fault.NOT_ALLOWED, "../b.py", id="a new file outside"),
        param((call(edit(), edit("no")),), Fault.NO_MATCH, "edit 2", id="one of two edits does not fit"),
        param((call(edit()), call(edit("no"))), Fault.NO_MATCH, "edit 2", id="one of two calls does not fit"),
    ],
)
def test_what_cannot_be_done_is_said(calls: tuple[ToolCall, ...], fault: Fault, words: str) -> None:
    found = parse(*calls, text="Here.")
    assert (found.edits, found.fault) == ((), fault)
    assert words in found.problem


def test_lines_that_are_there_twice_are_replaced_nowhere() -> None:
    found = parse(call(edit("x", "y")), files={"add.py": "x\na\nx\n"})
    assert (found.edits, found.fault) == ((), Fault.AMBIGUOUS)


def test_a_new_file_has_no_original_lines() -> None:
    found = parse(call(edit("", "x = 1", "new.py")))
    assert found.edits == (Edit(path="new.py", content="x = 1\n"),)


def test_a_call_that_was_cut_off_is_never_completed_by_us() -> None:
    cut = ToolCall(name="replace_lines", arguments=call(edit()).arguments[:-1])
    assert parse(cut, finish="length").fault is Fault.CUT_OFF


def test_the_schema_is_one_strict_function() -> None:
    (tool,) = make().tools
    function: Any = asdict(tool.function)
    item = function["parameters"]["properties"]["edits"]["items"]
    assert function["name"] == "replace_lines"
    assert item["required"] == ["path", "original_lines", "updated_lines"]
