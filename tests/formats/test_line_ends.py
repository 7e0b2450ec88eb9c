"""What nobody sees of a file stays as it is: the ends of its lines, and a byte order mark."""

from __future__ import annotations

import pytest

from retrial.chat import Reply
from retrial.formats import diff, read, whole

BLOCK = "a.py\n<<<<<<< SEARCH\none\ntwo\n=======\none\n2\nmore\n>>>>>>> REPLACE\n"


def edited(before: str, text: str = BLOCK) -> str | None:
    form = diff.make() if "SEARCH" in text else whole.make()
    (edit,) = read(form, Reply(text=text), {"a.py": before}).edits
    return edit.content


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("one\ntwo\nthree\n", "one\n2\nmore\nthree\n", id="of Unix"),
        pytest.param("one\r\ntwo\r\nthree\r\n", "one\r\n2\r\nmore\r\nthree\r\n", id="of Windows"),
        pytest.param("one\r\ntwo\r\nthree", "one\r\n2\r\nmore\r\nthree", id="of Windows, the last one open"),
        pytest.param("one\ntwo\r\nthree\r\n", "one\n2\r\nmore\r\nthree\r\n", id="mostly of Windows"),
        pytest.param("one\r\ntwo\nthree\n", "one\r\n2\nmore\nthree\n", id="mostly of Unix"),
    ],
)
def test_lines_that_stay_end_as_they_did_and_new_ones_as_most_do(before: str, after: str) -> None:
    assert edited(before) == after


def test_a_byte_order_mark_hides_no_line_and_stays() -> None:
    assert edited("\ufeffone\ntwo\n") == "\ufeffone\n2\nmore\n"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_whole_file_has_the_mark_once_whether_a_model_writes_it_or_not(mark: str) -> None:
    assert edited("\ufeffone\n", f"a.py\n```\n{mark}two\n```\n") == "\ufefftwo\n"
