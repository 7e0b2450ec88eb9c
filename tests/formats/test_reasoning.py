"""What a model thinks aloud is not its reply, and what it edits is not taken for its thoughts."""

from __future__ import annotations

import pytest

from retrial.formats import without_reasoning


@pytest.mark.parametrize(
    ("said", "left"),
    [
        pytest.param("<think>a or b</think>\nb", "\nb", id="in tags"),
        pytest.param("<THINKING>\na\n</THINKING>b", "b", id="in other tags"),
        pytest.param("a or\n```\nb\n```\n</think>\nb", "\nb", id="whose beginning the provider kept"),
        pytest.param("hm.</think>\n\nb", "\n\nb", id="closed behind a sentence"),
        pytest.param("<think>never ended", "", id="without an end"),
        pytest.param("no thoughts", "no thoughts", id="none"),
        pytest.param('cut(text, "</think>")\n', 'cut(text, "</think>")\n', id="code that speaks of the tag"),
        pytest.param("b <think>a</think>", "b <think>a</think>", id="tags in the midst of a reply"),
    ],
)
def test_thoughts_before_a_reply_are_left_out(said: str, left: str) -> None:
    assert without_reasoning(said) == left
