"""A chat goes on whatever its model once wrote: what endpoints refuse is never sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retrial.chat import Message, Request, ToolCall
from retrial.models.wire import body


def sent(message: Message) -> Any:
    messages: Any = body(Request(messages=(message,)), "m-1", {}, ())["messages"]
    return messages[0]


def arguments(text: str) -> Any:
    call = ToolCall(name="write_files", arguments=text, id="call-7")
    (only,) = sent(Message(role="assistant", content="", calls=(call,)))["tool_calls"]
    assert only["id"] == "call-7"
    return only["function"]["arguments"]


@pytest.mark.parametrize("text", ["half a character: \ud800", "a byte that is no text: \udce9"])
def test_what_no_encoding_can_write_is_sent_as_a_question_mark(text: str) -> None:
    content = sent(Message(role="user", content=text))["content"]
    assert content == text[:-1] + "\ufffd"
    assert content.encode()


@pytest.mark.parametrize("said", ["", " \n"])
def test_a_reply_that_said_nothing_is_not_sent_as_nothing(said: str) -> None:
    assert sent(Message(role="assistant", content=said))["content"].strip()


def test_a_call_needs_no_words_beside_it() -> None:
    call = ToolCall(name="write_files", arguments="{}", id="call-7")
    assert sent(Message(role="assistant", content="", calls=(call,)))["content"] == ""


@pytest.mark.parametrize("text", ['{"files": [{"pa', "", "[1]", '"x"', '{"a": "\n"}', "[" * 100_000, "{'a': \ud800}"])
def test_arguments_that_are_no_json_object_are_sent_in_one(text: str) -> None:
    assert json.loads(arguments(text)) == {"arguments": text}


def test_arguments_that_are_a_json_object_are_sent_as_they_are() -> None:
    assert arguments('{"files":  []}') == '{"files":  []}'


@pytest.mark.parametrize(("name", "safe"), [("functions.write files", "functions-write-files"), ("", "nameless")])
def test_a_call_of_what_is_no_name_is_sent_with_one(name: str, safe: str) -> None:
    (call,) = sent(Message(role="assistant", content="", calls=(ToolCall(name=name, arguments="{}"),)))["tool_calls"]
    assert call["function"]["name"] == safe
