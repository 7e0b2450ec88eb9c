"""What every edit format holds, whatever a model writes: all or nothing, only what is allowed, and never a crash."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from retrial import registry
from retrial.chat import Edit, Edits, Fault, Reply, ToolCall
from retrial.errors import PatchError
from retrial.patches.git import check_name
from retrial.protocols import EditFormat
from tests.conftest import PROJECT
from tests.support import edit_formats
from tests.support.edit_formats import read
from tests.tiers import TIER

FORMATS = registry.names("formats")
TEXT_FORMATS = [name for name in FORMATS if not registry.module("formats", name).make().tools]
FUNCTION_FORMATS = [name for name in FORMATS if name not in TEXT_FORMATS]
FILES = {
    "add.py": "def add(a, b):\n    pass\n",
    "pkg/doc.md": "# Title\n=======\n\n```python\nadd(1, 2)\n```\n\n```python\nadd(1, 2)\n```\n",
    "pkg/crlf.go": "package pkg\r\n\r\nfunc A() {\r\n\treturn\r\n}\r\n",
    "empty.py": "",
    "open.txt": "no newline",
}
LONGEST = 1_000_000 if TIER == "all" else 200_000
"""Characters of a reply."""
EXAMPLE = {"path/of/file.py": "def area(width):\n    return width\n"}
AREA = "def area(width, height):\n    return width * height\n"


@pytest.fixture(params=FORMATS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def form(name: str) -> EditFormat:
    return make(name)


def make(name: str) -> EditFormat:
    form: EditFormat = registry.module("formats", name).make()
    return form


def allowed(path: str) -> bool:
    return path in FILES or path in ("new.py", "pkg/new.py", "../add.py", "/etc/passwd", ".git/config")


def function(form: EditFormat) -> str:
    return form.tools[0].function.name if form.tools else "none"


PIECES = (
    "\n", "\n\n", " ", "    ", "\t", "\r\n", "\r", "\0", "\x0c", "\u2028", "é", "\ud800", "x", "pass", "return a + b",
    "```", "```diff\n", "```python\n", "````\n", "~~~\n", "  ```\n",
    "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "<<<<<<< HEAD\n", "==========\n",
    "--- a/add.py\n", "+++ b/add.py\n", "--- /dev/null\n", "+++ /dev/null\n", "+++ b/new.py\n", "--- a/../add.py\n",
    "diff --git a/add.py b/add.py\n", "new file mode 100644\n", "deleted file mode 100644\n", "rename from add.py\n",
    "rename to new.py\n", "@@", "@@ -1,2 +1,2 @@\n", "@@ -0,0 +1 @@\n", "\\ No newline at end of file\n",
    "*** Begin Patch\n", "*** End Patch\n", "*** Update File: add.py\n", "*** Update File: open.txt\n",
    "*** Add File: new.py\n", "*** Add File: /etc/passwd\n", "*** Delete File: add.py\n", "*** Move to: pkg/new.py\n",
    "*** Move to: .git/config\n", "*** End of File\n", "@@ def add\n", "...\n", " ...\n",
    "add.py\n", "pkg/doc.md\n", "empty.py\n", "new.py\n", "../add.py\n", "/etc/passwd\n", ".git/config\n",
    "`add.py`:\n", " def add(a, b):\n", "-    pass\n", "+    return a + b\n", "def add(a, b):\n", "    pass\n", "+",
    "-", "no newline\n", "-no newline\n", "<think>", "</think>",
)  # fmt: skip
TOKENS = (
    "{", "}", "[", "]", ",", ":", '"', "\\", "\n", '"files"', '"edits"', '"path"', '"content"', '"original_lines"',
    '"updated_lines"', '"add.py"', '"new.py"', '"../add.py"', '"open.txt"', '"no newline"', '"    pass"', "null",
    '{"files": [', '{"edits": [', '{"path": "add.py", "content": "x"}', '"\\ud800"', "{}", "[]", "1e999",
    '{"path": "add.py", "original_lines": "    pass", "updated_lines": "    x"}',
    '{"path": "/etc/passwd", "content": "x"}', '{"path": "new.py", "original_lines": [], "updated_lines": ["x"]}',
)  # fmt: skip

texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
arguments = st.lists(st.sampled_from(TOKENS), max_size=12).map("".join)
finishes = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_whatever_a_reply_says_it_is_all_or_nothing_and_only_what_is_allowed(name: str, data: st.DataObject) -> None:
    form = make(name)
    called = st.builds(ToolCall, name=st.sampled_from([function(form), "other", ""]), arguments=arguments)
    calls = data.draw(st.lists(called, max_size=3)) if form.tools else ()
    reply = Reply(text=data.draw(texts), calls=tuple(calls), finish=data.draw(finishes))
    holds(read(form, reply, FILES, allowed))


def holds(found: Edits) -> None:
    paths = [edit.path for edit in found.edits]
    assert bool(found.problem) == bool(found.fault) == (not paths)
    assert len(set(paths)) == len(paths)
    for path in paths:
        assert allowed(path)
        check_name(path)


lines = st.sampled_from(
    (
        "", " ", "x = 1", "    return x", "\treturn x", "é ü", "```", "```python", "````", "~~~", "=======",
        "==========", "<<<<<<< SEARCH", ">>>>>>> REPLACE", "@@", "@@ -1,2 +1,2 @@", "--- a/add.py", "+++ b/add.py",
        "-- a/add.py", "++ b/add.py", "-- i;", "++ i;", "diff --git a/x b/x", "*** End Patch",
        "*** Update File: add.py", "...", "+", "-", "\\ No newline at end of file", "add.py", "`open.txt`:",
        "# pkg/doc.md", "\x0c", "a\u2028b", "\rx", '"quoted\\"', "</source>", "Title",
    )
)  # fmt: skip
contents = st.lists(lines, max_size=8).map(lambda some: "".join(line + "\n" for line in some))


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, str], tuple[Edit, ...]]:
    """Files, and edits that change some of them or add others; a file without a last newline stays without one."""
    files, edits = {}, []
    for path in draw(
        st.lists(st.sampled_from(["add.py", "pkg/doc.md", "Makefile", "a/b c.txt"]), unique=True, min_size=1)
    ):
        before, after = draw(contents), draw(contents)
        if before and after and draw(st.booleans()):
            before, after = before[:-1], after[:-1]
        if draw(st.booleans()):
            files[path] = before
        elif not draw(st.booleans()):
            files[path] = before
            continue
        if files.get(path) != after:
            edits.append(Edit(path=path, content=after))
    return files, tuple(edits)


@pytest.mark.parametrize("name", FORMATS)
@given(history=histories())
def test_what_a_perfect_model_writes_is_what_is_read(
    name: str, history: tuple[dict[str, str], tuple[Edit, ...]]
) -> None:
    files, edits = history
    form = make(name)
    assume(edits)
    try:
        reply = edit_formats.write(name, edits, files)
    except ValueError:
        # What a format cannot say it must refuse to write; the test below holds what all of them can.
        return
    assert read(form, reply, files, lambda path: True) == Edits(edits=edits)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param({"add.py": "def add(a, b):\n    return a + b\n"}, id="one line"),
        pytest.param({"add.py": "x = 1\n"}, id="another file in its stead"),
        pytest.param({"new.py": "x = 1\n"}, id="a new file"),
        pytest.param({"pkg/new/deep.py": "x = 1\n\n\ny = 2\n"}, id="a new file in a new folder"),
        pytest.param({"empty.py": "x = 1\n"}, id="an empty file is filled"),
        pytest.param({"open.txt": "still no newline"}, id="a file without a last newline"),
        pytest.param({"pkg/doc.md": FILES["pkg/doc.md"].replace("2", "3")}, id="repeated lines, fences and headings"),
        pytest.param({"pkg/crlf.go": FILES["pkg/crlf.go"].replace("return", "panic(1)")}, id="CRLF"),
        pytest.param(
            {"add.py": "def add(a, b):\n    return a + b\n", "open.txt": "x", "new.py": "y\n"}, id="three files"
        ),
    ],
)
def test_every_format_can_say_what_models_do(name: str, edits: dict[str, str]) -> None:
    plain = tuple(Edit(path=path, content=content.replace("\r\n", "\n")) for path, content in edits.items())
    reply = edit_formats.write(name, plain, {path: content.replace("\r\n", "\n") for path, content in FILES.items()})
    found = read(make(name), reply, FILES, lambda path: True)
    assert {edit.path: edit.content for edit in found.edits} == edits


def test_a_file_that_is_to_go_goes_or_is_refused_when_it_is_written(name: str) -> None:
    edits = (Edit(path="add.py", content=None),)
    try:
        reply = edit_formats.write(name, edits, FILES)
    except ValueError:
        return
    assert read(make(name), reply, FILES, lambda path: True) == Edits(edits=edits)


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_the_example_in_the_prompt_is_itself_an_edit(name: str) -> None:
    form = make(name)
    (edit,) = read(form, Reply(text=form.prompt), EXAMPLE, lambda path: True).edits
    assert edit.path in EXAMPLE
    assert edit.content != EXAMPLE[edit.path]


def test_the_example_in_the_guide_is_read(name: str) -> None:
    guide = (PROJECT / "docs" / "edit-formats.md").read_text(encoding="utf-8")
    section = guide.partition(f"\n## `{name}`\n")[2].partition("\n## ")[0]
    example = re.search(r"^(`{3,})(?:json)?\n(.*?)^\1$", section, re.DOTALL | re.MULTILINE)
    assert example, f"docs/edit-formats.md has no example of {name}"
    form = make(name)
    calls = (ToolCall(name=function(form), arguments=example[2]),) if form.tools else ()
    found = read(form, Reply(text=example[2], calls=calls), {"area.py": EXAMPLE["path/of/file.py"]}, lambda path: True)
    assert found == Edits(edits=(Edit(path="area.py", content=AREA),))


def test_a_prompt_names_the_function_that_must_be_called(form: EditFormat) -> None:
    assert len(form.tools) <= 1
    assert not form.tools or function(form) in form.prompt


@pytest.mark.parametrize(
    ("text", "finish", "fault"),
    [
        pytest.param("", "stop", Fault.EMPTY, id="nothing"),
        pytest.param(" \r\n\t\n", "stop", Fault.EMPTY, id="blanks"),
        pytest.param("<think>I could add.</think>\n", "stop", Fault.EMPTY, id="only reasoning"),
        pytest.param("<think>I could", "length", Fault.CUT_OFF, id="reasoning that never ended"),
        pytest.param("", "length", Fault.CUT_OFF, id="nothing, at the limit"),
        pytest.param("First I will", "length", Fault.CUT_OFF, id="words, at the limit"),
    ],
)
def test_a_reply_that_says_nothing_has_a_name(form: EditFormat, text: str, finish: str, fault: Fault) -> None:
    found = read(form, Reply(text=text, finish=finish), FILES, allowed)
    assert (found.edits, found.fault) == ((), fault)
    assert found.problem


def test_prose_alone_is_told_what_to_write(form: EditFormat) -> None:
    found = read(form, Reply(text="I would simply add the two numbers."), FILES, allowed)
    assert found.fault is (Fault.BROKEN_CALL if form.tools else Fault.NO_EDIT)
    assert (function(form) if form.tools else "add.py") in found.problem


@pytest.mark.parametrize("path", ["/etc/passwd", "../add.py", "a/../../b", ".git/config", "a/.GIT/hooks/x", "a\0b"])
def test_a_path_that_leads_out_of_the_workspace_is_refused_though_it_is_allowed(name: str, path: str) -> None:
    with pytest.raises(PatchError):
        check_name(path)
    try:
        reply = edit_formats.write(name, (Edit(path=path, content="x = 1\n"),), {path: "y = 1\n"})
    except ValueError:
        return
    found = read(make(name), reply, {path: "y = 1\n"}, lambda path: True)
    assert (found.edits, found.fault) == ((), Fault.NOT_ALLOWED)


def test_one_file_that_may_not_be_edited_spoils_the_whole_reply(name: str) -> None:
    edits = (Edit(path="add.py", content="x = 1\n"), Edit(path="open.txt", content="y"))
    reply = edit_formats.write(name, edits, FILES)
    found = read(make(name), reply, FILES, lambda path: path == "add.py")
    assert (found.edits, found.fault) == ((), Fault.NOT_ALLOWED)
    assert "open.txt" in found.problem


JUNK = {
    "fences": "```\n",
    "ever new fences": "~~~\n```\n",
    "names and fences": "add.py\n```\nx\n",
    "searches": "<<<<<<< SEARCH\n",
    "dividers": "<<<<<<< SEARCH\nx\n" + "=======\n" * 50,
    "blocks": "add.py\n<<<<<<< SEARCH\n    pass\n=======\n    pass\n    pass\n>>>>>>> REPLACE\n",
    "hunks": "@@ -1,9 +1,9 @@\n+x\n",
    "headers": "--- a/add.py\n+++ b/add.py\n",
    "sections": "*** Update File: add.py\n@@\n-    pass\n+    pass\n+    pass\n",
    "new files": "*** Add File: new.py\n+x\n",
    "blanks": " ",
    "backticks": "`",
    "tildes": "~",
    "one header": "--- a/add.py" + " " * 999_988 + "x",
    "one header of git": "diff --git a/" + " b/" * 333_329,
    "one fence": "```" + " " * 999_990 + "`",
    "one fence of tildes": "~" * 999_999 + "`",
    "one section": "*** Update File: " + " " * 999_980 + "x",
}
JSON_JUNK = {"brackets": "[", "open strings": '{"files": ["', "backslashes": '"\\', "digits": "9"}


@pytest.mark.scaled
@pytest.mark.parametrize(
    ("name", "junk"),
    [
        pytest.param(name, text, id=f"{kind} for {name}")
        for names, junk in ((TEXT_FORMATS, JUNK), (FUNCTION_FORMATS, JSON_JUNK))
        for name in names
        for kind, text in junk.items()
    ],
)
def test_a_very_long_reply_of_junk_comes_to_an_end(name: str, junk: str) -> None:
    form = make(name)
    text = (junk * (LONGEST // len(junk) + 1))[:LONGEST]
    calls = (ToolCall(name=function(form), arguments=text, id="1"),) if form.tools else ()
    holds(read(form, Reply(text=text, calls=calls), FILES, allowed))
