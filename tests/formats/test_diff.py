"""The format `diff`: SEARCH/REPLACE blocks, read as models write them; what is not certain goes back to the model."""

from __future__ import annotations

import pytest

from retrial.chat import Edit, Edits, Fault, Reply
from retrial.formats.diff import make
from tests.support import edit_formats
from tests.support.edit_formats import read

ADD = "def add(a, b):\n    pass\n\n\ndef half(a):\n    return a / 2\n"
ONE = {"add.py": ADD}
TWO = {"src/add.py": ADD, "src/sub.py": "def sub(a, b):\n    pass\n"}
DONE = ADD.replace("pass", "return a + b")
SEARCH = "<<<<<<< SEARCH\ndef add(a, b):\n    pass\n"
REPLACE = "def add(a, b):\n    return a + b\n>>>>>>> REPLACE\n"
BLOCK = SEARCH + "=======\n" + REPLACE
RST = "Title\n=======\n\nOld text.\n\nMore\n====\n"


def parse(text: str, files: dict[str, str] = ONE, finish: str = "stop") -> Edits:
    return read(make(), Reply(text=text, finish=finish), files, lambda path: True)


def contents(found: Edits) -> dict[str, str | None]:
    assert not found.problem
    return {edit.path: edit.content for edit in found.edits}


def block(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"add.py\n```python\n{BLOCK}```\n", id="path, fence, block"),
        pytest.param(f"add.py\n\n```python\n{BLOCK}```\n", id="a blank line between path and fence"),
        pytest.param(f"add.py\n{BLOCK}", id="no fence"),
        pytest.param(f"```python\nadd.py\n{BLOCK}```\n", id="the path inside the fence"),
        pytest.param(f"```python add.py\n{BLOCK}```\n", id="the path behind the fence"),
        pytest.param(f"```python:add.py\n{BLOCK}```\n", id="the path behind a colon"),
        pytest.param(f"```python\n# add.py\n{BLOCK}```\n", id="the path in a comment"),
        pytest.param(f"### `add.py`:\n~~~\n{BLOCK}~~~\n", id="the path in a heading"),
        pytest.param(f"1. **add.py**\n```\n{BLOCK}```\n", id="the path in a list"),
        pytest.param(f"In `add.py` we sum them:\n```\n{BLOCK}```\n", id="the path in a sentence"),
        pytest.param(f"./add.py\n```\n{BLOCK}```\n", id="a path from here"),
        pytest.param(f"path/to/add.py\n```\n{BLOCK}```\n", id="a path with folders that are not there"),
        pytest.param(f"```\n{BLOCK}```\n", id="no path, with a single file"),
        pytest.param(f"add.py\n<source>python\n{BLOCK}</source>\n", id="a tag in place of a fence"),
        pytest.param(f"<<<<<<< SEARCH add.py{BLOCK.removeprefix('<<<<<<< SEARCH')}", id="the path behind the marker"),
        pytest.param(f"add.py\n```\n{BLOCK}```\nRun it:\n```bash\npytest\n```\n", id="a command after it"),
        pytest.param(
            "1. Sum:\n\n   add.py\n   ```\n" + "".join(f"   {line}\n" for line in BLOCK.splitlines()),
            id="everything indented",
        ),
        pytest.param(f"add.py\n```\n{BLOCK}```\n".replace("\n", "\r\n"), id="CRLF"),
        pytest.param(f"add.py\n{BLOCK}".replace("<<<<<<<", "<<<<<").replace(">>>>>>>", ">>>>>"), id="shorter markers"),
        pytest.param(f"add.py\n{BLOCK}".replace("=======", "========"), id="a longer divider"),
        pytest.param(f"add.py\n{BLOCK}".replace("> REPLACE", ">> REPLACE"), id="a longer end"),
        pytest.param(f"add.py\n{BLOCK}".replace("SEARCH", "HEAD").replace("REPLACE", "new"), id="marks of a conflict"),
        pytest.param(f"add.py\n{BLOCK}".replace("SEARCH", "ORIGINAL").replace("REPLACE", "UPDATED"), id="ORIGINAL"),
        pytest.param(f"add.py\n{BLOCK}".replace(" SEARCH", "").replace(" REPLACE", ""), id="markers without words"),
        pytest.param(f"add.py\n```\n{BLOCK}", id="a fence that is never closed"),
        pytest.param(f"<think>\n{SEARCH}</think>\nadd.py\n{BLOCK}", id="half a block while thinking"),
        pytest.param(
            "add.py\n" + block("def half(a):\n", "def half(a):\n") + f"{BLOCK}", id="a block that changes nothing"
        ),
        pytest.param(f"add.py\n```\n{BLOCK}```\nOnce more:\n\nadd.py\n```\n{BLOCK}```\n", id="a block repeated"),
    ],
)
def test_a_block_is_read_with(text: str) -> None:
    assert contents(parse(text)) == {"add.py": DONE}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("I would return a + b.", Fault.NO_EDIT, id="no block at all"),
        pytest.param("add.py\n```\ndef add(a, b):\n    return a + b\n```\n", Fault.NO_EDIT, id="a whole file"),
        pytest.param(f"add.py\n{SEARCH}{REPLACE}", Fault.MALFORMED, id="no divider"),
        pytest.param(f"add.py\n{SEARCH}=======\nx\n```\n", Fault.MALFORMED, id="no end"),
        pytest.param(f"add.py\n{SEARCH}=======\nx\n{BLOCK}", Fault.MALFORMED, id="no end before the next block"),
        pytest.param(
            f"add.py\n{SEARCH}=======\nx\n{BLOCK}".replace("SEARCH", "HEAD").replace("REPLACE", ""),
            Fault.MALFORMED,
            id="no end before the next conflict",
        ),
        pytest.param(f"add.py\n```\n{BLOCK.partition('SEARCH')[2]}```\n", Fault.MALFORMED, id="no beginning"),
        pytest.param("add.py\n" + block("", "x = 1\n"), Fault.MALFORMED, id="no SEARCH lines for a file that has some"),
        pytest.param(
            "add.py\n" + block("def half(a):\n", "def half(a):\n"), Fault.MALFORMED, id="nothing that changes"
        ),
        pytest.param("add.py\n" + block("def plus(a, b):\n", "x\n"), Fault.NO_MATCH, id="lines that are not there"),
        pytest.param(f"other.py\n{BLOCK}", Fault.NO_MATCH, id="a file that is not in the chat"),
        pytest.param(f"/etc/passwd\n{BLOCK}", Fault.NO_MATCH, id="a file outside"),
    ],
)
def test_a_reply_is_refused_with(text: str, fault: Fault) -> None:
    found = parse(text)
    assert (found.fault, found.edits) == (fault, ())
    assert found.problem


def test_an_ambiguous_block_is_refused_and_says_where() -> None:
    found = parse("add.py\n" + block("x = 1\n", "x = 2\n"), {"add.py": "x = 1\ny = 1\nx = 1\n"})
    assert found.fault is Fault.AMBIGUOUS
    assert "lines 1, 3" in found.problem


def test_a_failed_block_is_quoted_with_the_nearest_lines() -> None:
    problem = parse("add.py\n" + block("def half(number):\n    return number / 2\n", "x\n")).problem
    assert "Block 1, for add.py" in problem
    assert "def half(a):" in problem


def test_one_bad_block_keeps_all_others_from_being_applied() -> None:
    found = parse(f"add.py\n{BLOCK}add.py\n" + block("nothing\n", "x\n"))
    assert found.edits == ()
    assert "1 of 2 blocks" in found.problem


def test_blocks_of_one_file_are_applied_in_order() -> None:
    second = block("    return a + b\n", "    return b + a\n")
    assert contents(parse(f"add.py\n{BLOCK}\nadd.py\n{second}")) == {"add.py": DONE.replace("a + b", "b + a")}


def test_a_block_without_a_name_is_for_the_file_of_the_one_before() -> None:
    files = {"a.py": "x = 1\ny = 1\n", "b.py": "y = 1\n"}
    text = "a.py\n" + block("x = 1\n", "x = 2\n") + "\nAnd then:\n" + block("y = 1\n", "y = 2\n")
    assert contents(parse(text, files)) == {"a.py": "x = 2\ny = 2\n"}


def test_a_block_without_a_name_is_for_the_only_file_that_has_its_lines() -> None:
    assert contents(parse(BLOCK, TWO)) == {"src/add.py": DONE}


def test_a_block_without_a_name_that_fits_two_files_is_refused() -> None:
    assert parse(block("x\n", "y\n"), {"a.py": "x\n", "b.py": "x\n"}).fault is Fault.NO_NAME


def test_a_sentence_about_another_file_does_not_mislead() -> None:
    assert contents(parse(f"Like sub in `src/sub.py`:\n{BLOCK}", TWO)) == {"src/add.py": DONE}


def test_a_block_named_for_the_wrong_file_is_refused_and_says_where_its_lines_are() -> None:
    found = parse(f"src/sub.py\n{BLOCK}", TWO)
    assert found.fault is Fault.NO_MATCH
    assert "are in src/add.py" in found.problem


def test_a_file_is_known_by_the_end_of_its_path() -> None:
    assert contents(parse(f"add.py\n{BLOCK}", TWO)) == {"src/add.py": DONE}


def test_two_files_are_two_edits() -> None:
    sub = block("    pass\n", "    return a - b\n")
    found = parse(f"src/add.py\n{BLOCK}src/sub.py\n{sub}", TWO)
    assert contents(found) == {"src/add.py": DONE, "src/sub.py": "def sub(a, b):\n    return a - b\n"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("src/new.py\n```\n" + block("", "x = 1\n") + "```\n", id="above the fence"),
        pytest.param("Create `src/new.py` for that:\n```\n" + block("\n", "x = 1\n") + "```\n", id="in a sentence"),
    ],
)
def test_a_new_file_is_a_block_without_search_lines_and_its_path(text: str) -> None:
    assert contents(parse(text, TWO)) == {"src/new.py": "x = 1\n"}


def test_a_new_file_in_another_folder_is_not_the_file_of_that_name_in_the_chat() -> None:
    found = parse("tests/add.py\n" + block("", "x = 1\n"), {"add.py": ADD})
    assert contents(found) == {"tests/add.py": "x = 1\n"}


def test_a_new_file_is_not_named_by_a_sentence_further_above() -> None:
    found = parse("It uses `os.path`.\n\nA new file:\n```\n" + block("", "x = 1\n") + "```\n", TWO)
    assert found.fault is Fault.NO_NAME


def test_a_new_file_can_be_edited_by_the_next_block() -> None:
    text = "new.py\n" + block("", "x = 1\n") + "new.py\n" + block("x = 1\n", "x = 2\n")
    assert contents(parse(text)) == {"new.py": "x = 2\n"}


def test_an_empty_file_is_filled() -> None:
    assert contents(parse("a.py\n" + block("", "x = 1\n"), {"a.py": ""})) == {"a.py": "x = 1\n"}


def test_a_file_can_be_emptied() -> None:
    assert contents(parse("a.py\n" + block("x = 1\n", ""), {"a.py": "x = 1\n"})) == {"a.py": ""}


@pytest.mark.parametrize(
    ("search", "replace", "new"),
    [
        pytest.param("Old text.\n", "New\n=======\n\nNew text.\n", "New\n=======\n\nNew text.\n", id="in REPLACE"),
        pytest.param("Title\n=======\n\nOld text.\n", "Gone.\n", "Gone.\n", id="in SEARCH"),
        pytest.param("Title\n=======\n\nOld text.\n", "Tale\n=======\n", "Tale\n=======\n", id="in both"),
        pytest.param("Old text.\n", "Sub\n=====\n", "Sub\n=====\n", id="that is shorter"),
        pytest.param("Title\n=======\n", "Heading\n=======\n", "Heading\n=======\n", id="that ends both"),
    ],
)
def test_a_heading_does_not_end_a_body(search: str, replace: str, new: str) -> None:
    found = parse("guide.rst\n" + block(search, replace), {"guide.rst": RST})
    assert contents(found) == {"guide.rst": RST.replace(search, new)}


@pytest.mark.parametrize("more", ["", "    return 3\n", "=======\n"])
def test_a_second_divider_is_no_line_of_the_file(more: str) -> None:
    found = parse("a.py\n" + block("x = 1\n", f"    x = 2\n=======\n{more}"), {"a.py": "y = 1\nx = 1\n"})
    assert (found.edits, found.fault) == ((), Fault.MALFORMED)
    assert "second line `=======`" in found.problem


def test_line_ends_of_the_file_are_kept() -> None:
    found = parse(f"add.py\n{BLOCK}", {"add.py": ADD.replace("\n", "\r\n")})
    assert contents(found) == {"add.py": DONE.replace("\n", "\r\n")}


def test_a_missing_last_newline_stays_missing() -> None:
    found = parse("a.py\n" + block("x = 1\n", "x = 2\n"), {"a.py": "y = 1\nx = 1"})
    assert contents(found) == {"a.py": "y = 1\nx = 2"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"add.py\n```\n{SEARCH}=======\ndef add(", id="inside a block"),
        pytest.param(f"add.py\n```\n{BLOCK}```\nadd.py\n```\n{SEARCH}", id="inside a second block"),
        pytest.param(f"add.py\n```\n{BLOCK}```\nadd.py\n```python\n", id="inside the next fence"),
        pytest.param("First I think about", id="before any block"),
    ],
)
def test_a_reply_is_cut_off(text: str) -> None:
    assert parse(text, finish="length").fault is Fault.CUT_OFF


def test_a_reply_cut_after_its_last_block_counts() -> None:
    assert contents(parse(f"add.py\n```\n{BLOCK}```\nThis adds", finish="length")) == {"add.py": DONE}


def test_the_example_in_the_prompt_can_be_read() -> None:
    files = {"path/of/file.py": "def area(width):\n    return width\n"}
    assert contents(parse(make().prompt, files)) == {
        "path/of/file.py": "def area(width, height):\n    return width * height\n"
    }


MARKERS = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(ADD, DONE, id="changed"),
        pytest.param(None, "x = 1\n", id="new"),
        pytest.param(None, "", id="new and empty"),
        pytest.param(ADD, "", id="emptied"),
        pytest.param("", ADD, id="filled"),
        pytest.param("x\n" * 50, "x\n" * 20 + "y\n" + "x\n" * 29, id="among lines that are all alike"),
        pytest.param(ADD, ADD + "\n# end\n", id="longer at its end"),
        pytest.param("a\nb", "a\nc", id="without a last newline"),
        pytest.param("x = 1\n", '"""\n```\nadd\n```\n"""\n', id="with fences"),
        pytest.param(RST, RST.replace("Old", "New"), id="with headings"),
        pytest.param(MARKERS, MARKERS.replace("b", "c"), id="with markers"),
        pytest.param("x = 1\n", MARKERS + MARKERS.replace("<", "<<"), id="new markers"),
        pytest.param("\n\n", "\nx\n\n", id="of blank lines"),
    ],
)
def test_what_is_rendered_is_read_as_it_was_meant(before: str | None, after: str) -> None:
    files = ONE if before is None else ONE | {"a.py": before}
    edits = (Edit(path="a.py", content=after), Edit(path="add.py", content=DONE))
    assert read(make(), edit_formats.write("diff", edits, files), files, lambda path: True).edits == edits
