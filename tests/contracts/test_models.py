"""What every model part holds, the embedded one with its real weights."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from retrial import registry
from retrial.chat import Message, Reply, Request
from retrial.errors import RetrialError
from retrial.options import ModelSettings
from retrial.protocols import Model, ModelContext
from retrial.system import paths
from tests.parts import require, weights
from tests.support.controls import Hasty
from tests.support.servers import ChatServer, reply

pytestmark = pytest.mark.real

QUESTION = Request(messages=(Message(role="user", content="Say hello."),), max_tokens=16, timeout=120.0)


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with ChatServer([reply("Hello.")]) as running:
        yield running


@pytest.fixture(scope="module", params=registry.names("models"))
def model(request: pytest.FixtureRequest, server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Every model part found, ready to answer; a part that nobody lists here is pointed at the test's server."""
    recorded = tmp_path_factory.mktemp("replay") / "replies.jsonl"
    recorded.write_text(json.dumps({"text": "Hello.", "repeat": True}), encoding="utf-8")
    name = {"local": "", "replay": str(recorded)}.get(request.param, "openai/test-model")
    options = ModelSettings(api_base=server.url, price=(1.0, 2.0), cache=paths.cache())
    if request.param == "local":
        weights()
    if request.param == "litellm":
        require("litellm", "" if importlib.util.find_spec("litellm") else "the package is missing")
    made: Model = registry.module("models", request.param).make(ModelContext(options=options, name=name))
    return made


@pytest.mark.smoke
def test_an_answer_is_a_whole_reply(model: Model) -> None:
    said = model.complete(QUESTION)
    assert isinstance(said, Reply)
    assert said.text
    assert said.usage.calls == 1
    assert min(said.usage.prompt_tokens, said.usage.completion_tokens, said.usage.seconds) >= 0
    assert said.usage.cost is None or said.usage.cost >= 0


def test_a_model_has_a_name(model: Model) -> None:
    assert model.name


def test_the_same_question_gets_the_same_answer(model: Model) -> None:
    assert model.complete(QUESTION).text == model.complete(QUESTION).text


def test_four_threads_may_ask_at_once(model: Model) -> None:
    alone = model.complete(QUESTION).text
    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(lambda _: model.complete(QUESTION).text, range(4)))
    assert texts == [alone] * 4


@pytest.mark.parametrize("name", registry.names("models"))
def test_what_cannot_be_asked_is_an_error_of_ours(name: str, tmp_path: Path) -> None:
    options = ModelSettings(api_base="http://127.0.0.1:1/v1", cache=tmp_path)
    # Without the pauses between tries.
    hasty = Request(messages=QUESTION.messages, timeout=0.2, control=Hasty())
    with pytest.raises(RetrialError):
        registry.module("models", name).make(ModelContext(options=options, name="no/such.thing")).complete(hasty)
