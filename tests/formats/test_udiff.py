"""The format `udiff`: diffs as models write them, put where they say or nowhere."""

from __future__ import annotations

import pytest
from pytest import param

from retrial.chat import Edit, Edits, Fault, Reply
from retrial.formats.udiff import make
from tests.support.edit_formats import read

ADD = "def add(a, b):\n    pass\n\n\ndef sub(a, b):\n    return a - b\n"
ADDED = ADD.replace("pass", "return a + b")
ONE = {"add.py": ADD}
TWO = {"src/add.py": ADD, "src/sub.py": "def sub(a, b):\n    pass\n"}
HEAD = "--- a/add.py\n+++ b/add.py\n"
HUNK = " def add(a, b):\n-    pass\n+    return a + b\n"


def parse(text: str, files: dict[str, str] = ONE, finish: str = "stop") -> Edits:
    return read(make(), Reply(text=text, finish=finish), files, lambda path: True)


def fenced(text: str) -> str:
    return f"```diff\n{text}```\n"


def after(text: str, content: str) -> str | None:
    """What becomes of the only file."""
    found = parse(fenced(f"--- a/a.txt\n+++ b/a.txt\n{text}"), {"a.txt": content})
    assert not found.problem
    (edit,) = found.edits
    return edit.content


@pytest.mark.parametrize(
    "text",
    [
        param(fenced(f"{HEAD}@@ -1,3 +1,3 @@\n{HUNK}"), id="as git writes it"),
        param(fenced(f"{HEAD}@@ ... @@\n{HUNK}"), id="no numbers"),
        param(fenced(f"{HEAD}@@\n{HUNK}"), id="a bare @@"),
        param(fenced(f"{HEAD}@@ -70,2 +99,14 @@ class Sum:\n{HUNK}"), id="wrong numbers and a heading"),
        param(fenced(f"{HEAD}{HUNK}"), id="no @@ at all"),
        param(fenced(f"{HEAD}@@ @@\n@@ @@\n{HUNK}"), id="@@ twice"),
        param(f"```patch\n{HEAD}@@\n{HUNK}```", id="a patch fence"),
        param(f"```udiff\n{HEAD}@@\n{HUNK}```", id="a udiff fence"),
        param(f"~~~diff\n{HEAD}@@\n{HUNK}~~~", id="a fence of tildes"),
        param(f"```\n{HEAD}@@\n{HUNK}```", id="a fence that says nothing"),
        param(f"```diff add.py\n{HEAD}@@\n{HUNK}```", id="a fence with a name"),
        param(f"Here it is:\n\n```diff\n{HEAD}@@\n{HUNK}```\n\nIt adds.\n", id="prose around the fence"),
        param(f"I add:\n\n{HEAD}@@ @@\n{HUNK}\nThat is all.\n", id="no fence"),
        param(f"{HEAD}@@ @@\n{HUNK}\nChanges:\n- It adds.\n", id="no fence and a list after it"),
        param(f"```diff\n{HEAD}@@\n{HUNK}", id="a fence that is not closed"),
        param(
            "1. So:\n   ```diff\n" + "".join(f"   {line}\n" for line in f"{HEAD}@@\n{HUNK}".splitlines()) + "   ```\n",
            id="an indented fence with an indented diff",
        ),
        param(f"  ```diff\n{HEAD}@@\n{HUNK}  ```\n", id="an indented fence with a diff that is not"),
        param(fenced(f"--- add.py\n+++ add.py\n@@\n{HUNK}"), id="names without a/ and b/"),
        param(fenced(f"--- ./add.py\n+++ ./add.py\n@@\n{HUNK}"), id="names with ./"),
        param(fenced(f"--- `add.py`\n+++ `add.py`\n@@\n{HUNK}"), id="names in backticks"),
        param(fenced(f'--- "a/add.py"\n+++ "b/add.py"\n@@\n{HUNK}'), id="names in quotes"),
        param(fenced(f"--- path/to/add.py\n+++ path/to/add.py\n@@\n{HUNK}"), id="a folder that is not there"),
        param(fenced(f"--- add.py.orig\n+++ add.py\n@@\n{HUNK}"), id="the old name is made up"),
        param(fenced(f"--- add.py\t2024-01-01 10:00:00\n+++ add.py\t2024-01-02\n@@\n{HUNK}"), id="times after a tab"),
        param(fenced(f"--- add.py  2024-01-01 10:00\n+++ add.py  2024-01-02\n@@\n{HUNK}"), id="times after blanks"),
        param(fenced(f"--- add.py\n@@\n{HUNK}"), id="only the old name"),
        param(fenced(f"+++ b/add.py\n@@\n{HUNK}"), id="only the new name"),
        param(fenced(f"@@ -1 +1 @@\n{HUNK}"), id="no name and a single file"),
        param(fenced(HUNK), id="signs alone and a single file"),
        param(fenced(f"diff --git a/add.py b/add.py\nindex 12ab..34cd 100644\n{HEAD}@@\n{HUNK}"), id="git's header"),
        param(fenced(f"Index: add.py\n=====\n{HEAD}@@\n{HUNK}"), id="an index line"),
        param(f"{fenced(f'{HEAD}@@{chr(10)}{HUNK}')}\nAgain:\n{fenced(f'{HEAD}@@{chr(10)}{HUNK}')}", id="said twice"),
        param(f"<think>{fenced('--- a/x')}</think>{fenced(f'{HEAD}@@{chr(10)}{HUNK}')}", id="reasoning before it"),
        param(fenced(f"{HEAD}@@\n{HUNK}\n\n\n"), id="blank lines after the hunk"),
        param(fenced(f"{HEAD}@@\n{HUNK}\n\n def sub(a, b):\n"), id="blank lines that stay without their blank"),
        param(fenced(f"{HEAD}@@\n+    return a + b\n-    pass\n"), id="what comes before what goes"),
        param(fenced(f"{HEAD}@@\n" + HUNK.replace(":\n", ":  \n", 1)), id="blanks at the end of a line that stays"),
        param(fenced(f"{HEAD}@@\n{HUNK}").replace("\n", "\r\n"), id="CRLF in the reply"),
    ],
)
def test_a_diff_is_read_however_it_is_written(text: str) -> None:
    assert parse(text) == Edits(edits=(Edit(path="add.py", content=ADDED),))


@pytest.mark.parametrize(
    ("hunks", "before", "expected"),
    [
        param("@@\n a\n-b\n", "a\nb\n", "a\n", id="the last line goes and leaves no empty one"),
        param("@@\n-a\n-b\n", "a\nb\n", "", id="all lines go"),
        param("@@\n a\n-b\n+c\n", "\ta\n\tb\n", "\ta\n\tc\n", id="an indentation that the diff lacks throughout"),
        param("@@\n+a\n+b\n", "", "a\nb\n", id="an empty file is filled"),
        param("@@\n+a\n", "\n", "a\n", id="a file of one blank line is filled"),
        param("@@\n a\n+b\n", "a", "a\nb", id="a missing final newline stays missing"),
        param("@@\n-a\n\\ No newline at end of file\n+a\n", "a", "a\n", id="a final newline is added"),
        param("@@\n-a\n+a\n\\ No newline at end of file\n", "a\n", "a", id="a final newline is taken away"),
        param("@@\n-a\n+b\n\\ No newline at end of file\n", "a\nx\n", "b\nx\n", id="an end that is not there"),
        param("@@\n-a\n+b\n@@\n-c\n+d\n", "a\nx\nc\n", "b\nx\nd\n", id="two hunks"),
        param("@@\n-c\n+d\n@@\n-a\n+b\n", "a\nx\nc\n", "b\nx\nd\n", id="two hunks out of order"),
        param("@@\n-a\n+b\n...\n-c\n+d\n", "a\nx\nc\n", "b\nx\nd\n", id="an ellipsis between two places"),
        param("@@\n-a\n+b\n ...\n-c\n+d\n", "a\nx\nc\n", "b\nx\nd\n", id="an ellipsis that has its blank"),
        param("@@\n x\n--- i;\n+++ i;\n", "x\n-- i;\n", "x\n++ i;\n", id="a removed -- and an added ++"),
        param("@@\n--- drop it\n x\n", "-- drop it\nx\n", "x\n", id="a removed comment of two dashes"),
        param(
            "@@ -1,2 +1,2 @@\n x\n--- a/old.txt\n+++ b/new.txt\n",
            "x\n-- a/old.txt\n",
            "x\n++ b/new.txt\n",
            id="lines that look like a header, inside what the numbers count",
        ),
        param("@@\n \t```\n-x\n+y\n \t```\n", "\t```\nx\n\t```\n", "\t```\ny\n\t```\n", id="fences in the file"),
        param(
            "@@\n\tif x {\n-\t\tno()\n+\t\tyes()\n\t}\n",
            "\tif x {\n\t\tno()\n\t}\n",
            "\tif x {\n\t\tyes()\n\t}\n",
            id="tabs",
        ),
    ],
)
def test_lines_change_as_the_hunks_say(hunks: str, before: str, expected: str) -> None:
    assert after(hunks, before) == expected


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        param("I would add the numbers.", Fault.NO_EDIT, "```diff", id="only prose"),
        param(
            "```python\ndef add(a, b):\n    return a + b\n```\n", Fault.NO_EDIT, "add.py", id="code instead of a diff"
        ),
        param("```diff", Fault.NO_EDIT, "diff", id="a fence as the last line"),
        param(fenced(HEAD), Fault.MALFORMED, "no hunk", id="a header without a hunk"),
        param(fenced(f"{HEAD}@@\n+x = 1\n"), Fault.MALFORMED, "does not say where", id="only new lines"),
        param(fenced(f"{HEAD}@@\n def add(a, b):\n     pass\n"), Fault.MALFORMED, "changes nothing", id="no signs"),
        param(fenced(f"{HEAD}@@\n-def add(a, b):\n+x\npass\n"), Fault.MALFORMED, "pass", id="a line without a sign"),
        param(
            fenced(f"{HEAD}@@\n def plus(a, b):\n-    pass\n+    return 1\n"),
            Fault.NO_MATCH,
            "add(a, b)",
            id="wrong context",
        ),
        param(
            f"{HEAD}@@\n-    pass\n+    x\ndef sub(a, b):\n-    return a - b\n+    y\n",
            Fault.MALFORMED,
            "def sub",
            id="a line without a sign, without a fence",
        ),
        param(fenced(f"{HEAD}@@\n-    pass\n+    x\n\\section{{One}}\n"), Fault.MALFORMED, "section", id="a backslash"),
        param(fenced(f"{HEAD}@@\n-    pas\n+    return 1\n"), Fault.NO_MATCH, "not in the file", id="half a line"),
        param(fenced(f"--- a/add.py\n+++ b/sub.py\n@@\n{HUNK}"), Fault.MALFORMED, "two files", id="two names"),
        param(
            fenced(f"--- a/other.py\n+++ b/other.py\n@@\n{HUNK}"), Fault.NOT_ALLOWED, "other.py", id="an unknown file"
        ),
        param(
            fenced("--- /dev/null\n+++ b/add.py\n@@\n+x\n"),
            Fault.MALFORMED,
            "there already",
            id="a new file that is there",
        ),
        param(fenced("--- a/x.py\n+++ /dev/null\n"), Fault.NOT_ALLOWED, "x.py", id="a file to go that is not there"),
        param(fenced(f"--- /dev/null\n+++ /dev/null\n@@\n{HUNK}"), Fault.NO_NAME, "PATH", id="from nowhere to nowhere"),
        param(
            fenced("diff --git a/add.py b/new.py\ncopy from add.py\ncopy to new.py\n"),
            Fault.MALFORMED,
            "new.py",
            id="a copy",
        ),
        param(
            fenced("diff --git a/add.py b/add.py\nindex 1..2\nBinary files a/add.py and b/add.py differ\n"),
            Fault.MALFORMED,
            "binary",
            id="binary data",
        ),
        param(fenced("--- a/../x\n+++ b/../x\n@@\n+x\n"), Fault.NOT_ALLOWED, "x", id="outside"),
        param(fenced("--- /dev/null\n+++ b/../x.py\n@@\n+x\n"), Fault.NOT_ALLOWED, "../x.py", id="a new file outside"),
    ],
)
def test_what_cannot_be_done_is_said(text: str, fault: Fault, words: str) -> None:
    found = parse(text)
    assert (found.edits, found.fault) == ((), fault)
    assert words in found.problem


def test_a_hunk_that_fits_in_two_places_is_put_in_none() -> None:
    long = "    total = a_rather_long_name + another_rather_long_name\n"
    found = parse(fenced(f"{HEAD}@@\n-{long}+    total = 0\n"), {"add.py": f"def f():\n{long}\ndef g():\n{long}"})
    assert (found.edits, found.fault) == ((), Fault.AMBIGUOUS)
    assert "2, 5" in found.problem


def test_a_diff_without_a_name_needs_a_single_file() -> None:
    assert parse(fenced(f"@@\n{HUNK}"), TWO).fault is Fault.NO_NAME


def test_several_files_in_one_block_are_all_changed() -> None:
    text = "--- a/src/{0}.py\n+++ b/src/{0}.py\n@@\n def {0}(a, b):\n-    pass\n+    return 1\n"
    found = parse(fenced(text.format("add") + text.format("sub")), TWO)
    assert {edit.path for edit in found.edits} == {"src/add.py", "src/sub.py"}


def test_several_files_without_a_line_of_at_signs_are_all_changed() -> None:
    text = "--- a/src/{0}.py\n+++ b/src/{0}.py\n def {0}(a, b):\n-    pass\n+    return 1\n"
    assert len(parse(fenced(text.format("add") + text.format("sub")), TWO).edits) == 2


def test_one_hunk_that_does_not_fit_leaves_everything_as_it_is() -> None:
    found = parse(fenced(f"{HEAD}@@\n{HUNK}@@\n-    nothing like it\n+    x\n"))
    assert found.edits == ()
    assert "hunk 2 of 2 for add.py" in found.problem


def test_a_new_file_comes_from_nowhere() -> None:
    found = parse(fenced("--- /dev/null\n+++ b/src/new.py\n@@ -0,0 +1,2 @@\n+x = 1\n+\n"))
    assert found.edits == (Edit(path="src/new.py", content="x = 1\n\n"),)


def test_a_new_empty_file_needs_no_hunk() -> None:
    found = parse(fenced("diff --git a/pkg/__init__.py b/pkg/__init__.py\nnew file mode 100644\nindex 0..e69de29\n"))
    assert found.edits == (Edit(path="pkg/__init__.py", content=""),)


def test_a_file_that_goes_goes_nowhere() -> None:
    assert parse(fenced("--- a/add.py\n+++ /dev/null\n@@\n-def add(a, b):\n")).edits == (
        Edit(path="add.py", content=None),
    )


def test_a_rename_is_the_old_file_gone_and_the_new_one_there() -> None:
    header = "diff --git a/add.py b/plus.py\nsimilarity index 90%\nrename from add.py\nrename to plus.py\n"
    found = parse(fenced(f"{header}--- a/add.py\n+++ b/plus.py\n@@\n{HUNK}"))
    assert found.edits == (Edit(path="add.py", content=None), Edit(path="plus.py", content=ADDED))


def test_a_rename_over_another_file_is_refused() -> None:
    header = "diff --git a/src/add.py b/src/sub.py\nrename from src/add.py\nrename to src/sub.py\n"
    assert "there already" in parse(fenced(header), TWO).problem


def test_a_folder_named_a_is_not_taken_for_a_prefix() -> None:
    files = {"a/add.py": ADD, "add.py": "x = 1\n"}
    found = parse(fenced(f"--- a/add.py\n+++ a/add.py\n@@\n{HUNK}"), files)
    assert [edit.path for edit in found.edits] == ["a/add.py"]


def test_two_folders_that_are_not_there_are_one_file() -> None:
    found = parse(fenced(f"--- old/src/add.py\n+++ new/src/add.py\n@@\n{HUNK}"), TWO)
    assert found.edits == (Edit(path="src/add.py", content=ADDED),)


def test_a_file_and_one_of_its_name_elsewhere_are_two() -> None:
    assert "two files" in parse(fenced(f"--- a/add.py\n+++ b/lib/add.py\n@@\n{HUNK}")).problem


def test_a_change_of_mode_alone_is_no_edit() -> None:
    text = "diff --git a/add.py b/add.py\nold mode 100644\nnew mode 100755\n"
    assert parse(fenced(text)).fault is Fault.NO_EDIT


@pytest.mark.parametrize("text", [f"```diff\n{HEAD}@@\n{HUNK}", f"So:\n{HEAD}@@\n{HUNK}", "I will now"])
def test_a_diff_that_was_cut_off_is_not_half_applied(text: str) -> None:
    assert parse(text, finish="length").fault is Fault.CUT_OFF


@pytest.mark.parametrize("words", ["This adds the", "Changes:\n- This adds the"])
def test_words_that_were_cut_off_after_the_diff_do_no_harm(words: str) -> None:
    assert len(parse(fenced(f"{HEAD}@@\n{HUNK}") + words, finish="length").edits) == 1


def test_line_ends_stay_as_the_file_has_them() -> None:
    found = parse(fenced(f"{HEAD}@@\n{HUNK}"), {"add.py": ADD.replace("\n", "\r\n")})
    assert found.edits == (Edit(path="add.py", content=ADDED.replace("\n", "\r\n")),)
