"""Changed prediction files: every line is a submission of a task that there is, or a problem with a place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, note
from hypothesis import strategies as st

from retrial.errors import PatchError, UsageError
from retrial.patches.parser import parse
from retrial.score import predictions_file
from tests.fuzz.mutation import changed_bytes, changed_lines, fuzz
from tests.support.odd_patches import PLAIN, sample

KNOWN = ("demo_python_add", "demo_go_é", "django__django-1")
ROWS: list[dict[str, Any]] = [
    {"instance_id": KNOWN[0], "model_name_or_path": "m", "model_patch": PLAIN},
    {"instance_id": KNOWN[1], "model_name_or_path": "m", "model_patch": ""},
    {
        "instance_id": KNOWN[2],
        "model_name_or_path": "m/é",
        "model_patch": sample("ok_rename"),
        "more": [1, {"a": None}],
    },
]
FILES = {
    ".jsonl": ("".join(json.dumps(row) + "\n" for row in ROWS), "\n".join(map(json.dumps, ROWS)) + "\n\n"),
    ".json": (json.dumps(ROWS, indent=1), json.dumps({row["instance_id"]: row for row in ROWS}), json.dumps(ROWS[0])),
}  # fmt: skip
WORDS = (
    "", "null", "[]", "{}", "[", "{", "}", ",", "\x00", "NaN", "1e999", '"\\ud800"', "[" * 5000, "9" * 5000, "\ufeff",
    json.dumps(ROWS[0]), json.dumps({**ROWS[0], "model_patch": "x"}), json.dumps({**ROWS[0], "model_patch": 5}),
    json.dumps({**ROWS[0], "instance_id": "none"}), '{"instance_id": "demo_python_add"}', '"instance_id": {},',
)  # fmt: skip
TOKENS = (
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\0",
    b'"',
    b"\\",
    b"\\ud83d",
    b"{",
    b"]",
    b"null",
    b"model_patch",
    b"\xe2\x80\xa8",
)


@pytest.mark.parametrize("suffix", sorted(FILES))
@fuzz(600)
@given(data=st.data(), line=changed_lines(WORDS), byte=changed_bytes(TOKENS))
def test_each_line_is_a_submission_or_a_problem(
    tmp_path_factory: pytest.TempPathFactory,
    suffix: str,
    data: st.DataObject,
    line: Callable[[str], str],
    byte: Callable[[bytes], bytes],
) -> None:
    whole = data.draw(st.sampled_from(FILES[suffix]))
    path: Path = tmp_path_factory.getbasetemp() / f"predictions{suffix}"
    path.write_bytes(byte(line(whole).encode(errors="surrogatepass")))
    sound(path)


@example(content=b"")
@example(content=b"[" * 100_000)
@example(content=b'{"instance_id": {}}')
@given(content=st.binary(max_size=60))
@fuzz(300)
def test_any_bytes_are_read_to_the_end(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    sound(path)


def sound(path: Path) -> None:
    note(repr(path.read_bytes()))
    imported = predictions_file.read(path, KNOWN)
    assert imported.submissions or imported.problems
    assert all(problem.startswith(str(path)) for problem in imported.problems)
    if imported.problems:
        with pytest.raises(UsageError):
            predictions_file.read_bundle(path, KNOWN)
    for instance_id, submission in imported.submissions.items():
        assert submission.instance_id == instance_id in KNOWN
        assert submission.model_name_or_path.strip()
        try:
            parse(submission.patch)
        except PatchError as error:
            assert str(error)
