"""The format `diff-fenced`: the blocks of `diff`, asked for with the path inside the fence."""

from __future__ import annotations

import pytest

from retrial.chat import Edit, Edits, Fault, Reply
from retrial.formats.diff_fenced import make
from tests.support import edit_formats
from tests.support.edit_formats import read

STUB = "def add(a, b):\n    pass\n"
DONE = "def add(a, b):\n    return a + b\n"
FILES = {"src/add.py": STUB, "src/sub.py": "def sub(a, b):\n    pass\n"}
BLOCK = "<<<<<<< SEARCH\ndef add(a, b):\n    pass\n=======\ndef add(a, b):\n    return a + b\n>>>>>>> REPLACE\n"
NEW = "<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n"
LAST_LINE = "<<<<<<< SEARCH\n    pass\n=======\n    return a - b\n>>>>>>> REPLACE\n"


def parse(text: str, files: dict[str, str] = FILES, finish: str = "stop") -> Edits:
    return read(make(), Reply(text=text, finish=finish), files, lambda path: True)


def contents(found: Edits) -> dict[str, str | None]:
    assert not found.problem
    return {edit.path: edit.content for edit in found.edits}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"```\nsrc/add.py\n{BLOCK}```\n", id="inside a bare fence"),
        pytest.param(f"```python\nsrc/add.py\n{BLOCK}```\n", id="inside a fence with a language"),
        pytest.param(f"```python\n\nsrc/add.py\n\n{BLOCK}```\n", id="between blank lines"),
        pytest.param(f"````\nsrc/add.py\n{BLOCK}````\n", id="inside a longer fence"),
        pytest.param(f"~~~\nsrc/add.py\n{BLOCK}~~~\n", id="inside tildes"),
        pytest.param(f"```python\n# src/add.py\n{BLOCK}```\n", id="in a comment"),
        pytest.param(f"```python\n**src/add.py**:\n{BLOCK}```\n", id="in bold"),
        pytest.param(f"```python\nadd.py\n{BLOCK}```\n", id="without its folder"),
        pytest.param(f"src/sub.py is fine.\n```python\nsrc/add.py\n{BLOCK}```\n", id="below a sentence about another"),
        pytest.param(f"src/add.py\n```python\n{BLOCK}```\n", id="above the fence after all"),
        pytest.param(f"   ```\n   src/add.py\n{BLOCK}   ```\n", id="inside an indented fence"),
        pytest.param(f"src/add.py\n{BLOCK}", id="without a fence"),
        pytest.param(f"```\nsrc/add.py\n{BLOCK}```\n".replace("\n", "\r\n"), id="with CRLF"),
    ],
)
def test_the_path_is_found(text: str) -> None:
    assert contents(parse(text)) == {"src/add.py": DONE}


def test_two_blocks_in_one_fence_each_have_their_path() -> None:
    found = parse(f"```\nsrc/add.py\n{BLOCK}\nsrc/sub.py\n{LAST_LINE}```\n")
    assert contents(found) == {"src/add.py": DONE, "src/sub.py": "def sub(a, b):\n    return a - b\n"}


def test_a_second_block_in_a_fence_is_for_the_same_file() -> None:
    again = LAST_LINE.replace("a - b", "b - a").replace("pass", "return a - b")
    found = parse(f"```\nsrc/sub.py\n{LAST_LINE}{again}```\n")
    assert contents(found) == {"src/sub.py": "def sub(a, b):\n    return b - a\n"}


def test_a_new_file_has_no_search_lines() -> None:
    assert contents(parse(f"```\nsrc/new.py\n{NEW}```\n")) == {"src/new.py": "x = 1\n"}


def test_a_path_that_may_not_be_edited_is_refused() -> None:
    reply = Reply(text=f"```\n../new.py\n{NEW}```\n")
    assert read(make(), reply, FILES, lambda path: path in FILES).fault is Fault.NOT_ALLOWED


def test_a_block_that_fits_several_files_needs_a_path() -> None:
    assert parse(f"```\n{LAST_LINE}```\n").fault is Fault.NO_NAME


def test_a_reply_that_is_cut_inside_a_block_is_cut_off() -> None:
    text = f"```\nsrc/add.py\n{BLOCK}```\n```\nsrc/sub.py\n<<<<<<< SEARCH\ndef"
    assert parse(text, finish="length").fault is Fault.CUT_OFF


def test_prose_alone_is_no_edit() -> None:
    assert parse("Add the numbers.").fault is Fault.NO_EDIT


def test_the_example_in_the_prompt_can_be_read() -> None:
    files = {"path/of/file.py": "def area(width):\n    return width\n"}
    new = "def area(width, height):\n    return width * height\n"
    assert contents(parse(make().prompt, files)) == {"path/of/file.py": new}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(STUB, DONE, id="changed"),
        pytest.param("", "x = 1\n", id="filled"),
        pytest.param("x = 1\n", "", id="emptied"),
        pytest.param("a\nb", "a\nc", id="without a last newline"),
        pytest.param("Title\n=======\n", "Title\n=======\n\n```\n>>>>>>> REPLACE\n```\n", id="with fences and markers"),
    ],
)
def test_what_is_rendered_is_read_as_it_was_meant(before: str, after: str) -> None:
    files = FILES | {"docs/a.md": before}
    edits = (Edit(path="docs/a.md", content=after), Edit(path="src/new.py", content="x = 1\n"))
    reply = edit_formats.write("diff-fenced", edits, files)
    assert parse(reply.text, files).edits == edits
    assert reply.text.startswith("```")
