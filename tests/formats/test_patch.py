"""The format `patch`: sections of files, places named by what stands there."""

from __future__ import annotations

import pytest
from pytest import param

from retrial.chat import Edit, Edits, Fault, Reply
from retrial.formats.patch import make
from tests.support.edit_formats import read

ADD = "def add(a, b):\n    pass\n\n\ndef sub(a, b):\n    return a - b\n"
ADDED = ADD.replace("pass", "return a + b")
ONE = {"add.py": ADD}
BEGIN, END = "*** Begin Patch\n", "*** End Patch\n"
UPDATE = "*** Update File: add.py\n@@\n def add(a, b):\n-    pass\n+    return a + b\n"
TWICE = "class A:\n    def run(self):\n        return 0\n\nclass B:\n    def run(self):\n        return 0\n"


def parse(text: str, files: dict[str, str] = ONE, finish: str = "stop") -> Edits:
    return read(make(), Reply(text=text, finish=finish), files, lambda path: True)


def patch(text: str) -> str:
    return f"{BEGIN}{text}{END}"


@pytest.mark.parametrize(
    "text",
    [
        param(patch(UPDATE), id="as asked for"),
        param(f"I add the numbers.\n\n{patch(UPDATE)}\nThat is all.\n", id="prose around it"),
        param(f"```\n{patch(UPDATE)}```\n", id="a fence"),
        param(f"Here:\n```patch\n{patch(UPDATE)}```\n", id="a patch fence"),
        param(f"apply_patch <<'EOF'\n{patch(UPDATE)}EOF\n", id="a shell command"),
        param(UPDATE + END, id="no beginning"),
        param(BEGIN + UPDATE, id="no end"),
        param(UPDATE, id="neither beginning nor end"),
        param(f"{UPDATE}\nThis adds the numbers:\n- both of them\n", id="no end, and prose with a list"),
        param(f"```diff\n{UPDATE}```\n", id="no end, and a fence"),
        param("  ```diff\n" + "".join(f"  {line}\n" for line in patch(UPDATE).splitlines()) + "  ```\n", id="indented"),
        param(patch(UPDATE.replace("@@\n", "")), id="no @@"),
        param(patch(UPDATE.replace("@@", "@@ def add(a, b):")), id="the scope is the first line too"),
        param(patch(UPDATE.replace("@@", "@@ class Sum:")), id="a scope that is not there and not needed"),
        param(patch(UPDATE.replace("@@", "@@ -1,2 +1,2 @@")), id="line numbers"),
        param(patch(UPDATE.replace("File: add.py", "File: `./add.py`  ")), id="a decorated path"),
        param(patch(UPDATE.replace("add.py", "path/to/add.py")), id="a folder that is not there"),
        param(patch(UPDATE.replace("b):\n", "b):   \n", 1)), id="blanks at the end of a line that stays"),
        param(patch(UPDATE + "\n\n def sub(a, b):\n"), id="blank lines that stay without their blank"),
        param(patch(UPDATE + "\n\n"), id="blank lines after the hunk"),
        param(patch(UPDATE + "*** End of File\n"), id="an end of file that it is not"),
        param(patch(UPDATE) + patch(UPDATE), id="said twice"),
        param(patch(UPDATE).replace("\n", "\r\n"), id="CRLF in the reply"),
    ],
)
def test_a_patch_is_read_however_it_is_written(text: str) -> None:
    assert parse(text) == Edits(edits=(Edit(path="add.py", content=ADDED),))


@pytest.mark.parametrize(
    ("hunks", "before", "expected"),
    [
        param("@@ class B:\n@@ def run(self):\n-        return 0\n+        return 1\n", TWICE, "B", id="nested scopes"),
        param("@@ class A\n-        return 0\n+        return 1\n", TWICE, "A", id="a part of the scope's line"),
        param(
            "@@ class B:\n     def run(self):\n-        return 0\n+        return 1\n",
            TWICE,
            "B",
            id="scope and context",
        ),
        param("@@\n-        return 0\n+        return 1\n*** End of File\n", TWICE, "B", id="the end of the file"),
    ],
)
def test_a_scope_says_which_of_two_places_is_meant(hunks: str, before: str, expected: str) -> None:
    (edit,) = parse(patch(f"*** Update File: a.py\n{hunks}"), {"a.py": before}).edits
    head, tail = before.split("class B:")
    parts = {"A": (head.replace("0", "1"), tail), "B": (head, tail.replace("0", "1"))}
    assert edit.content == "class B:".join(parts[expected])


@pytest.mark.parametrize(
    ("hunks", "before", "expected"),
    [
        param("@@\n-a\n+b\n@@\n-c\n+d\n", "a\nx\nc\n", "b\nx\nd\n", id="two hunks"),
        param("@@\n-c\n+d\n@@\n-a\n+b\n", "a\nx\nc\n", "b\nx\nd\n", id="two hunks out of order"),
        param("@@\n a\n-b\n", "a\nb\n", "a\n", id="the last line goes"),
        param("@@\n-a\n", "a\n", "", id="all lines go"),
        param("@@\n+a\n", "", "a\n", id="an empty file is filled"),
        param("@@\n+b\n*** End of File\n", "a\n", "a\nb\n", id="lines are added at the end"),
        param("@@\n a\n+b\n", "a", "a\nb", id="a missing final newline stays missing"),
        param("@@\n a\n-b\n+c\n", "\ta\n\tb\n", "\ta\n\tc\n", id="an indentation that the patch lacks throughout"),
        param("@@\n-*** End Patch\n+*** End of File\n", "*** End Patch\n", "*** End of File\n", id="signs in the file"),
    ],
)
def test_lines_change_as_the_hunks_say(hunks: str, before: str, expected: str) -> None:
    found = parse(patch(f"*** Update File: a.txt\n{hunks}"), {"a.txt": before})
    assert found == Edits(edits=(Edit(path="a.txt", content=expected),))


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        param("I would add the numbers.", Fault.NO_EDIT, "*** Begin Patch", id="only prose"),
        param(BEGIN + END, Fault.NO_EDIT, "add.py", id="an empty patch"),
        param(patch("*** Update File: add.py\n"), Fault.MALFORMED, "no hunk", id="an empty section"),
        param(patch(UPDATE + "return\n"), Fault.MALFORMED, "return", id="a line without a sign"),
        param(
            UPDATE + "def sub(a, b):\n-    return a - b\n+    y\n",
            Fault.MALFORMED,
            "def sub",
            id="the same, with no end",
        ),
        param(patch("*** Update File: add.py\n@@\n+x\n"), Fault.MALFORMED, "does not say where", id="only new lines"),
        param(patch("*** Update File: add.py\n@@ def add\n+x\n"), Fault.MALFORMED, "where", id="only a scope"),
        param(patch("*** Update File: add.py\n@@\n-    no\n+x\n"), Fault.NO_MATCH, "not in the file", id="wrong lines"),
        param(patch("*** Update File: b.py\n@@\n-x\n+y\n"), Fault.NOT_ALLOWED, "b.py", id="an unknown file"),
        param(patch("*** Add File: add.py\n+x\n"), Fault.MALFORMED, "there already", id="a new file that is there"),
        param(patch("*** Add File: b.py\n+x\ny\n"), Fault.MALFORMED, "y", id="a new file's line without its plus"),
        param(patch("*** Delete File: b.py\n"), Fault.NOT_ALLOWED, "b.py", id="a file to go that is not there"),
        param(patch("*** Delete File: add.py\n-x\n"), Fault.MALFORMED, "-x", id="lines below a file to go"),
        param(patch("*** Rename File: add.py\n"), Fault.MALFORMED, "Rename", id="a verb that is not known"),
        param(patch("*** Add File: ../b.py\n+x\n"), Fault.NOT_ALLOWED, "../b.py", id="outside"),
    ],
)
def test_what_cannot_be_done_is_said(text: str, fault: Fault, words: str) -> None:
    found = parse(text)
    assert (found.edits, found.fault) == ((), fault)
    assert words in found.problem


@pytest.mark.parametrize("scope", ["@@", "@@ def run", "@@ class C"])
def test_a_hunk_that_fits_in_two_places_is_put_in_none(scope: str) -> None:
    text = patch(f"*** Update File: a.py\n{scope}\n-        return 0\n+        return 1\n")
    assert parse(text, {"a.py": TWICE}).fault is Fault.AMBIGUOUS


def test_a_file_is_added_changed_moved_and_deleted_in_one_patch() -> None:
    sections = "*** Add File: new/x.py\n+x = 1\n\n+y = 2\n*** Delete File: old.py\n"
    moved = UPDATE.replace("@@", "*** Move to: plus.py\n@@")
    found = parse(patch(sections + moved), {**ONE, "old.py": "z\n"})
    assert {edit.path: edit.content for edit in found.edits} == {
        "new/x.py": "x = 1\n\ny = 2\n",
        "old.py": None,
        "add.py": None,
        "plus.py": ADDED,
    }


def test_a_file_may_be_moved_as_it_is() -> None:
    found = parse(patch("*** Update File: add.py\n*** Move to: plus.py\n"))
    assert found.edits == (Edit(path="add.py", content=None), Edit(path="plus.py", content=ADD))


def test_two_sections_of_one_file_are_one_edit() -> None:
    second = "*** Update File: add.py\n@@\n-    return a - b\n+    return a\n"
    found = parse(patch(UPDATE + second))
    assert found.edits == (Edit(path="add.py", content=ADDED.replace("a - b", "a")),)


def test_a_section_that_does_not_fit_leaves_everything_as_it_is() -> None:
    found = parse(patch(UPDATE + "*** Delete File: b.py\n"))
    assert (found.edits, found.fault) == ((), Fault.NOT_ALLOWED)


@pytest.mark.parametrize("text", [BEGIN + UPDATE, UPDATE, patch(UPDATE) + BEGIN + UPDATE, "I will now"])
def test_a_patch_that_was_cut_off_is_not_half_applied(text: str) -> None:
    assert parse(text, finish="length").fault is Fault.CUT_OFF


def test_words_that_were_cut_off_after_the_patch_do_no_harm() -> None:
    assert len(parse(patch(UPDATE) + "This adds the", finish="length").edits) == 1


def test_line_ends_stay_as_the_file_has_them() -> None:
    found = parse(patch(UPDATE), {"add.py": ADD.replace("\n", "\r\n")})
    assert found.edits == (Edit(path="add.py", content=ADDED.replace("\n", "\r\n")),)
