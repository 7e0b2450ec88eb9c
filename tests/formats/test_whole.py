"""The format `whole`: tolerant of how models write, never guessing into the wrong file."""

from __future__ import annotations

import pytest

from retrial.chat import Edit, Edits, Fault, Reply
from retrial.formats.whole import make
from tests.support import edit_formats
from tests.support.edit_formats import read

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
        pytest.param(f"add.py\n```\n{CODE}```\n", id="alone above a bare fence"),
        pytest.param(f"add.py\n```python\n{CODE}```", id="alone above a fence with a language"),
        pytest.param(f"**add.py**\n\n```python\n{CODE}```\n", id="in bold, above a blank line"),
        pytest.param(f"### `add.py`:\n```py\n{CODE}```\n", id="in a heading"),
        pytest.param(f"1. add.py\n```\n{CODE}```\n", id="in a numbered list"),
        pytest.param(f"- File: add.py\n```\n{CODE}```\n", id="behind a label"),
        pytest.param(
            f"Here is the new content of `add.py`:\n```python\n{CODE}```\nRun it:\n```bash\npytest\n```\n",
            id="in a sentence, with a command below",
        ),
        pytest.param(f"```python add.py\n{CODE}```\n", id="behind the language"),
        pytest.param(f"```add.py\n{CODE}```\n", id="in place of the language"),
        pytest.param(f"```python:add.py\n{CODE}```\n", id="behind a colon"),
        pytest.param(f'```python title="add.py"\n{CODE}```\n', id="as a title"),
        pytest.param(f"path/to/add.py\n```\n{CODE}```\n", id="below folders that are not there"),
        pytest.param(f"./add.py\n~~~\n{CODE}~~~\n", id="from here, with tildes"),
        pytest.param(f"  add.py\n  ```python\n{CODE}  ```\n", id="above an indented fence"),
        pytest.param(
            "1. Sum:\n\n    add.py\n    ```\n    def add(a, b):\n        return a + b\n    ```\n",
            id="with everything indented",
        ),
        pytest.param(f"<think>add.py\n```\nno\n```\n</think>\nadd.py\n```\n{CODE}```\n", id="once more after thinking"),
        pytest.param(f"Here is the new file:\n```python\n{CODE}```\n", id="not at all, below a sentence"),
        pytest.param(f"Run:\n```bash\nls\n```\n```python\n{CODE}```\n", id="not at all, below a command"),
        pytest.param(
            f"```python\n{CODE}```\nFor example:\n```python\nadd(1, 2)\n```\n", id="not at all, above an example"
        ),
        pytest.param(
            f"add.py\n```python\n{CODE}```\nUse `add.py` like this:\n```python\nprint(add(1, 2))\n```\n",
            id="in a sentence about an example too",
        ),
        pytest.param(f"add.py\r\n```\r\n{CODE}```\r\n", id="with CRLF"),
        pytest.param(f"add.py\n```python\n{CODE}", id="above a fence that is never closed"),
        pytest.param(f"add.py\n```\n{CODE}```\nadd.py\n```\n{CODE}```\n", id="twice with the same content"),
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
    found = parse("add.py\n```\n```\n")
    assert found.fault is Fault.MALFORMED
    assert "empty" in found.problem


def test_a_new_file_may_be_empty() -> None:
    assert only(parse("pkg/__init__.py\n```\n```\n")) == ("pkg/__init__.py", "")


def test_the_body_is_taken_as_it_is_to_the_last_blank_line() -> None:
    assert only(parse("add.py\n```\n\nx = 1\n\n```\n"))[1] == "\nx = 1\n\n"


def test_an_indented_fence_in_a_docstring_does_not_end_the_file() -> None:
    body = 'def add(a, b):\n    """\n    ```\n    add(1, 2)\n    ```\n    """\n    return a + b\n'
    assert only(parse(f"add.py\n```python\n{body}```\n")) == ("add.py", body)


def test_a_document_may_have_bare_fences() -> None:
    body = "# Adding\n\n```\nadd(1, 2)\n```\n\nThat is all.\n"
    found = parse(f"README.md\n```\n{body}```\nadd.py\n```\n{CODE}```\n", ONE | {"README.md": "# Adding\n"})
    assert {edit.path: edit.content for edit in found.edits} == {"README.md": body, "add.py": CODE}


def test_a_file_ends_where_the_next_one_is_named_if_nobody_closed_it() -> None:
    found = parse(f"src/add.py\n```python\n{CODE}\nsrc/sub.py\n```python\nx = 1\n```\n", TWO)
    assert {edit.path: edit.content for edit in found.edits} == {"src/add.py": CODE, "src/sub.py": "x = 1\n"}


def test_a_command_below_a_sentence_about_a_file_is_not_its_content() -> None:
    assert parse("Run add.py:\n```bash\npython add.py\n```\n").fault is Fault.NO_NAME


@pytest.mark.parametrize("line", ["Run", "Output:", "E.g.:", "Input/Output:", "Here is the new file", "v3.11"])
def test_words_before_a_fence_are_no_path(line: str) -> None:
    found = parse(f"add.py\n```\n{CODE}```\n{line}\n```\n3\n```\n")
    assert [edit.path for edit in found.edits] == ["add.py"]


def test_a_first_line_that_only_looks_like_a_comment_names_no_file() -> None:
    assert only(parse("```css\n#menu.open {\n}\n```\n", {"a.css": "p {}\n"}))[0] == "a.css"


def test_a_block_of_blanks_never_empties_a_file() -> None:
    assert parse("add.py\n```\n   \n```\n").fault is Fault.MALFORMED


def test_a_lazy_comment_is_written_as_it_is() -> None:
    assert "existing code" in only(parse("add.py\n```\n# ... existing code ...\n```\n"))[1]


@pytest.mark.parametrize("name", ["add.py", "test_add.py"])
def test_a_comment_in_a_command_names_no_file(name: str) -> None:
    found = parse(f"add.py\n```python\n{CODE}```\nRun it:\n```bash\n# {name}\npytest\n```\n")
    assert only(found) == ("add.py", CODE)


def test_a_command_below_the_name_of_a_file_is_not_its_content() -> None:
    assert only(parse(f"add.py\n```python\n{CODE}```\nadd.py\n```sh\npython add.py\n```\n")) == ("add.py", CODE)


@pytest.mark.parametrize("fence", ["```", "````"])
def test_all_that_is_said_may_be_in_a_block_of_markdown(fence: str) -> None:
    text = f"{fence}markdown\nHere it is.\n\nadd.py\n```python\n{CODE}```\n{fence}\n"
    assert only(parse(text)) == ("add.py", CODE)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param("```diff\n-    pass\n+    return a + b\n```\n", id="a diff"),
        pytest.param("```\n--- a/add.py\n+++ b/add.py\n@@ -1 +1 @@\n-x\n+y\n```\n", id="a diff in a bare fence"),
        pytest.param("```\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n", id="a SEARCH/REPLACE block"),
    ],
)
def test_changes_are_no_whole_file(block: str) -> None:
    found = parse(f"add.py\n{block}")
    assert (found.edits, found.fault) == ((), Fault.MALFORMED)
    assert "complete" in found.problem


def test_a_file_that_holds_blocks_of_changes_can_be_written() -> None:
    body = "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n"
    assert only(parse(f"add.py\n```\n{body}z\n```\n", {"add.py": body}))[1] == body + "z\n"


def test_a_new_file_below_a_folder_is_not_another_one_of_that_name() -> None:
    found = parse("tests/add.py\n```\nx = 1\n```\n", TWO)
    assert [edit.path for edit in found.edits] == ["tests/add.py"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret.py", "src/../../x.py", "../src/add.py"])
def test_a_path_outside_is_read_so_that_it_can_be_refused(path: str) -> None:
    reply = Reply(text=f"{path}\n```\nx = 1\n```\n")
    assert read(make(), reply, TWO, lambda path: path in TWO).fault is Fault.NOT_ALLOWED


def test_line_ends_of_the_file_are_kept() -> None:
    assert only(parse(f"add.py\n```\n{CODE}```\n", {"add.py": "a\r\nb\r\n"}))[1] == CODE.replace("\n", "\r\n")


def test_a_missing_last_newline_stays_missing() -> None:
    assert only(parse(f"add.py\n```\n{CODE}```\n", {"add.py": "pass"}))[1] == CODE.removesuffix("\n")


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


def test_the_example_in_the_prompt_can_be_read() -> None:
    found = parse(make().prompt, {"path/of/file.py": "x\n"})
    assert only(found) == ("path/of/file.py", "the whole file, from its first line to its last\n")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(CODE, id="code"),
        pytest.param("\n\nx = 1\n\n\n", id="blank lines around"),
        pytest.param('"""\n```\nadd\n```\n"""\n', id="bare fences"),
        pytest.param("~~~\n````python\nx\n````\n~~~\n", id="long fences"),
        pytest.param("add.py\n```\nx\n```\n", id="the name of another file"),
        pytest.param("# add.py\nx = 1\n", id="the name of another file in a comment"),
        pytest.param("<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n", id="markers"),
    ],
)
@pytest.mark.parametrize("path", ["new.py", "docs/new.md"])
def test_what_is_rendered_is_read_as_it_was_meant(path: str, content: str) -> None:
    edits = (Edit(path=path, content=content), Edit(path="add.py", content=CODE))
    assert parse(edit_formats.write("whole", edits, ONE).text).edits == edits


def test_of_blocks_without_a_name_the_first_counts_where_none_is_more_alike() -> None:
    babble = "def add(a, b):\n    return a - b\n"
    found = parse(f"```python\n{CODE}```\nOr, in other words:\n```python\n{babble}```\n")
    assert only(found) == ("add.py", CODE)
