"""A task's journal as Markdown: everything that was said is there, and nothing of it can break the page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from retrial.attempts import AgentResult, Attempt
from retrial.chat import Message, Reply, Request, Sampling, ToolCall, Usage
from retrial.store import transcript
from retrial.store.journal import Journal
from retrial.store.records import attempt_record
from retrial.types import Outcome, Status, Verdict
from tests.support.journals import append

HOSTILE = "# A heading\n\n```\n## in a fence\n````python\nx\n````\n~~~\n`````\n"
PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"
SAMPLING = Sampling(temperature=0.7, seed=3, max_tokens=100, seconds=60)
USER = Message(role="user", content="Write add.")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "one.jsonl")


def begin(journal: Journal, number: int = 1) -> None:
    append(journal, "attempt_started", attempt=number, model="gpt-test", sampling=SAMPLING)


def ask(journal: Journal, *messages: Message, reply: Reply | None = None) -> None:
    append(journal, "request", attempt=1, model="gpt-test", request=Request(messages=messages))
    if reply is not None:
        append(journal, "reply", attempt=1, model="gpt-test", reply=reply)


def end(journal: Journal, number: int = 1, **fields: Any) -> None:
    attempt = Attempt(number=number, round=2, model="gpt-test", edit_format="diff", seed=3, temperature=0.7, **fields)
    append(journal, "attempt_ended", attempt=number, result=attempt_record(attempt))


def check(journal: Journal, key: str, **fields: Any) -> None:
    append(journal, "check", key=key, verdict=Verdict(**fields))


def shown(journal: Journal, outcome: str = "plausible") -> str:
    return transcript.markdown("one", outcome, journal.events())


def outside_fences(page: str) -> list[str]:
    """Lines that a reader of Markdown takes for its own: a fence ends only at one as long or longer."""
    found, fence = [], ""
    for line in page.splitlines():
        marks = re.fullmatch(r" {0,3}(`{3,})([^`]*)", line)
        if fence:
            fence = "" if marks and len(marks[1]) >= len(fence) and not marks[2].strip() else fence
        elif marks:
            fence = marks[1]
        else:
            found.append(line)
    assert not fence, "a fence is left open"
    return found


def headings(page: str) -> list[str]:
    return [line for line in outside_fences(page) if line.startswith("#")]


def test_an_attempt_says_who_asked_how_and_what_came_of_it(journal: Journal) -> None:
    begin(journal)
    ask(journal, USER, reply=Reply(text="Here it is."))
    check(journal, "k", outcome=Outcome.RESOLVED, tests={"test_add": Status.PASSED}, stdout="1 passed")
    end(journal, edit_outcome=True, lint_outcome=True, test_outcome=True, patch=PATCH, counted=PATCH)
    page = shown(journal)
    assert headings(page) == [
        "# one",
        "## Attempt 1: gpt-test (round 2, diff, seed 3, temperature 0.7)",
        "### user",
        "### assistant",
        "### check: resolved",
        "### patch",
    ]
    assert f"```diff\n{PATCH}```" in page
    assert "Tests: 1 passed." in page
    assert "**Outcome:** plausible" in page


def test_nothing_that_anyone_says_can_break_the_page(journal: Journal) -> None:
    begin(journal)
    call = ToolCall(name="write`it`\n# now", arguments=f"not JSON\n{HOSTILE}", id="a`b")
    tool = Message(role="tool", content=HOSTILE, call_id="a`b")
    ask(journal, Message(role="user", content=HOSTILE), reply=Reply(text=HOSTILE, calls=(call,)))
    said = Message(role="assistant", content=HOSTILE, calls=(call,))
    ask(journal, Message(role="user", content=HOSTILE), said, tool, reply=Reply(text=HOSTILE, model="m\n# n"))
    check(journal, "k", outcome=Outcome.TESTS_FAILED, reason=HOSTILE, stdout=HOSTILE, lint=(HOSTILE,))
    effort = AgentResult(edit_outcome=False, notes=(HOSTILE,))
    end(journal, patch=HOSTILE, effort=effort, error=HOSTILE)
    append(journal, "agent_chat", messages=(Message(role="assistant", content=HOSTILE),))
    own = {"# one", "## Attempt 1: gpt-test (round 2, diff, seed 3, temperature 0.7)", "### patch"}
    roles = {"### user", "### assistant", "### tool, to `a'b`", "### check: tests_failed"}
    assert set(headings(shown(journal, HOSTILE))) == own | roles


@pytest.mark.parametrize("text", ["", "no line end", "```", "a ```` b", "`````\r\n```"])
def test_a_fence_is_longer_than_any_in_it(text: str) -> None:
    block = transcript.fenced(text)
    assert outside_fences(block) == []
    assert text in block


def test_what_was_said_before_is_not_said_again(journal: Journal) -> None:
    begin(journal)
    ask(journal, USER, reply=Reply(text="<think>hm</think>No edit."))
    # An answer comes back without its reasoning.
    again = (USER, Message(role="assistant", content="No edit."), Message(role="user", content="Try again."))
    ask(journal, *again, reply=Reply(text="Here."))
    end(journal)
    page = shown(journal)
    assert [page.count(text) for text in ("Write add.", "No edit.", "Try again.", "Here.")] == [1, 1, 1, 1]


def test_a_chat_that_begins_anew_is_shown_whole(journal: Journal) -> None:
    begin(journal)
    ask(journal, Message(role="user", content="Which files?"), reply=Reply(text="a.py"))
    ask(journal, Message(role="user", content="Edit a.py"), reply=Reply(text="Done."))
    end(journal)
    assert [line for line in headings(shown(journal)) if line.startswith("###")] == ["### user", "### assistant"] * 2


def test_an_attempt_that_ended_in_an_error_keeps_its_chat(journal: Journal) -> None:
    begin(journal)
    ask(journal, USER, reply=Reply(text="First."))
    ask(journal, USER, Message(role="assistant", content="First."), Message(role="user", content="Again."))
    append(journal, "failed", attempt=1, model="gpt-test", reason="the provider is on fire")
    end(journal, error="the provider is on fire")
    page = shown(journal, "not measured: the provider is on fire")
    assert "First." in page
    assert "Again." in page
    assert "**Outcome:** not measured: the provider is on fire" in page


def test_a_function_call_is_shown_by_name_with_its_arguments_laid_out(journal: Journal) -> None:
    begin(journal)
    file = {"path": "ä.py", "content": "def add():\n    pass\n", "done": True, "with": []}
    arguments = json.dumps({"files": [file, {"path": "`"}]})
    ask(journal, USER, reply=Reply(text="", calls=(ToolCall(name="edit_files", arguments=arguments, id="c1"),)))
    end(journal)
    page = shown(journal)
    assert "Calls `edit_files`:" in page
    assert '`arguments.files.0.path`: `"ä.py"`\n' in page
    assert "`arguments.files.0.content`:\n\n```text\ndef add():\n    pass\n```\n" in page
    assert "`arguments.files.0.done`: `true`\n" in page
    assert "`arguments.files.0.with`: `[]`\n" in page
    assert '`arguments.files.1.path`:\n\n``json\n"`"\n``'.replace("``", "```") in page


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (
            Usage(calls=1, prompt_tokens=10, completion_tokens=5, cost=0.0123, seconds=1.25),
            "call 1: 10 prompt, 5 completion tokens; 0.0123 USD; 1.2 s",
        ),
        (
            Usage(calls=1, prompt_tokens=9, cached_tokens=8, reasoning_tokens=4, completion_tokens=5, cost=None),
            "call 1: 9 prompt, 8 cached, 5 completion, 4 reasoning tokens; unknown; 0.0 s",
        ),
        (Usage(calls=1, retries=2), "call 1: 0.0000 USD; 0.0 s; 2 failed before it"),
    ],
)
def test_every_call_says_what_it_took(journal: Journal, usage: Usage, words: str) -> None:
    begin(journal)
    ask(journal, USER, reply=Reply(text="Here.", usage=usage))
    end(journal)
    assert f"*{words}*" in shown(journal)


def test_the_last_check_is_shown_once_though_it_is_asked_twice(journal: Journal) -> None:
    begin(journal)
    check(journal, "k", outcome=Outcome.TESTS_FAILED, stdout="assert 1 == 2")
    append(journal, "check", key="k")
    end(journal)
    begin(journal, 2)
    append(journal, "check", key="k")
    end(journal, 2)
    assert shown(journal).count("assert 1 == 2") == 2, "once for each attempt"


def test_of_long_output_the_first_and_the_last_are_shown(journal: Journal) -> None:
    begin(journal)
    check(journal, "k", outcome=Outcome.TESTS_FAILED, stdout="first\n" + "x" * 50_000 + "\nlast")
    end(journal)
    page = shown(journal)
    assert len(page) < 10_000
    assert "first\n" in page
    assert "\nlast\n" in page
    assert "characters left out" in page


def test_faults_are_counted_by_kind(journal: Journal) -> None:
    begin(journal)
    end(journal, effort=AgentResult(edit_outcome=False, malformed=3, faults=("no_edit", "no_match", "no_match")))
    assert "Malformed replies: no_edit 1, no_match 2." in shown(journal)


def test_of_a_task_that_was_begun_again_only_the_last_go_is_shown(journal: Journal) -> None:
    begin(journal)
    ask(journal, Message(role="user", content="The first go."))
    end(journal, error="down")
    append(journal, "not_measured", reason="the provider is down")
    begin(journal)
    ask(journal, Message(role="user", content="The second go."), reply=Reply(text="Here."))
    end(journal)
    page = shown(journal)
    assert "The first go." not in page
    assert "The second go." in page
    assert "An earlier go was not measured: the provider is down" in page


def test_a_task_that_was_never_begun_says_why(journal: Journal) -> None:
    append(journal, "not_measured", reason="no image")
    assert shown(journal, "not measured: no image").startswith("# one\n\n**Result:** not measured: no image\n")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"patch": ""}, "no edit."),
        ({"patch": "p", "edit_outcome": True, "lint_outcome": True, "test_outcome": False}, "tests do not pass"),
        ({"patch": "p", "edit_outcome": False, "lint_outcome": True, "test_outcome": False}, "malformed, tests"),
        ({"patch": "p", "edit_outcome": True, "lint_outcome": True, "test_outcome": True}, "nothing of the patch"),
        (
            {"patch": PATCH, "counted": PATCH, "edit_outcome": True, "lint_outcome": True, "test_outcome": None},
            "unverified: there are none",
        ),
    ],
)
def test_the_outcome_is_one_sentence(journal: Journal, fields: Mapping[str, Any], words: str) -> None:
    begin(journal)
    end(journal, verdict=Verdict(outcome=Outcome.TESTS_FAILED, reason="there are none"), **fields)
    (line,) = [line for line in outside_fences(shown(journal)) if line.startswith("**Outcome:**")]
    assert words in line


def test_it_names_the_test_files_of_a_check_and_those_that_were_given_up(journal: Journal) -> None:
    begin(journal)
    given_up = ("a/test_a.py, b/test_b.py: the tests did not end within 300 s of CPU time",)
    check(journal, "k", outcome=Outcome.RESOLVED, chosen=("a/test_a.py",), fallbacks=given_up)
    end(journal)
    lines = outside_fences(shown(journal))
    assert "Test files: `a/test_a.py`." in lines
    assert f"- given up: {given_up[0]}" in lines


def test_it_is_read_back_whatever_stands_in_its_fences(journal: Journal) -> None:
    begin(journal)
    ask(journal, Message(role="user", content=HOSTILE), reply=Reply(text="\n"))
    check(journal, "k", outcome=Outcome.TESTS_FAILED, reason="one failed", tests={"a": Status.FAILED})
    end(journal, patch=PATCH)
    (attempt,) = transcript.attempts(journal.events())
    (read_back,) = transcript.from_markdown(shown(journal))
    assert read_back.heading == attempt.heading
    # A fence ends its text with a line of its own.
    assert [(part.text, part.heading, part.language) for part in read_back.parts] == [
        (part.text.removesuffix("\n"), part.heading, part.language) for part in attempt.parts
    ]
    assert transcript.from_markdown("## Attempt 1\n\n```text\nit was cut")[0].parts[0].text == "it was cut"
