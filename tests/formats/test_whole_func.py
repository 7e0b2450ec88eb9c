"""The format `whole-func`: files as arguments of a call, and all the ways in which a call can be broken."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from pytest import param

from retrial.chat import Edit, Edits, Fault, Reply, ToolCall
from retrial.formats.whole_func import make
from tests.support.edit_formats import read

CODE = "def add(a, b):\n    return a + b\n"
FILE = {"path": "add.py", "content": CODE}
GOOD = json.dumps({"files": [FILE]})
ADDED = Edits(edits=(Edit(path="add.py", content=CODE),))


def parse(*arguments: str, name: str = "write_files", text: str = "", finish: str = "tool_calls") -> Edits:
    calls = tuple(ToolCall(name=name, arguments=each, id=str(place)) for place, each in enumerate(arguments))
    return read(make(), Reply(text=text, calls=calls, finish=finish), {"add.py": "pass\n"}, lambda path: True)


@pytest.mark.parametrize(
    "arguments",
    [
        param(GOOD, id="as asked for"),
        param(json.dumps({"explanation": "It adds.", "files": [FILE]}), id="with an explanation"),
        param(json.dumps({"files": [{**FILE, "content": CODE.splitlines()}]}), id="a list of lines"),
        param(json.dumps({"files": [{**FILE, "content": CODE.splitlines(keepends=True)}]}), id="a list of ended lines"),
        param(json.dumps({"files": [{**FILE, "content": CODE.replace("\n", "\r\n")}]}), id="CRLF"),
        param(json.dumps({"files": [{**FILE, "path": " ./add.py "}]}), id="a path with ./ and blanks"),
        param(json.dumps({"files": [FILE, FILE]}), id="a file said twice"),
        param(json.dumps({"files": [{**FILE, "path": "src/add.py"}]}), id="a path with folders that are not there"),
        param(json.dumps({"files": json.dumps([FILE])}), id="the list in a string"),
        param(GOOD.replace("\\n", "\n"), id="line ends that are not escaped"),
        param(GOOD[:-1], id="a bracket missing at the end"),
        param(GOOD[:-3], id="three brackets missing at the end"),
    ],
)
def test_a_call_is_read_however_it_is_written(arguments: str) -> None:
    assert parse(arguments) == ADDED


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        param("", "not valid JSON", id="no arguments"),
        param("add.py", "not valid JSON", id="no JSON"),
        param(GOOD[:-8], "not valid JSON", id="cut off inside a string"),
        param(GOOD + "}", "not valid JSON", id="a bracket too many"),
        param("[" * 100_000, "not valid JSON", id="brackets without end"),
        param("null", "needs `files`", id="null"),
        param(json.dumps([FILE]), "needs `files`", id="the list alone"),
        param("{}", "needs `files`", id="no list"),
        param(json.dumps({"files": []}), "needs `files`", id="an empty list"),
        param(json.dumps({"files": {"add.py": CODE}}), "needs `files`", id="an object for the list"),
        param(json.dumps({"files": [CODE]}), "needs `files`", id="a string for an item"),
        param(json.dumps({"files": CODE}), "needs `files`", id="a string that is no list"),
        param(json.dumps({"files": [{"content": CODE}]}), "item 1 of `files` has no `path`", id="no path"),
        param(json.dumps({"files": [{**FILE, "path": ""}]}), "`path`", id="an empty path"),
        param(json.dumps({"files": [{**FILE, "path": ["add.py"]}]}), "`path`", id="a list for the path"),
        param(json.dumps({"files": [FILE, {"path": "b.py"}]}), "item 2 of `files` has no `content`", id="no content"),
        param(json.dumps({"files": [{**FILE, "content": None}]}), "`content`", id="null for the content"),
        param(json.dumps({"files": [{**FILE, "content": ["x", 1]}]}), "`content`", id="a number for a line"),
    ],
)
def test_a_broken_call_is_told_what_is_wrong(arguments: str, words: str) -> None:
    found = parse(arguments)
    assert (found.edits, found.fault) == ((), Fault.BROKEN_CALL)
    assert words in found.problem


def test_text_without_a_call_is_told_to_call() -> None:
    found = parse(text=f"```json\n{GOOD}\n```", finish="stop")
    assert (found.edits, found.fault) == ((), Fault.BROKEN_CALL)
    assert "write_files" in found.problem


def test_another_function_is_told_the_right_one() -> None:
    found = parse(GOOD, name="edit_file")
    assert found.fault is Fault.BROKEN_CALL
    assert "no function 'edit_file'" in found.problem
    assert "Call write_files" in found.problem


def test_several_calls_are_all_carried_out() -> None:
    other = json.dumps({"files": [{"path": "b.py", "content": ""}]})
    assert parse(GOOD, other) == Edits(edits=(*ADDED.edits, Edit(path="b.py", content="")))


def test_one_broken_call_of_several_leaves_everything_as_it_is() -> None:
    assert parse(GOOD, "{").edits == ()


def test_a_file_with_two_contents_is_refused() -> None:
    found = parse(GOOD, GOOD.replace("+", "-"))
    assert (found.edits, found.fault) == ((), Fault.MALFORMED)


@pytest.mark.parametrize("arguments", [GOOD[:-1], GOOD[:-8], GOOD[:5]])
def test_a_call_that_was_cut_off_is_never_completed_by_us(arguments: str) -> None:
    assert parse(arguments, finish="length").fault is Fault.CUT_OFF


def test_words_that_were_cut_off_before_the_call_are_no_broken_call() -> None:
    assert parse(text="First, let me", finish="length").fault is Fault.CUT_OFF


def test_a_call_whose_arguments_are_whole_counts_though_the_reply_was_cut_off() -> None:
    assert parse(GOOD, finish="length") == ADDED


@pytest.mark.parametrize("path", ["/etc/passwd", "../add.py", ".git/config", "a//b", "a\nb", "\ud800"])
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    assert parse(json.dumps({"files": [{**FILE, "path": path}]})).fault is Fault.NOT_ALLOWED


def test_the_schema_is_one_strict_function() -> None:
    (tool,) = make().tools
    schema: Any = asdict(tool)
    function = schema["function"]
    assert (schema["type"], function["name"]) == ("function", "write_files")
    assert function["parameters"]["required"] == ["files"]
    assert function["parameters"]["properties"]["files"]["items"]["required"] == ["path", "content"]
