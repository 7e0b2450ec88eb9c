"""Changed replies of models, in every edit format: all of it or nothing, only files that may be edited, no crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from retrial import registry
from retrial.chat import Edit, Reply, ToolCall
from retrial.patches.git import check_name, encode
from retrial.protocols import EditFormat
from tests.fuzz.mutation import NAMES, changed_bytes, changed_lines, fuzz
from tests.support import edit_formats
from tests.support.edit_formats import read

FORMATS = registry.names("formats")
FILES = {
    "add.py": "def add(a, b):\n    pass\n\n\ndef neg(a):\n    pass\n",
    "pkg/doc.md": "# Title\n\n```python\nadd(1, 2)\n```\n",
    "crlf.go": "package pkg\r\n\r\nfunc A() {\r\n\treturn\r\n}\r\n",
    "open.txt": "no newline",
}
EDITS = (
    (Edit(path="add.py", content="def add(a, b):\n    return a + b\n\n\ndef neg(a):\n    return -a\n"),),
    (Edit(path="new.py", content="x = 1\n"), Edit(path="open.txt", content="still none")),
    (Edit(path="crlf.go", content="package pkg\n\nfunc A() {\n\tpanic(1)\n}\n"), Edit(path="add.py", content="x\n")),
)
WORDS = (
    "", "```", "```python", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "*** Begin Patch", "*** End Patch",
    "*** Update File: add.py", "*** Delete File: add.py", "*** Add File: new.py", "@@", "@@ -1,2 +1,2 @@", "...",
    "--- a/add.py", "+++ b/add.py", "--- /dev/null", "+    return a + b", "-    pass", " def add(a, b):", "<think>",
    *NAMES, *(f"*** Move to: {name}" for name in NAMES), *(f"+++ b/{name}" for name in NAMES),
)  # fmt: skip
TOKENS = (
    b'"',
    b"{",
    b"}",
    b"[",
    b"\\",
    b"\\ud800",
    b'"path": "/etc/passwd"',
    b"../add.py",
    b"null",
    b",",
    b"\xff",
    b"1e9",
)


def allowed(path: str) -> bool:
    return path in FILES or path == "new.py" or path in NAMES


def texts(change: Callable[[bytes], bytes], calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    return tuple(replace(call, arguments=change(call.arguments.encode()).decode(errors="replace")) for call in calls)


@pytest.mark.parametrize("name", FORMATS)
@fuzz(250)
@given(
    edits=st.sampled_from(EDITS),
    in_text=changed_lines(WORDS),
    in_calls=changed_bytes(TOKENS),
    finish=st.sampled_from(["stop", "length", "tool_calls"]),
)
def test_whatever_became_of_a_reply_it_is_all_or_nothing_and_only_what_is_allowed(
    name: str,
    edits: tuple[Edit, ...],
    in_text: Callable[[str], str],
    in_calls: Callable[[bytes], bytes],
    finish: str,
) -> None:
    form: EditFormat = registry.module("formats", name).make()
    whole = edit_formats.write(name, edits, {path: content.replace("\r\n", "\n") for path, content in FILES.items()})
    reply = Reply(text=in_text(whole.text), calls=texts(in_calls, whole.calls), finish=finish)
    note(repr(reply))
    found = read(form, reply, FILES, allowed)
    assert bool(found.problem) == (not found.edits)
    assert len({edit.path for edit in found.edits}) == len(found.edits)
    for edit in found.edits:
        assert allowed(edit.path)
        encode(check_name(edit.path))
