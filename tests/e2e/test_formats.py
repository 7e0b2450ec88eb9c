"""All edit formats over real HTTP, through both phases: one reply that cannot be read, then one that solves."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from retrial import registry
from retrial.chat import Edit, Reply, ToolCall
from retrial.protocols import EditFormat
from tests.conftest import Run
from tests.support import edit_formats
from tests.support.exercises import RIGHT, STUB, reply, write_exercise, write_replies
from tests.support.servers import Answer, ChatServer
from tests.support.servers import reply as answer

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("bwrap")]

TASK = "aider_python_sum_up"
PROSE = "I would simply add the two numbers."


def unreadable(form: EditFormat) -> Reply:
    """Words alone; of a function format, a call with half of its arguments."""
    calls = tuple(ToolCall(name=tool.function.name, arguments='{"x": "y', id="call-7") for tool in form.tools)
    return Reply(text=PROSE, calls=calls)


def sent(reply: Reply) -> Answer:
    """A reply as a provider sends it."""
    if not reply.calls:
        return answer(reply.text, finish=reply.finish)
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]
    return answer(reply.text, finish=reply.finish, tool_calls=calls)


@pytest.mark.smoke
@pytest.mark.parametrize("name", registry.names("formats"))
def test_every_format_solves_a_task_after_a_reply_that_cannot_be_read(
    run: Run, home: Path, tmp_path: Path, name: str
) -> None:
    form: EditFormat = registry.module("formats", name).make()
    right = edit_formats.write(name, (Edit(path="sum_up.py", content=RIGHT),), {"sum_up.py": STUB})
    flags = ("--turns", 1, "--reflections", 1, "--sandbox", "bwrap", "--run", "formats", "--edit-format", name)
    with ChatServer([sent(unreadable(form)), sent(right)]) as server:
        folder = write_exercise(tmp_path / "bench")
        done = run(
            "harness.py", "-b", folder, "-m", "gpt-test", "--api-base", server.url, *flags, OPENAI_API_KEY="none"
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (attempt,) = json.loads((home / f"predictions/formats/{TASK}.json").read_text())["all_results"]
    assert (attempt["edit_format"], attempt["num_malformed_responses"], attempt["plausible"]) == (name, 1, True)
    first, second = (asked.body for asked in server.requests)
    assert_function_must_be_called(first, form)
    assert_function_must_be_called(second, form)
    assert_told_what_is_wrong(first["messages"], second["messages"], form)
    done = run("report.py", "formats", "--sandbox", "bwrap")
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((home / "predictions/formats/results.json").read_text())
    assert (results["resolved"], list(results["by_format"])) == ([TASK], [name])


def assert_function_must_be_called(body: dict[str, Any], form: EditFormat) -> None:
    choices = [{"type": "function", "function": {"name": tool.function.name}} for tool in form.tools]
    assert body.get("tools", []) == list(map(asdict, form.tools))
    assert body.get("tool_choice") == (choices[0] if choices else None)


def assert_told_what_is_wrong(first: list[Any], second: list[Any], form: EditFormat) -> None:
    assert first[0] == {"role": "system", "content": form.prompt}
    said, told = second[len(first) :]
    assert (said["role"], said["content"]) == ("assistant", PROSE)
    if not form.tools:
        assert told["role"] == "user"
        assert "sum_up.py" in told["content"]
        return
    assert [call["id"] for call in said["tool_calls"]] == ["call-7"]
    assert (told["role"], told["tool_call_id"]) == ("tool", "call-7")
    assert form.tools[0].function.name in told["content"]


def test_a_file_that_a_model_added_can_be_mended(run: Run, home: Path, tmp_path: Path) -> None:
    new = "helper.py\n<<<<<<< SEARCH\n=======\ndef plus(a, b):\n    return a - b\n>>>>>>> REPLACE\n"
    used = f"sum_up.py\n<<<<<<< SEARCH\n{STUB}=======\nfrom helper import plus as add\n>>>>>>> REPLACE\n"
    mended = "helper.py\n<<<<<<< SEARCH\n    return a - b\n=======\n    return a + b\n>>>>>>> REPLACE\n"
    replies = write_replies(tmp_path / "replies.jsonl", new + used, mended)
    done = run(
        "harness.py", "-b", write_exercise(tmp_path / "bench"), "-m", f"replay/{replies}:diff", "--sandbox", "bwrap",
        "--tries", 1, "--run", "mended",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (attempt,) = json.loads((home / f"predictions/mended/{TASK}.json").read_text())["all_results"]
    assert (attempt["tests_outcomes"], attempt["num_malformed_responses"]) == ([False, True], 0)


def test_a_reply_with_half_a_character_is_a_bad_reply_and_not_our_failure(run: Run, home: Path, tmp_path: Path) -> None:
    flags = ("--sandbox", "bwrap", "--run", "half", "--tries", 1, "--edit-format", "whole")
    with ChatServer([answer(reply("x = '\ud800'\n")), answer(""), answer(reply(RIGHT))]) as server:
        folder = write_exercise(tmp_path / "bench")
        done = run(
            "harness.py", "-b", folder, "-m", "gpt-test", "--api-base", server.url, *flags, OPENAI_API_KEY="none"
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (attempt,) = json.loads((home / f"predictions/half/{TASK}.json").read_text())["all_results"]
    assert (attempt["plausible"], attempt["num_malformed_responses"]) == (True, 2)
